/* precv: receives AMQP 1.0 messages as fast as libqpid-proton can. Layer 5. */
#define _GNU_SOURCE
#include "clock.h"
#include "credit.h"
#include "fatal.h"
#include "options.h"
#include "pacer.h"
#include "reporter.h"
#include "sequence.h"
#include "stamp.h"
#include "worker.h"

#include <proton/disposition.h>
#include <proton/error.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* A message that fits is read in one call. */
#define BUFFER_BYTES (64 * 1024)
/* A message due sooner than this is waited for without sleeping, which takes longer to end. */
#define SPIN_NS (50 * NS_PER_US)
/* How long the last messages, fewer than --ack-frequency, are kept unsettled when no more come:
 * the sender may be waiting for just that. */
#define ACK_DELAY_NS (20 * NS_PER_MS)
/* How long a turn may take messages before the reactor reads and writes again. */
#define TURN_NS NS_PER_MS

/* One link. */
struct incoming {
	pn_link_t *link;
	bool granted; /* the first credit */
	struct credit credit;
	struct sequence sequence;
	struct stamp_reader stamp;
	pn_delivery_t **held; /* taken and not yet settled, fewer than --ack-frequency */
	uint64_t held_count;
	int64_t settle_by_ns; /* when the held ones must be settled; 0 if not yet decided */
	size_t part_bytes;    /* of a message that has not come to its end, or does not fit */
	char *part;           /* its first STAMP_PREFIX_MAX bytes; NULL until there was one */
	STAILQ_ENTRY(incoming) next;
};

struct receiver {
	struct worker worker;
	const struct options *options;
	uint64_t outcome; /* the library's code */
	uint64_t limit;   /* messages in all */
	uint64_t wanted;  /* messages for which no credit has been granted yet */
	struct pacer pacer;
	bool waiting;  /* a message is there and not due yet */
	bool answered; /* credit or a disposition is to be written */
	STAILQ_HEAD(, incoming) links;
	char buffer[BUFFER_BYTES];
};

/* ---- credit ---- */

static void grant(struct receiver *r, struct incoming *in, uint32_t credit)
{
	if (!credit)
		return;
	if (r->limit != UINT64_MAX)
		r->wanted -= credit;
	pn_link_flow(in->link, (int)credit);
	r->answered = true;
	r->worker.stats.n.grants++;
	r->worker.stats.n.granted += credit;
}

/* One that does not count towards the limit was taken. */
static void want_another(struct receiver *r, uint64_t messages)
{
	if (r->limit != UINT64_MAX)
		r->wanted += messages;
}

/* The sender's credit is what we have granted less what is on its way or queued here. */
static void note_credit(struct receiver *r, const struct incoming *in)
{
	int credit = pn_link_remote_credit(in->link);
	uint32_t level = credit > 0 ? (uint32_t)credit : 0;
	if (level < r->worker.stats.credit_lowest)
		r->worker.stats.credit_lowest = level;
}

/* ---- links come and go ---- */

static void start(struct receiver *r, struct incoming *in)
{
	in->granted = true;
	grant(r, in, credit_start(&in->credit, r->wanted));
}

static void attached(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	const struct options *o = r->options;
	struct incoming *in = calloc(1, sizeof *in);
	if (!in || !(in->held = calloc(o->ack_frequency, sizeof *in->held)))
		fatal(EXIT_INTERNAL, "link");
	in->link = link;
	in->credit = (struct credit){.window = (uint32_t)o->credit,
		.low = (uint32_t)o->credit_low,
		.add = (uint32_t)o->credit_add};
	sequence_start(&in->sequence, o->first_sequence);
	stamp_reader_create(&in->stamp);
	STAILQ_INSERT_TAIL(&r->links, in, next);
	pn_link_set_context(link, in);
	if (worker_may_start(&r->worker, clock_monotonic_ns()))
		start(r, in);
}

static void detached(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	struct incoming *in = pn_link_get_context(link), *other;
	STAILQ_REMOVE(&r->links, in, incoming, next);
	want_another(r, in->credit.level);
	STAILQ_FOREACH (other, &r->links, next)
		if (other->granted && r->worker.phase == PHASE_RUNNING)
			grant(r, other, credit_grant(&other->credit, r->wanted));
	sequence_free(&in->sequence);
	stamp_reader_destroy(&in->stamp);
	free(in->held);
	free(in->part);
	free(in);
}

/* ---- settle ---- */

static void settle_held(struct receiver *r, struct incoming *in)
{
	for (uint64_t i = 0; i < in->held_count; i++) {
		pn_delivery_update(in->held[i], r->outcome);
		pn_delivery_settle(in->held[i]);
	}
	in->held_count = 0;
	in->settle_by_ns = 0;
	r->answered = true;
}

