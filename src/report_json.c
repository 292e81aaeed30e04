/* One JSON object a line. Units are in the names; what does not exist is null. */
#define _GNU_SOURCE
#include "put.h"
#include "report.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SCHEMA "ppair/1"

/* The processor's name, from /proc. */
static void put_cpu_model(json_t *object)
{
	FILE *info = fopen("/proc/cpuinfo", "re");
	char line[256], model[200] = "";
	while (info && !*model && fgets(line, sizeof line, info))
		sscanf(line, "model name : %199[^\n]", model);
	if (info)
		fclose(info);
	json_t *cpu = json_object();
	put_text(cpu, "model", model);
	put_number(cpu, "count", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_object_set_new(object, "cpu", cpu);
}

static void put_host(json_t *object)
{
	struct utsname name;
	uname(&name);
	put_text(object, "host", name.nodename);
	put_cpu_model(object);
	char kernel[sizeof name.sysname + sizeof name.release + sizeof name.machine];
	snprintf(kernel, sizeof kernel, "%s %s %s", name.sysname, name.release, name.machine);
	put_text(object, "kernel", kernel);
}

static json_t *list_of(const struct report_value *v)
{
	json_t *list = json_array();
	for (size_t i = 0; i < v->list.count; i++)
		json_array_append_new(list, put_text_value(v->list.items[i]));
	return list;
}

static void put_option(json_t *object, const struct report_value *v)
{
	switch (v->type) {
	case VALUE_NULL: put_null(object, v->name); break;
	case VALUE_BOOLEAN: json_object_set_new(object, v->name, json_boolean(v->boolean)); break;
	case VALUE_INTEGER: put_number(object, v->name, v->integer); break;
	case VALUE_REAL: put_real(object, v->name, v->real); break;
	case VALUE_TEXT: put_text(object, v->name, v->text); break;
	case VALUE_LIST: json_object_set_new(object, v->name, list_of(v)); break;
	case VALUE_NO_LIMIT: put_text(object, v->name, "no limit"); break;
	}
}

static void json_start(FILE *out, const struct report_run *run)
{
	json_t *object = put_event("start");
	put_text(object, "schema", SCHEMA);
	put_text(object, "program", run->program);
	put_text(object, "version", PPAIR_VERSION);
	json_t *libraries = json_object();
	for (size_t i = 0; i < 2; i++)
		put_text(libraries, run->libraries[i][0], run->libraries[i][1]);
	json_object_set_new(object, "libraries", libraries);
	json_t *argv = json_array();
	for (char **argument = run->argv; *argument; argument++) {
		json_t *text = json_string(*argument);
		json_array_append_new(argv, text ? text : json_string("?"));
	}
	json_object_set_new(object, "argv", argv);
	json_t *options = json_object();
	for (size_t i = 0; i < run->option_count; i++)
		put_option(options, &run->options[i]);
	json_object_set_new(object, "options", options);
	put_host(object);
	put_number(object, "pid", (uint64_t)getpid());
	put_text(object, "clock", run->clock == CLOCK_KIND_REALTIME ? "realtime" : "monotonic");
	put_time(object, run->started_ns);
	put_line(out, object);
}

static void json_ready(FILE *out, const struct report_run *run, const struct report_ready *ready)
{
	(void)run;
	json_t *object = put_event("ready");
	json_object_set_new(object, "listening", json_boolean(ready->listening));
	put_text(object, "host", ready->host);
	put_number(object, "port", strtoull(ready->port, NULL, 10));
	put_text(object, "address", ready->address);
	json_t *tls = ready->tls_protocol && *ready->tls_protocol ? json_object() : json_null();
	if (json_is_object(tls)) {
		put_text(tls, "protocol", ready->tls_protocol);
		put_text(tls, "cipher", ready->tls_cipher);
	}
	json_object_set_new(object, "tls", tls);
	put_text(object, "sasl", ready->sasl_mechanism);
	put_time(object, ready->at_ns);
	put_line(out, object);
}

static void json_error(FILE *out, const struct report_run *run, const struct failure *failure)
{
	(void)run;
	json_t *object = put_event("error");
	put_text(object, "what", failure->what);
	put_text(object, "condition", failure->condition);
	put_text(object, "description", failure->description);
	put_number(object, "exit_code", failure->code);
	put_line(out, object);
}

static json_t *buckets(const struct histogram *h)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (h->buckets[i])
			json_array_append_new(list,
				json_pack("[I, I]", (json_int_t)histogram_lowest(i),
					(json_int_t)h->buckets[i]));
	return list;
}

static void put_percentile(json_t *object, double percent, const struct histogram *h,
	const struct histogram_summary *summary)
{
	char name[32];
	snprintf(name, sizeof name, "p%.12g", percent);
	if (summary->count)
		put_number(object, name, (uint64_t)histogram_percentile(h, summary, percent));
	else
		put_null(object, name);
}

