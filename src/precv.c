/* precv: receives AMQP 1.0 messages as fast as libqpid-proton can. Layer 5. */
#define _GNU_SOURCE
#include "clock.h"
#include "incoming.h"
#include "reporter.h"
#include "waking.h"

#include <proton/disposition.h>

/* A message due sooner than this is waited for without sleeping, as the poller does. */
#define SPIN_NS WAKING_SPIN_MAX_NS
/* How long a turn may take messages before the reactor reads and writes again. */
#define TURN_NS NS_PER_MS

static void open_printer(void *self)
{
	struct receiver *r = self;
	printer_open(&r->printer, r->options);
	r->looks = printer_is_used(&r->printer) || r->options->check_content;
	r->whole = r->looks || r->options->reply;
}

static void attached(void *self, pn_link_t *link)
{
	incoming_attach(self, link);
}

static void detached(void *self, pn_link_t *link)
{
	incoming_detach(self, link);
}

static void begin(struct receiver *r)
{
	if (r->worker.first_ns)
		return;
	int64_t now_ns = clock_monotonic_ns();
	worker_begin(&r->worker, now_ns);
	worker_first(&r->worker, now_ns);
}

static void deliveries(void *self, pn_link_t *link, struct engine_batch *batch)
{
	struct receiver *r = self;
	struct incoming *in = pn_link_get_context(link);
	incoming_note_credit(r, in);
	if (pacer_limits(&r->pacer))
		return; /* turn() takes them, when they are due */
	begin(r);
	incoming_take_all(r, in, batch);
}

/* ---- slow consumers ---- */

/* Whether the next message is due; waits for it if that is not worth sleeping. To burn time is
 * what --work is for, but to wait for --receive-rate is not to be busy. */
static bool wait_until_due(struct receiver *r, int64_t *now_ns)
{
	int64_t due_ns = pacer_due_ns(&r->pacer), from_ns = clock_monotonic_ns();
	*now_ns = from_ns;
	if (due_ns - from_ns > SPIN_NS)
		return false;
	while (*now_ns < due_ns)
		*now_ns = clock_monotonic_ns();
	if (!r->pacer.work_ns)
		r->worker.stats.n.time_ns[TIME_PACING] += (uint64_t)(*now_ns - from_ns);
	return true;
}

/* Takes what is due of one link's queue until the turn is over, or no more may be taken. True if
 * more is waiting for its time. */
static bool take_due(struct receiver *r, struct incoming *in, int64_t turn_ends_ns)
{
	pn_delivery_t *d;
	int64_t now_ns;
	while (r->take_to && (d = pn_link_current(in->link))) {
		if (!wait_until_due(r, &now_ns)) {
			engine_turn_by(&r->worker.engine, pacer_due_ns(&r->pacer) - SPIN_NS);
			return r->waiting = true;
		}
		if (now_ns >= turn_ends_ns) {
			engine_turn_by(&r->worker.engine, now_ns);
			return true;
		}
		begin(r);
		incoming_take(r, in, d, &(struct clock_run){.kind = r->options->clock});
		if (pn_link_current(in->link) == d)
			break; /* the rest of it has not come */
		pacer_take(&r->pacer, now_ns, r->waiting);
		r->waiting = true;
	}
	return r->waiting = false;
}

/* Whether messages may have to wait in the library's queue. */
static bool may_wait(const struct receiver *r)
{
	return pacer_limits(&r->pacer) || printer_is_used(&r->printer) || r->options->reply;
}

/* Messages that wait must not go with their sender; those that a link's successor will bring again
 * may. */
static bool holds(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	pn_delivery_t *d = pn_link_current(link);
	if (!may_wait(r) || !d || pn_delivery_partial(d))
		return false;
	struct incoming *in = pn_link_get_context(link);
	bool has_successor = in->numbering->links > 1 || worker_reconnects(&r->worker);
	return pn_delivery_settled(d) || !has_successor;
}

/* What is due goes to each link's queue in turn. */
static void rotate(struct receiver *r)
{
	struct incoming *first = STAILQ_FIRST(&r->links);
	if (!first)
		return;
	STAILQ_REMOVE_HEAD(&r->links, next);
	STAILQ_INSERT_TAIL(&r->links, first, next);
}