/* Settles those that have been held for long enough. */
static void settle_late(struct receiver *r, struct incoming *in, int64_t now_ns)
{
	if (!in->held_count)
		return;
	if (!in->settle_by_ns)
		in->settle_by_ns = now_ns + ACK_DELAY_NS;
	if (now_ns >= in->settle_by_ns)
		settle_held(r, in);
	else
		engine_turn_by(&r->worker.engine, in->settle_by_ns);
}

/* Done with a message that was read; the link goes on to the next. */
static inline void settle(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	if (pn_delivery_settled(d)) {
		pn_delivery_settle(d);
	} else if (r->options->ack_frequency == 1) {
		pn_delivery_update(d, r->outcome);
		pn_delivery_settle(d);
		r->answered = true;
	} else {
		pn_link_advance(in->link);
		in->held[in->held_count++] = d;
		in->settle_by_ns = 0;
		if (in->held_count == r->options->ack_frequency)
			settle_held(r, in);
	}
	credit_take(&in->credit);
}

/* ---- receive ---- */

/* Where a message stands in its sender's numbering. False if it is to be ignored. */
static bool check_sequence(struct receiver *r, struct incoming *in, const struct stamp *stamp)
{
	struct counters *n = &r->worker.stats.n;
	if (!stamp->has_sn || stamp->sn > INT64_MAX) { /* a negative one is no number */
		n->no_sequence++;
		return true;
	}
	uint64_t skipped = in->sequence.skipped;
	switch (sequence_see(&in->sequence, stamp->sn)) {
	case SEQUENCE_IN_ORDER: return true;
	case SEQUENCE_GAP: n->skipped += in->sequence.skipped - skipped; return true;
	case SEQUENCE_REORDERED: n->reordered++; return true;
	case SEQUENCE_DUPLICATE: n->duplicated++; break;
	}
	return !r->options->ignore_duplicates;
}

/* Accounts for a whole message, of which PREFIX bytes are at hand. */
static inline void take(struct receiver *r, struct incoming *in, pn_delivery_t *d,
	const char *bytes, size_t prefix, size_t length, int64_t arrival_ns)
{
	struct stats *stats = &r->worker.stats;
	const struct stamp *stamp = stamp_read(&in->stamp, bytes, prefix, length);
	bool counts = check_sequence(r, in, stamp);
	if (counts) {
		stats->n.messages++;
		stats->n.content_bytes += stamp->content_bytes;
		int64_t latency_ns;
		if (!stamp->has_ts)
			stats->n.no_timestamp++;
		else if (__builtin_sub_overflow(arrival_ns, stamp->ts, &latency_ns))
			histogram_record(&stats->latency, INT64_MAX);
		else
			histogram_record(&stats->latency, latency_ns);
		stats->n.redelivered += stamp->redelivered;
	} else {
		want_another(r, 1);
	}
	settle(r, in, d);
	grant(r, in, credit_grant(&in->credit, r->wanted));
	r->worker.moved = true;
	if (counts && stats->n.messages == r->worker.milestone) {
		worker_milestone(&r->worker);
		if (stats->n.messages == r->limit)
			worker_stop(&r->worker, STOP_MESSAGES);
	}
}

/* The sender has given the message up. */
static void drop_aborted(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	r->worker.stats.n.aborted++;
	in->part_bytes = 0;
	want_another(r, 1);
	pn_delivery_settle(d);
	credit_take(&in->credit);
	grant(r, in, credit_grant(&in->credit, r->wanted));
}

/* Reads all there is of a message that comes in parts, or does not fit the buffer. Only its
 * beginning is kept. It must be read to its end before it is settled: else the library never
 * gives back its share of the session window. False if the end has not come. */
static bool read_part(struct receiver *r, struct incoming *in, pn_delivery_t *d)
{
	if (!in->part && !(in->part = malloc(STAMP_PREFIX_MAX)))
		fatal(EXIT_INTERNAL, "message");
	ssize_t got;
	while ((got = pn_link_recv(in->link, r->buffer, sizeof r->buffer)) > 0) {
		if (in->part_bytes < STAMP_PREFIX_MAX) {
			size_t room = STAMP_PREFIX_MAX - in->part_bytes;
			memcpy(in->part + in->part_bytes, r->buffer,
				(size_t)got < room ? (size_t)got : room);
		}
		in->part_bytes += (size_t)got;
	}
	return !pn_delivery_partial(d);
}