static json_t *distribution(
	const struct report_run *run, const struct histogram *h, bool with_buckets)
{
	struct histogram_summary s;
	histogram_summarize(h, &s);
	json_t *object = json_object();
	put_number(object, "count", s.count);
	put_number_if(object, "min", s.count, (uint64_t)s.min);
	put_number_if(object, "sum", s.count && h->sum <= INT64_MAX, (uint64_t)h->sum);
	put_real(object, "mean", s.count ? s.mean : NAN);
	put_real(object, "stddev", s.count ? s.stddev : NAN);
	for (size_t i = 0; i < run->percentile_count; i++)
		put_percentile(object, run->percentiles[i], h, &s);
	put_number_if(object, "max", s.count, (uint64_t)s.max);
	put_number(object, "negative", h->negative);
	if (h->negative)
		json_object_set_new(object, "lowest", json_integer(h->lowest));
	else
		put_null(object, "lowest");
	put_number(object, "overflow", h->overflow);
	if (with_buckets)
		json_object_set_new(object, "buckets", buckets(h));
	return object;
}

/* Of something that the options have not asked for it is null. */
static void put_timing(json_t *object, const struct report_run *run, const char *name,
	const struct stats *s, enum timing timing, bool with_buckets)
{
	if (s->timings_used & TIMING_BIT(timing))
		json_object_set_new(
			object, name, distribution(run, &s->timings[timing], with_buckets));
	else
		put_null(object, name);
}

static json_t *received(const struct report_run *run, const struct counters *n)
{
	json_t *object = json_object();
	put_number(object, "received", n->messages);
	/* in an interval, more may come late than is passed over */
	json_object_set_new(object, "lost", json_integer((json_int_t)(n->skipped - n->reordered)));
	put_number(object, "duplicated", n->duplicated);
	put_number(object, "reordered", n->reordered);
	put_number(object, "redelivered", n->redelivered);
	put_number(object, "aborted", n->aborted);
	put_number(object, "no_sequence", n->no_sequence);
	put_number(object, "no_timestamp", n->no_timestamp);
	put_number_if(object, "corrupted", run->checks_content, n->corrupted);
	put_number_if(object, "answers", run->answers, n->answers);
	put_number_if(object, "unanswerable", run->answers, n->unanswerable);
	return object;
}

static json_t *sent(const struct report_run *run, const struct counters *n)
{
	json_t *object = json_object();
	put_number(object, "sent", n->messages);
	put_number_if(object, "accepted", !run->presettled, n->accepted);
	put_number_if(object, "rejected", !run->presettled, n->rejected);
	put_number_if(object, "released", !run->presettled, n->released);
	put_number_if(object, "modified", !run->presettled, n->modified);
	put_number_if(object, "no_outcome", !run->presettled, n->no_outcome);
	put_number_if(object, "resent", !run->presettled, n->resent);
	put_number_if(object, "answered", run->asks, n->answered);
	put_number_if(object, "unmatched", run->asks, n->unmatched);
	return object;
}

static json_t *messages(const struct report_run *run, const struct counters *n)
{
	return run->sender ? sent(run, n) : received(run, n);
}

static json_t *credit(const struct report_run *run, const struct stats *s, bool with_buckets)
{
	json_t *object = json_object();
	if (run->sender) {
		put_number(object, "blocked", s->n.blocked);
		put_number(object, "stalls", s->n.stalls);
		put_seconds(object, "stalled_s", s->n.stalled_ns);
		put_timing(object, run, "stall_ns", s, TIMING_STALL, with_buckets);
	} else {
		put_number(object, "grants", s->n.grants);
		put_number(object, "granted", s->n.granted);
		put_number_if(object, "lowest", s->credit_lowest != UINT32_MAX, s->credit_lowest);
	}
	put_number(object, "frames_in", s->n.frames_in);
	put_number(object, "frames_out", s->n.frames_out);
	return object;
}

static json_t *busy_poll(const struct report_run *run, const struct counters *n)
{
	if (!run->busy_polls)
		return json_null();
	json_t *object = json_object();
	put_number(object, "polls", n->polls);
	put_seconds(object, "spun_s", n->spun_ns);
	return object;
}

static json_t *pacing(const struct report_run *run, const struct report_period *p)
{
	const struct counters *n = &p->stats.n;
	enum report_rate rate = report_rate(p);
	if (!(run->send_rate_per_s > 0))
		return json_null();
	json_t *object = json_object();
	put_real(object, "target_per_s", run->send_rate_per_s);
	put_real(object, "achieved_per_s", report_achieved_per_s(p));
	put_number(object, "due", n->due);
	put_number(object, "late", n->late);
	put_number(object, "skipped", n->slots_skipped);
	json_object_set_new(object, "rate_met",
		rate == RATE_UNKNOWN ? json_null() : json_boolean(rate == RATE_MET));
	enum time_cause obstacle = rate == RATE_MISSED ? report_obstacle(p) : TIME_CAUSES;
	put_text(object, "missed_for", obstacle == TIME_CAUSES ? NULL : time_cause_name(obstacle));
	return object;
}

