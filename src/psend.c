/* psend: sends AMQP 1.0 messages as fast as libqpid-proton can. Layer 5. */
#define _GNU_SOURCE
#include "clock.h"
#include "fatal.h"
#include "outgoing.h"
#include "reporter.h"
#include "settling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory for unsettled messages, if --max-unsettled does not say how many there may be. */
#define UNSETTLED_BYTES      (8 * 1024 * 1024)
#define UNSETTLED_EACH_BYTES 1024
#define UNSETTLED_LEAST      64

/* ---- send ---- */

/* The last message is handed over. */
static bool all_sent(struct sender *s)
{
	bool last = !outgoing_left(s) || content_peek(&s->content) == LINES_ENDED;
	return last && !s->parts;
}

/* How many messages are to say so. Who waits for one must not take a failure for the end. */
static uint64_t eos_wanted(const struct sender *s)
{
	return s->worker.failed ? 0 : s->options->send_eos;
}

/* Everything is sent, settled, and out of the library. */
static bool all_settled(struct sender *s)
{
	struct outgoing *o;
	if (!all_sent(s) || s->eos_sent < eos_wanted(s))
		return false;
	STAILQ_FOREACH (o, &s->lost, next)
		if (o->again_next != o->again_end)
			return false;
	STAILQ_FOREACH (o, &s->links, next)
		if (outgoing_outstanding(o))
			return false;
	return true;
}

/* And answered, unless nothing has happened for long. */
static bool finished(struct sender *s, int64_t now_ns)
{
	if (!all_settled(s))
		return false;
	int64_t give_up_ns = s->worker.last_ns + (int64_t)s->options->close_timeout_ns;
	if (!asking_is_awaited(s))
		return true;
	if (now_ns < give_up_ns) {
		engine_turn_by(&s->worker.engine, give_up_ns);
		return false;
	}
	asking_give_up(s);
	return true;
}

/* Links of one connection share its output: each in turn is the first to fill it. */
static void rotate(struct sender *s)
{
	struct outgoing *first = STAILQ_FIRST(&s->links);
	if (!first)
		return;
	STAILQ_REMOVE_HEAD(&s->links, next);
	STAILQ_INSERT_TAIL(&s->links, first, next);
}

/* --send-eos: to each link in turn. One that may not be sent on yet holds the others up, but for
 * those that have had fewer. */
static void send_eos(struct sender *s)
{
	struct outgoing *o;
	bool sent = !STAILQ_EMPTY(&s->links);
	while (sent && s->eos_sent < eos_wanted(s)) {
		uint64_t fewest = UINT64_MAX;
		STAILQ_FOREACH (o, &s->links, next)
			if (o->eos_sent < fewest)
				fewest = o->eos_sent;
		sent = false;
		STAILQ_FOREACH (o, &s->links, next)
			if (o->eos_sent == fewest && s->eos_sent < eos_wanted(s))
				sent = outgoing_send_eos(s, o) || sent;
	}
}

/* Standard input cannot be read: what was read is sent. */
static void check_input(struct sender *s)
{
	if (!s->content.lines.error || s->input_failed)
		return;
	s->input_failed = true;
	struct failure failure = {.code = EXIT_INTERNAL, .what = "reading standard input"};
	snprintf(failure.description, sizeof failure.description, "%s",
		strerror(s->content.lines.error));
	worker_fail(&s->worker, &failure);
}

/* A line that has come since the links looked for one has been read, so that the descriptor does
 * not tell of it. */
static void wait_for_input(struct sender *s)
{
	if (s->content.state == LINES_READY)
		engine_turn_by(&s->worker.engine, 0);
	else
		engine_turn_when(&s->worker.engine, STDIN_FILENO, POLLIN);
}

/* There is nothing more to do. More lines will not come, but the rest of a --duration will. */
static void check_end(struct sender *s, int64_t now_ns)
{
	if (!s->worker.begun || !finished(s, now_ns))
		return;
	if (outgoing_left(s))
		worker_stop(&s->worker, STOP_INPUT);
	else if (!s->options->duration_ns)
		worker_stop(&s->worker, STOP_MESSAGES);
}

