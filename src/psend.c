/* psend: sends AMQP 1.0 messages as fast as libqpid-proton can. Layer 5. */
#define _GNU_SOURCE
#include "clock.h"
#include "fatal.h"
#include "outgoing.h"
#include "reporter.h"

#include <stdlib.h>
#include <string.h>

/* ---- links ---- */

static void attached(void *self, pn_link_t *link)
{
	outgoing_attach(self, link);
}

static void detached(void *self, pn_link_t *link)
{
	outgoing_detach(self, link);
}

static void deliveries(void *self, pn_link_t *link, struct engine_batch *batch)
{
	outgoing_settle(self, pn_link_get_context(link), batch);
}

/* ---- send ---- */

/* Everything is sent, settled, and out of the library. */
static bool finished(struct sender *s)
{
	struct outgoing *o;
	if (outgoing_left(s) || s->parts)
		return false;
	STAILQ_FOREACH (o, &s->lost, next)
		if (o->again_count)
			return false;
	STAILQ_FOREACH (o, &s->links, next)
		if (outgoing_outstanding(o))
			return false;
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

static enum time_cause turn(void *self, int64_t now_ns)
{
	struct sender *s = self;
	if (!worker_may_start(&s->worker, now_ns))
		return TIME_PACING;
	if (!STAILQ_EMPTY(&s->links))
		worker_begin(&s->worker, now_ns);
	enum time_cause cause = TIME_IDLE;
	struct outgoing *o;
	rotate(s);
	STAILQ_FOREACH (o, &s->links, next) {
		enum time_cause c = outgoing_turn(s, o, now_ns);
		if (c < cause)
			cause = c;
	}
	if (!s->options->duration_ns && finished(s))
		worker_stop(&s->worker, STOP_MESSAGES);
	return cause;
}

/* ---- end ---- */

static bool flushed(void *self)
{
	struct sender *s = self;
	int64_t now_ns = clock_monotonic_ns();
	bool all = true;
	struct outgoing *o;
	STAILQ_FOREACH (o, &s->links, next) {
		outgoing_finish(s, o, now_ns);
		all = all && !outgoing_outstanding(o);
	}
	return all;
}

static enum exit_code verdict(const void *self)
{
	const struct sender *s = self;
	const struct counters *n = &s->worker.stats.n;
	if (!s->options->presettled && (n->rejected || n->released || n->modified))
		return EXIT_REFUSED;
	if (s->worker.stats.unsettled || s->undelivered
		|| (s->options->messages && outgoing_left(s)))
		return EXIT_SHORT;
	return EXIT_DONE;
}

static const struct role ROLE = {
	.attached = attached,
	.detached = detached,
	.deliveries = deliveries,
	.turn = turn,
	.flushed = flushed,
	.verdict = verdict,
};

static void create_template(struct sender *s, const struct options *o)
{
	char *filler = NULL;
	if (!o->content_string) {
		filler = malloc(o->content_size_bytes + 1);
		if (!filler)
			fatal(EXIT_INTERNAL, "--content-size");
		memset(filler, 'X', o->content_size_bytes);
	}
	message_template_create(&s->template,
		&(struct message_options){
			.content = o->content_string ? o->content_string : filler,
			.content_bytes = o->content_size_bytes,
			.sequence = o->sequence,
			.timestamp = o->timestamp,
			.durable = o->durable,
			.has_ttl = o->has_ttl,
			.ttl_ms = (uint32_t)o->ttl_ms,
			.has_priority = o->has_priority,
			.priority = (uint8_t)o->priority,
		});
	free(filler);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct sender sender;
	options_parse(&options, PROGRAM_PSEND, argc, argv);
	sender.options = &options;
	STAILQ_INIT(&sender.links);
	STAILQ_INIT(&sender.lost);
	create_template(&sender, &options);
	int code = reporter_run(&sender.worker, &options, &ROLE, &sender, argv);
	outgoing_forget(&sender);
	message_template_destroy(&sender.template);
	return code;
}