static json_t *batches(
	const struct report_run *run, const struct report_period *p, bool with_buckets)
{
	if (!run->batch)
		return json_null();
	json_t *object = json_object();
	put_number(object, "size", run->batch);
	put_timing(object, run, "first_ns", &p->stats, TIMING_BATCH_FIRST, with_buckets);
	put_timing(object, run, "last_ns", &p->stats, TIMING_BATCH_LAST, with_buckets);
	put_timing(object, run, "last_ticks", &p->stats, TIMING_BATCH_TICKS, with_buckets);
	put_real(object, "tsc_per_s", report_ticks_per_s(p));
	return object;
}

static json_t *connection(const struct counters *n)
{
	json_t *object = json_object();
	put_number(object, "reconnects", n->reconnects);
	put_seconds(object, "disconnected_s", n->disconnected_ns);
	return object;
}

/* One that stands in the period itself. */
static void put_main_timing(json_t *object, const struct report_run *run, const struct stats *s,
	enum timing timing, bool with_buckets)
{
	put_timing(object, run, report_timing_name(run, timing), s, timing, with_buckets);
}

/* What intervals and summary have in common. */
static void put_period(json_t *object, const struct report_run *run, const struct report_period *p,
	bool with_buckets)
{
	const struct counters *n = &p->stats.n;
	put_seconds(object, "start_s", (uint64_t)p->start_ns);
	put_seconds(object, "end_s", (uint64_t)p->end_ns);
	put_number(object, "content_bytes", n->content_bytes);
	put_main_timing(object, run, &p->stats, TIMING_LATENCY, with_buckets);
	if (run->sender) {
		json_object_set_new(object, "pacing", pacing(run, p));
		put_main_timing(object, run, &p->stats, TIMING_SEND_DELAY, with_buckets);
		put_main_timing(object, run, &p->stats, TIMING_ROUND_TRIP, with_buckets);
		json_object_set_new(object, "batch", batches(run, p, with_buckets));
	}
	json_object_set_new(object, "credit", credit(run, &p->stats, with_buckets));
	json_object_set_new(object, "connection", connection(n));
	json_t *time = json_object();
	for (enum time_cause c = 0; c < TIME_CAUSES; c++)
		put_seconds(time, time_cause_name(c), n->time_ns[c]);
	json_object_set_new(object, "time_s", time);
	json_object_set_new(object, "busy_poll", busy_poll(run, n));
	enum time_cause limit = report_limit(p);
	put_text(object, "limited_by", limit == TIME_CAUSES ? NULL : time_cause_name(limit));
	if (run->sender)
		put_real(object, "call_ns", report_call_ns(p));
	json_t *cpu = json_object();
	put_seconds(cpu, "user_s", n->cpu_user_ns);
	put_seconds(cpu, "system_s", n->cpu_system_ns);
	put_seconds(cpu, "span_s", n->cpu_span_ns);
	put_real(cpu, "percent", report_cpu_percent(p));
	put_number(cpu, "switches_voluntary", n->switches_voluntary);
	put_number(cpu, "switches_involuntary", n->switches_involuntary);
	json_object_set_new(object, "cpu", cpu);
	put_number_if(object, "rss_bytes", p->memory.rss_bytes, p->memory.rss_bytes);
	put_number_if(object, "rss_peak_bytes", p->memory.rss_peak_bytes, p->memory.rss_peak_bytes);
}

static void json_interval(FILE *out, const struct report_run *run, const struct report_period *p)
{
	json_t *object = put_event("interval");
	put_number(object, "index", p->index);
	json_object_set_new(object, "partial", json_boolean(p->partial));
	json_object_set_new(object, "warmup", json_boolean(p->warmup));
	json_object_set_new(object, "messages", messages(run, &p->stats.n));
	put_real(object, "messages_per_s", report_rate_per_s(p));
	put_real(object, "bytes_per_s", report_bytes_per_s(p));
	put_period(object, run, p, false);
	put_line(out, object);
}

static void json_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	json_t *object = put_event("summary");
	put_text(object, "stop_reason", s->stop_reason);
	json_object_set_new(object, "interrupted", json_boolean(s->interrupted));
	json_object_set_new(object, "complete", json_boolean(s->complete));
	json_object_set_new(object, "exit_code", json_integer(s->exit_code));
	json_t *whole = messages(run, &s->whole);
	if (run->sender)
		put_number_if(whole, "unsettled", !run->presettled, s->unsettled);
	json_object_set_new(object, "messages", whole);
	put_number(object, "measured_messages", s->total.stats.n.messages);
	put_real(object, "messages_per_s", report_summary_rate_per_s(s));
	put_real(object, "bytes_per_s", report_summary_bytes_per_s(s));
	put_number_if(object, "began_time_ns", s->began_ns, (uint64_t)s->began_ns);
	bool any = s->last_ns > s->first_ns;
	put_real(object, "first_s", any ? (double)s->first_ns / NS_PER_S : NAN);
	put_real(object, "last_s", any ? (double)s->last_ns / NS_PER_S : NAN);
	put_seconds(object, "wall_s", (uint64_t)(s->total.end_ns - s->total.start_ns));
	put_period(object, run, &s->total, true);
	put_line(out, object);
}

const struct report_format report_json = {.name = "json",
	.start = json_start,
	.ready = json_ready,
	.interval = json_interval,
	.error = json_error,
	.summary = json_summary};