/* Writes what was printed. While who reads it is slow, no more is taken, and the sender runs out of
 * credit. False if there is nobody who takes more. */
static bool write_out(struct receiver *r)
{
	struct failure failure;
	bool was_full = !r->take_to;
	if (!printer_flush(&r->printer, &r->worker.engine, &failure)) {
		worker_fail(&r->worker, &failure);
		worker_stop(&r->worker, STOP_FAILED);
		return false;
	}
	r->take_to = printer_is_full(&r->printer) ? 0 : r->limit;
	if (was_full && r->take_to)
		engine_turn_by(&r->worker.engine, 0); /* for what waits */
	return r->take_to;
}

static enum time_cause turn(void *self, int64_t now_ns)
{
	struct receiver *r = self;
	enum time_cause cause = TIME_IDLE;
	if (!worker_may_start(&r->worker, now_ns))
		return TIME_PACING;
	struct incoming *in;
	answering_turn(r, now_ns);
	rotate(r);
	STAILQ_FOREACH (in, &r->links, next) {
		if (!in->granted)
			incoming_start(r, in);
		if (may_wait(r) && take_due(r, in, now_ns + TURN_NS))
			cause = TIME_PACING;
		incoming_settle_late(r, in, now_ns);
	}
	if (printer_is_used(&r->printer) && r->worker.phase == PHASE_RUNNING && !write_out(r))
		cause = TIME_SOCKET;
	return r->answering.waits < cause ? r->answering.waits : cause;
}

/* ---- end ---- */

/* The peer may not have settled all answers yet: one that sends no more may stay for them. */
static bool flushed(void *self)
{
	struct receiver *r = self;
	struct incoming *in;
	r->take_to = 0; /* what comes now would be in no report */
	STAILQ_FOREACH (in, &r->links, next) {
		incoming_settle(r, in);
		answering_abort(in); /* its message is not taken, either */
	}
	return answering_flushed(r);
}

static void drain(void *self, int abandon_fd)
{
	struct receiver *r = self;
	struct failure failure;
	if (!printer_drain(&r->printer, abandon_fd, &failure))
		worker_fail(&r->worker, &failure);
	printer_close(&r->printer);
	text_destroy(&r->text);
}

static enum exit_code verdict(const void *self)
{
	const struct receiver *r = self;
	const struct counters *n = &r->worker.stats.n;
	bool bad = n->skipped || n->reordered || n->no_sequence
		|| (n->duplicated && !r->options->ignore_duplicates);
	if ((r->options->verify_sequence && bad) || n->corrupted)
		return EXIT_VERIFY;
	if (r->options->messages && n->messages < r->options->messages)
		return EXIT_SHORT;
	return EXIT_DONE;
}

static const struct role ROLE = {
	.open = open_printer,
	.attached = attached,
	.detached = detached,
	.deliveries = deliveries,
	.holds = holds,
	.turn = turn,
	.flushed = flushed,
	.answers = &ANSWERING_LINKS,
	.drain = drain,
	.verdict = verdict,
};

int main(int argc, char **argv)
{
	static const uint64_t OUTCOMES[] = {[OUTCOME_ACCEPTED] = PN_ACCEPTED,
		[OUTCOME_REJECTED] = PN_REJECTED,
		[OUTCOME_RELEASED] = PN_RELEASED,
		[OUTCOME_MODIFIED] = PN_MODIFIED};
	static struct options options;
	static struct receiver receiver;
	options_parse(&options, PROGRAM_PRECV, argc, argv);
	receiver.options = &options;
	STAILQ_INIT(&receiver.links);
	STAILQ_INIT(&receiver.numberings);
	answering_create(&receiver.answering);
	receiver.outcome = OUTCOMES[options.outcome];
	receiver.limit = options.messages ? options.messages : UINT64_MAX;
	receiver.take_to = receiver.wanted = receiver.limit;
	pacer_start(&receiver.pacer, options.receive_rate_per_s, (int64_t)options.work_ns,
		clock_monotonic_ns());
	int code = reporter_run(&receiver.worker, &options, &ROLE, &receiver, argv);
	numbering_free_all(&receiver.numberings);
	answering_destroy(&receiver.answering);
	return code;
}
