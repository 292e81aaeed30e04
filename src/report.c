#include "report.h"

#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const struct report_format *const report_formats[REPORT_FORMATS] = {
	&report_text, &report_csv, &report_json};

/* One more place to report to. */
void report_add_sink(
	struct report *r, const struct report_format *format, FILE *out, const char *name)
{
	if (r->sink_count == REPORT_SINKS_MAX)
		fatalx(EXIT_INTERNAL, "report: too many sinks");
	r->sinks[r->sink_count++] = (struct report_sink){format, out, name, false};
}

/* What cannot be written is said once; the run goes on. */
static void flush(struct report_sink *sink)
{
	if (!fflush(sink->out) && !ferror(sink->out))
		return;
	if (!sink->failed)
		complain("%s: cannot write the report: %s", sink->name, strerror(errno));
	sink->failed = true;
}

/* CALL is a member of the format with its arguments after the stream and the run. */
#define TO_ALL_SINKS(R, MEMBER, ...)                                                               \
	for (struct report_sink *sink = (R)->sinks; sink < (R)->sinks + (R)->sink_count; sink++) { \
		if (!sink->format->MEMBER)                                                         \
			continue;                                                                  \
		sink->format->MEMBER(sink->out, (R)->run, ##__VA_ARGS__);                          \
		flush(sink);                                                                       \
	}

/* The configuration. */
void report_start(struct report *r)
{
	TO_ALL_SINKS(r, start);
}

/* The peer may start. */
void report_is_ready(struct report *r, const struct report_ready *ready)
{
	TO_ALL_SINKS(r, ready, ready);
}

/* One line, in most formats. */
void report_interval(struct report *r, const struct report_period *period)
{
	TO_ALL_SINKS(r, interval, period);
}

/* Something failed. */
void report_error(struct report *r, const struct failure *failure)
{
	TO_ALL_SINKS(r, error, failure);
}

/* The end. */
void report_summary(struct report *r, const struct report_summary *summary)
{
	TO_ALL_SINKS(r, summary, summary);
}

/* Some errors show only here. */
bool report_close(struct report *r)
{
	bool good = true;
	for (struct report_sink *sink = r->sinks; sink < r->sinks + r->sink_count; sink++) {
		flush(sink);
		if (fclose(sink->out) && !sink->failed) {
			complain("%s: cannot write the report: %s", sink->name, strerror(errno));
			sink->failed = true;
		}
		good = good && !sink->failed;
	}
	return good;
}

/* Batches have theirs in an object of their own, as stalls have. */
const char *report_timing_name(const struct report_run *run, enum timing timing)
{
	switch (timing) {
	case TIMING_LATENCY: return run->sender ? "settlement_ns" : "latency_ns";
	case TIMING_SEND_DELAY: return "send_delay_ns";
	case TIMING_ROUND_TRIP: return "round_trip_ns";
	default: return NULL;
	}
}

static double per_s(uint64_t amount, int64_t ns)
{
	return ns > 0 ? (double)amount * NS_PER_S / (double)ns : NAN;
}

/* Messages per second of its length. */
double report_rate_per_s(const struct report_period *p)
{
	return per_s(p->stats.n.messages, p->end_ns - p->start_ns);
}

/* Bytes of bodies per second of its length. */
double report_bytes_per_s(const struct report_period *p)
{
	return per_s(p->stats.n.content_bytes, p->end_ns - p->start_ns);
}

/* Of one processor. */
double report_cpu_percent(const struct report_period *p)
{
	return per_s(p->stats.n.cpu_user_ns + p->stats.n.cpu_system_ns,
		       (int64_t)p->stats.n.cpu_span_ns)
		/ NS_PER_S * 100;
}

/* Share of the time without credit. */
double report_stalled_percent(const struct report_period *p)
{
	return per_s(p->stats.n.stalled_ns, p->end_ns - p->start_ns) / NS_PER_S * 100;
}

/* Mean time of a send call. */
double report_call_ns(const struct report_period *p)
{
	return p->stats.n.messages ? (double)p->stats.n.call_ns / (double)p->stats.n.messages : NAN;
}

/* Of a schedule the time that it has run: each message has its gap, also the last. */
static int64_t traffic_ns(const struct report_summary *s)
{
	int64_t paced_ns = (int64_t)s->total.stats.n.paced_ns;
	return paced_ns ? paced_ns : s->last_ns - s->first_ns;
}

/* From the first message to the last, not of the whole length. */
double report_summary_rate_per_s(const struct report_summary *s)
{
	return per_s(s->total.stats.n.messages, traffic_ns(s));
}

/* The same for the bodies' bytes. */
double report_summary_bytes_per_s(const struct report_summary *s)
{
	return per_s(s->total.stats.n.content_bytes, traffic_ns(s));
}

/* What was sent; what was skipped was not. */
double report_achieved_per_s(const struct report_period *p)
{
	return per_s(p->stats.n.messages, (int64_t)p->stats.n.paced_ns);
}

/* Who has sent nothing has not sent one too few. */
enum report_rate report_rate(const struct report_period *p)
{
	const struct counters *n = &p->stats.n;
	if (n->due <= p->stats.just_due && !n->messages)
		return RATE_UNKNOWN;
	double due = (double)n->due, just_due = (double)p->stats.just_due;
	if (p->stats.overrun_ns > SCHEDULE_LATE_NS && p->stats.overrun_ns > n->paced_ns / 1000)
		return RATE_MISSED;
	double allowed = n->messages ? fmax(due / 1000, 1) : 0;
	return (double)n->messages + just_due + allowed >= due ? RATE_MET : RATE_MISSED;
}

/* Two clocks, read at the same times. */
double report_ticks_per_s(const struct report_period *p)
{
	return per_s(p->stats.n.tsc_ticks, (int64_t)p->stats.n.tsc_ns);
}

/* The largest of the causes, EXCEPT for one that may be none. */
static enum time_cause largest(const struct report_period *p, enum time_cause except)
{
	const uint64_t *time_ns = p->stats.n.time_ns;
	enum time_cause most = TIME_CAUSES;
	for (enum time_cause c = 0; c < TIME_CAUSES; c++)
		if (c != except && time_ns[c]
			&& (most == TIME_CAUSES || time_ns[c] > time_ns[most]))
			most = c;
	return most;
}

/* Of what was not according to plan. */
enum time_cause report_obstacle(const struct report_period *p)
{
	enum time_cause cause = largest(p, TIME_PACING);
	int64_t length_ns = p->end_ns - p->start_ns;
	bool matters = cause < TIME_CAUSES
		&& p->stats.n.time_ns[cause] >= (uint64_t)(length_ns > 0 ? length_ns : 0) / 10;
	return matters ? cause : TIME_CAUSES;
}

/* Where most of the time went. */
enum time_cause report_limit(const struct report_period *p)
{
	return largest(p, TIME_CAUSES);
}