static enum time_cause turn(void *self, int64_t now_ns)
{
	struct sender *s = self;
	if (!worker_may_start(&s->worker, now_ns)) {
		s->waits = asking_may_begin(s);
		return TIME_PACING;
	}
	if (asking_may_begin(s)) {
		int64_t start_ns = s->worker.start_at_ns;
		worker_begin(&s->worker, now_ns);
		pacing_begin(&s->pacing, start_ns, s->waits ? start_ns : now_ns);
	}
	pacing_turn(&s->pacing, outgoing_left(s), now_ns);
	if (s->questions.used)
		asking_turn(s, now_ns);
	enum time_cause cause = TIME_IDLE;
	struct outgoing *o;
	s->starved = false;
	rotate(s);
	STAILQ_FOREACH (o, &s->links, next) {
		enum time_cause c = outgoing_turn(s, o, now_ns);
		if (c < cause)
			cause = c;
	}
	check_input(s);
	if (all_sent(s))
		pacing_end(&s->pacing, now_ns);
	if (eos_wanted(s) && all_sent(s))
		send_eos(s);
	check_end(s, now_ns);
	if (s->starved)
		wait_for_input(s);
	return cause;
}

/* What depends on the time alone. */
static void cut(void *self, int64_t at_ns)
{
	struct sender *s = self;
	if (s->worker.phase == PHASE_RUNNING)
		pacing_cut(&s->pacing, outgoing_left(s), at_ns);
	if (s->options->tsc) {
		s->worker.stats.n.tsc_ticks = clock_ticks() - s->tsc_base;
		s->worker.stats.n.tsc_ns = (uint64_t)(clock_monotonic_ns() - s->tsc_base_ns);
	}
}

/* ---- links ---- */

static void attached(void *self, pn_link_t *link)
{
	outgoing_attach(self, link);
}

/* Whether there are messages without an answer. */
static bool lacks_answers(const struct sender *s)
{
	return s->questions.used && s->worker.stats.n.answered < s->worker.stats.n.messages;
}

/* Who leaves after the last message was settled has not cut the run short. */
static void detached(void *self, pn_link_t *link)
{
	struct sender *s = self;
	outgoing_detach(s, link);
	if (!s->worker.stats.unsettled && !s->undelivered && !lacks_answers(s))
		check_end(s, clock_monotonic_ns());
}

static void deliveries(void *self, pn_link_t *link, struct engine_batch *batch)
{
	settling_take(self, pn_link_get_context(link), batch);
}

/* ---- end ---- */

/* Whether the run has gone as it was meant to. */
static bool ends_well(const struct sender *s)
{
	switch (s->worker.reason) {
	case STOP_MESSAGES:
	case STOP_INPUT:
	case STOP_DURATION:
	case STOP_TIMEOUT: return true;
	default: return false;
	}
}

/* Of what was sent by a link that is gone nothing more is heard, nor is there an answer. */
static bool flushed(void *self)
{
	struct sender *s = self;
	int64_t now_ns = clock_monotonic_ns();
	bool all = true;
	struct outgoing *o;
	STAILQ_FOREACH (o, &s->links, next)
		outgoing_finish(s, o, now_ns);
	if (ends_well(s) && !s->parts) {
		send_eos(s);
		all = s->eos_sent >= eos_wanted(s);
	}
	STAILQ_FOREACH (o, &s->links, next)
		all = all && !outgoing_outstanding(o);
	return STAILQ_EMPTY(&s->links) || (all && !asking_is_awaited(s));
}

/* Whether messages are missing that were asked for. Of lines, -m is the most; those that were not
 * read in time are none of the run's, those that could not be sent are. */
static bool is_short(const struct sender *s)
{
	if (!s->content.varies)
		return s->options->messages && outgoing_left(s);
	if (!outgoing_left(s) || s->worker.reason == STOP_DURATION)
		return false;
	return s->worker.reason == STOP_TIMEOUT ? s->content.state == LINES_READY
						: s->content.state != LINES_ENDED;
}

static enum exit_code verdict(const void *self)
{
	const struct sender *s = self;
	const struct counters *n = &s->worker.stats.n;
	bool presettled = s->options->presettled;
	if (!presettled && (n->rejected || n->released || n->modified || s->eos_refused))
		return EXIT_REFUSED;
	uint64_t eos = presettled ? s->eos_sent : s->eos_accepted;
	if (s->worker.stats.unsettled || s->undelivered || is_short(s) || lacks_answers(s)
		|| eos < s->options->send_eos)
		return EXIT_SHORT;
	return EXIT_DONE;
}