/* One delivery. */
static inline void receive(
	struct receiver *r, struct incoming *in, pn_delivery_t *d, struct clock_run *clock)
{
	if (pn_link_current(in->link) != d || r->worker.stats.n.messages >= r->limit)
		return; /* news of one that was taken before, or more than was asked for */
	size_t pending = pn_delivery_pending(d);
	if (__builtin_expect(
		    pn_delivery_partial(d) || pending > BUFFER_BYTES || in->part_bytes, 0)) {
		if (pn_delivery_aborted(d)) {
			drop_aborted(r, in, d);
		} else if (read_part(r, in, d)) {
			size_t length = in->part_bytes;
			in->part_bytes = 0;
			take(r, in, d, in->part,
				length < STAMP_PREFIX_MAX ? length : STAMP_PREFIX_MAX, length,
				clock_run_ns(clock));
		}
		return;
	}
	ssize_t got = pn_link_recv(in->link, r->buffer, pending);
	if (__builtin_expect(got == PN_ABORTED, 0))
		drop_aborted(r, in, d);
	else
		take(r, in, d, r->buffer, pending, pending, clock_run_ns(clock));
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
	note_credit(r, in);
	if (pacer_limits(&r->pacer))
		return; /* turn() takes them, when they are due */
	begin(r);
	r->answered = false;
	struct clock_run clock = {.kind = r->options->clock};
	for (pn_delivery_t *d = engine_batch_first(batch); d; d = engine_batch_next(batch))
		receive(r, in, d, &clock);
	batch->answered = r->answered;
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

/* Takes what is due of one link's queue until the turn is over. True if more is waiting. */
static bool take_due(struct receiver *r, struct incoming *in, int64_t turn_ends_ns)
{
	pn_delivery_t *d;
	int64_t now_ns;
	while ((d = pn_link_current(in->link)) && r->worker.phase == PHASE_RUNNING) {
		if (!wait_until_due(r, &now_ns)) {
			engine_turn_by(&r->worker.engine, pacer_due_ns(&r->pacer) - SPIN_NS);
			return r->waiting = true;
		}
		if (now_ns >= turn_ends_ns) {
			engine_turn_by(&r->worker.engine, now_ns);
			return true;
		}
		begin(r);
		receive(r, in, d, &(struct clock_run){.kind = r->options->clock});
		if (pn_link_current(in->link) == d)
			break; /* the rest of it has not come */
		pacer_take(&r->pacer, now_ns, r->waiting);
		r->waiting = true;
	}
	return r->waiting = false;
}

/* Messages that are not due yet must not go with their sender. */
static bool holds(void *self, pn_link_t *link)
{
	struct receiver *r = self;
	pn_delivery_t *d = pn_link_current(link);
	return pacer_limits(&r->pacer) && d && !pn_delivery_partial(d);
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

static enum time_cause turn(void *self, int64_t now_ns)
{
	struct receiver *r = self;
	enum time_cause cause = TIME_IDLE;
	if (!worker_may_start(&r->worker, now_ns))
		return TIME_PACING;
	struct incoming *in;
	rotate(r);
	STAILQ_FOREACH (in, &r->links, next) {
		if (!in->granted)
			start(r, in);
		if (pacer_limits(&r->pacer) && take_due(r, in, now_ns + TURN_NS))
			cause = TIME_PACING;
		settle_late(r, in, now_ns);
	}
	return cause;
}

/* ---- end ---- */

static bool flushed(void *self)
{
	struct receiver *r = self;
	struct incoming *in;
	STAILQ_FOREACH (in, &r->links, next)
		settle_held(r, in);
	return true;
}

static enum exit_code verdict(const void *self)
{
	const struct receiver *r = self;
	const struct counters *n = &r->worker.stats.n;
	bool bad = n->skipped || n->reordered || n->no_sequence
		|| (n->duplicated && !r->options->ignore_duplicates);
	if (r->options->verify_sequence && bad)
		return EXIT_VERIFY;
	if (r->options->messages && n->messages < r->options->messages)
		return EXIT_SHORT;
	return EXIT_DONE;
}

static const struct role ROLE = {
	.attached = attached,
	.detached = detached,
	.deliveries = deliveries,
	.holds = holds,
	.turn = turn,
	.flushed = flushed,
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
	receiver.outcome = OUTCOMES[options.outcome];
	receiver.limit = receiver.wanted = options.messages ? options.messages : UINT64_MAX;
	pacer_start(&receiver.pacer, options.receive_rate_per_s, (int64_t)options.work_ns,
		clock_monotonic_ns());
	return reporter_run(&receiver.worker, &options, &ROLE, &receiver, argv);
}