static const struct role ROLE = {
	.attached = attached,
	.detached = detached,
	.deliveries = deliveries,
	.turn = turn,
	.cut = cut,
	.flushed = flushed,
	.answers = &ASKING_LINKS,
	.verdict = verdict,
};

/* ---- what is sent ---- */

/* Group names are the prefix and a number. */
static size_t group_name_max(const struct options *o)
{
	return o->group_size ? strlen(o->group_prefix) + sizeof "18446744073709551615" - 1 : 0;
}

static void create_templates(struct sender *s, const struct options *o, const char *content)
{
	struct message_options m = {
		.content = content,
		.content_bytes = o->content_size_bytes,
		.check_content = o->check_content,
		.map = o->content_map.items,
		.map_count = o->content_map.count,
		.sequence = o->sequence,
		.timestamp = o->timestamp,
		.durable = o->durable,
		.has_ttl = o->has_ttl,
		.ttl_ms = (uint32_t)o->ttl_ms,
		.has_priority = o->has_priority,
		.priority = (uint8_t)o->priority,
		.message_id = o->message_id,
		.user_id = o->user_id,
		.subject = o->subject,
		.reply_to = s->questions.used ? s->questions.reply_to : o->reply_to,
		.id_prefix = s->questions.used ? s->questions.prefix : NULL,
		.correlation_id = o->correlation_id,
		.content_type = o->content_type,
		.properties = o->properties.items,
		.property_count = o->properties.count,
		.group_name_max = group_name_max(o),
		.group_key = o->group_key,
	};
	message_template_create(&s->template, &m);
	m.content = MESSAGE_EOS;
	m.content_bytes = MESSAGE_EOS_BYTES;
	m.check_content = false;
	m.map_count = m.group_name_max = 0;
	m.id_prefix = NULL;
	m.reply_to = s->questions.used ? NULL : o->reply_to; /* nobody waits for an answer */
	message_template_create(&s->eos, &m);
}

/* Brokers exist that grant credit without end and settle late. The library has about 1 KiB for each
 * unsettled message, and keeps the room that its bytes took. */
static uint64_t default_max_unsettled(const struct message_template *t)
{
	uint64_t fitting = UNSETTLED_BYTES / (UNSETTLED_EACH_BYTES + t->length);
	return fitting > UNSETTLED_LEAST ? fitting : UNSETTLED_LEAST;
}

static void create(struct sender *s, struct options *o)
{
	STAILQ_INIT(&s->links);
	STAILQ_INIT(&s->lost);
	s->options = o;
	asking_create(&s->questions, o);
	char *content = content_read(o);
	create_templates(s, o, content);
	free(content);
	content_create(&s->content, o, s->template.reserve);
	s->groups = (struct groups_plan){.size = o->group_size,
		.randomize = o->group_randomize_size,
		.interleave = o->group_interleave};
	s->group = UINT64_MAX;
	s->group_name = malloc(group_name_max(o) + 1);
	if (!s->group_name)
		fatal(EXIT_INTERNAL, "name of a group");
	pacing_create(&s->pacing, o, &s->worker.stats);
	s->max_unsettled =
		o->max_unsettled ? o->max_unsettled : default_max_unsettled(&s->template);
	if (s->max_unsettled < o->batch && !s->pacing.used)
		s->max_unsettled = o->batch;
	s->keeps = o->reconnect_attempts && !o->presettled;
	s->times_batches = o->timings & TIMING_BIT(TIMING_BATCH_LAST);
	s->notes = s->pacing.used || s->times_batches || s->questions.used;
	s->alike = !s->content.varies && !o->group_size && !s->keeps;
	s->tsc_base = o->tsc ? clock_ticks() : 0;
	s->tsc_base_ns = clock_monotonic_ns();
}

static void destroy(struct sender *s)
{
	outgoing_forget(s);
	content_destroy(&s->content);
	message_template_destroy(&s->template);
	message_template_destroy(&s->eos);
	asking_destroy(&s->questions);
	free(s->group_name);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct sender sender;
	options_parse(&options, PROGRAM_PSEND, argc, argv);
	create(&sender, &options);
	int code = reporter_run(&sender.worker, &options, &ROLE, &sender, argv);
	destroy(&sender);
	return code;
}
