/* The format for people: a table of intervals, and below it what there is to say of the whole. */
#include "report_columns.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* There is no room for what nobody has asked for. */
static bool shows(const struct report_run *run, const struct report_column *column)
{
	return column->heading && report_has(run, column)
		&& (run->timings & column->needs) == column->needs;
}

static void text_start(FILE *out, const struct report_run *run)
{
	if (!run->header)
		return;
	for (const struct report_column *c = report_columns; c->name; c++)
		if (shows(run, c))
			fprintf(out, "%*s", c->width, c->heading);
	fputc('\n', out);
}

static void text_cell(FILE *out, const struct report_column *c, double value)
{
	if (isnan(value))
		fprintf(out, " %*s", c->width - 1, "-");
	else
		fprintf(out, " %*.*f", c->width - 1, c->decimals, value / c->divisor);
}

static void text_interval(FILE *out, const struct report_run *run, const struct report_period *p)
{
	for (const struct report_column *c = report_columns; c->name; c++)
		if (shows(run, c))
			text_cell(out, c, c->value(p));
	fprintf(out, "%s\n", p->warmup ? "  warm-up" : "");
}

/* Minimum, percentiles and maximum, of one value at least, each divided by DIVISOR. */
static void text_spread(FILE *out, const struct report_run *run, const struct histogram *h,
	const struct histogram_summary *summary, double divisor, int decimals)
{
	fprintf(out, "min %.*f", decimals, (double)summary->min / divisor);
	for (size_t i = 0; i < run->percentile_count; i++)
		fprintf(out, "  p%.12g %.*f", run->percentiles[i], decimals,
			(double)histogram_percentile(h, summary, run->percentiles[i]) / divisor);
	fprintf(out, "  max %.*f", decimals, (double)summary->max / divisor);
}

/* Nothing if the run does not have that timing. */
static void text_timing(FILE *out, const struct report_run *run, const char *name,
	const struct stats *stats, enum timing timing)
{
	const struct histogram *h = &stats->timings[timing];
	struct histogram_summary summary;
	if (!(stats->timings_used & TIMING_BIT(timing)))
		return;
	histogram_summarize(h, &summary);
	if (!summary.count) {
		fprintf(out, "%s us: -\n", name);
		return;
	}
	fprintf(out, "%s us: ", name);
	text_spread(out, run, h, &summary, NS_PER_US, 1);
	fprintf(out, "  mean %.1f  stddev %.1f\n", summary.mean / NS_PER_US,
		summary.stddev / NS_PER_US);
	if (h->negative)
		fprintf(out, "%s us: %" PRIu64 " negative, left out; the lowest was %.1f\n", name,
			h->negative, (double)h->lowest / NS_PER_US);
	if (h->overflow)
		fprintf(out, "%s us: %" PRIu64 " above one hour\n", name, h->overflow);
}

/* What is worth a word only if it happens. */
static void text_rare(FILE *out, const char *name, uint64_t count)
{
	if (count)
		fprintf(out, "  %s %" PRIu64, name, count);
}

static void text_received(FILE *out, const struct report_run *run, const struct counters *n)
{
	fprintf(out,
		"messages: received %" PRIu64 "  lost %" PRIu64 "  duplicated %" PRIu64
		"  reordered %" PRIu64 "  redelivered %" PRIu64,
		n->messages, n->skipped - n->reordered, n->duplicated, n->reordered,
		n->redelivered);
	if (run->checks_content)
		fprintf(out, "  corrupted %" PRIu64, n->corrupted);
	if (run->answers)
		fprintf(out, "  answers %" PRIu64, n->answers);
	text_rare(out, "unanswerable", n->unanswerable);
	text_rare(out, "no sequence", n->no_sequence);
	text_rare(out, "no timestamp", n->no_timestamp);
	text_rare(out, "aborted", n->aborted);
	fputc('\n', out);
}

static void text_sent(
	FILE *out, const struct report_run *run, const struct counters *n, uint64_t unsettled)
{
	fprintf(out, "messages: sent %" PRIu64, n->messages);
	if (!run->presettled)
		fprintf(out,
			"  accepted %" PRIu64 "  rejected %" PRIu64 "  released %" PRIu64
			"  modified %" PRIu64 "  unsettled %" PRIu64,
			n->accepted, n->rejected, n->released, n->modified, unsettled);
	if (run->asks)
		fprintf(out, "  answered %" PRIu64 "  unanswered %" PRIu64, n->answered,
			n->messages > n->answered ? n->messages - n->answered : 0);
	text_rare(out, "unmatched answers", n->unmatched);
	text_rare(out, "no outcome", n->no_outcome);
	text_rare(out, "resent", n->resent);
	fputc('\n', out);
}

static void text_credit(FILE *out, const struct report_run *run, const struct report_period *p)
{
	const struct counters *n = &p->stats.n;
	if (run->sender)
		fprintf(out, "credit: blocked %" PRIu64 "  stalls %" PRIu64 "  stalled %.3f s",
			n->blocked, n->stalls, (double)n->stalled_ns / NS_PER_S);
	else
		fprintf(out, "credit: grants %" PRIu64 "  granted %" PRIu64, n->grants, n->granted);
	if (p->stats.credit_lowest != UINT32_MAX)
		fprintf(out, "  lowest %" PRIu32, p->stats.credit_lowest);
	fprintf(out, "  frames in %" PRIu64 "  out %" PRIu64 "\n", n->frames_in, n->frames_out);
}

/* The time of batches by the other clock, without a unit of time. */
static void text_ticks(FILE *out, const struct report_run *run, const struct report_period *p)
{
	const struct histogram *h = &p->stats.timings[TIMING_BATCH_TICKS];
	struct histogram_summary summary;
	if (!(p->stats.timings_used & TIMING_BIT(TIMING_BATCH_TICKS)))
		return;
	histogram_summarize(h, &summary);
	if (!summary.count) {
		fputs("last of batch, ticks: -\n", out);
		return;
	}
	fputs("last of batch, ticks: ", out);
	text_spread(out, run, h, &summary, 1, 0);
	fprintf(out, "  of %.6g million a second\n", report_ticks_per_s(p) / 1e6);
}

/* As it is the limit. */
static const char *text_cause(const struct report_run *run, enum time_cause cause)
{
	if (cause == TIME_CAUSES)
		return "-";
	if (cause == TIME_BUSY)
		return run->sender ? "sender cpu" : "receiver cpu";
	return time_cause_name(cause);
}

static void text_pacing(FILE *out, const struct report_run *run, const struct report_period *p)
{
	const struct counters *n = &p->stats.n;
	double achieved_per_s = report_achieved_per_s(p);
	if (!(run->send_rate_per_s > 0))
		return;
	fprintf(out, "pacing: target %.9g msg/s", run->send_rate_per_s);
	if (isnan(achieved_per_s)) {
		fputs("  achieved -\n", out);
		return;
	}
	fprintf(out, "  achieved %.9g  due %" PRIu64 "  late %" PRIu64 "  skipped %" PRIu64,
		achieved_per_s, n->due, n->late, n->slots_skipped);
	enum report_rate rate = report_rate(p);
	if (rate == RATE_MISSED)
		fprintf(out, "  rate missed for %s\n", text_cause(run, report_obstacle(p)));
	else
		fputs(rate == RATE_MET ? "  rate met\n" : "  rate -\n", out);
}

static void text_connection(FILE *out, const struct counters *n)
{
	if (n->reconnects || n->disconnected_ns)
		fprintf(out, "connection: reconnects %" PRIu64 "  disconnected %.3f s\n",
			n->reconnects, (double)n->disconnected_ns / NS_PER_S);
}

static void text_time(FILE *out, const struct report_run *run, const struct report_period *p)
{
	enum time_cause limit = report_limit(p);
	int64_t wall_ns = p->end_ns - p->start_ns;
	if (limit == TIME_CAUSES || wall_ns <= 0) {
		fputs("time: -\n", out);
		return;
	}
	fputs("time:", out);
	for (enum time_cause c = 0; c < TIME_CAUSES; c++)
		if (p->stats.n.time_ns[c])
			fprintf(out, " %s %.1f %% ", time_cause_name(c),
				100.0 * (double)p->stats.n.time_ns[c] / (double)wall_ns);
	fprintf(out, "  limited by %s\n", text_cause(run, limit));
}

static void text_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	const struct counters *n = &s->total.stats.n;
	for (const struct report_column *c = report_columns; c->name; c++) {
		if (!shows(run, c))
			continue;
		if (!strcmp(c->name, "end_s"))
			fprintf(out, "%*s", c->width, "total");
		else
			text_cell(out, c, report_total(c, s));
	}
	fputc('\n', out);
	if (run->sender)
		text_sent(out, run, &s->whole, s->unsettled);
	else
		text_received(out, run, &s->whole);
	text_timing(
		out, run, run->sender ? "settlement" : "latency", &s->total.stats, TIMING_LATENCY);
	text_timing(out, run, "send delay", &s->total.stats, TIMING_SEND_DELAY);
	text_timing(out, run, "round trip", &s->total.stats, TIMING_ROUND_TRIP);
	text_timing(out, run, "first of batch", &s->total.stats, TIMING_BATCH_FIRST);
	text_timing(out, run, "last of batch", &s->total.stats, TIMING_BATCH_LAST);
	text_ticks(out, run, &s->total);
	text_pacing(out, run, &s->total);
	text_credit(out, run, &s->total);
	text_connection(out, n);
	if (n->stalls)
		text_timing(out, run, "stall", &s->total.stats, TIMING_STALL);
	fprintf(out,
		"cpu: user %.2f s  system %.2f s  of %.3f s  switches %" PRIu64
		" voluntary, %" PRIu64 " involuntary;  rss peak %.1f MB\n",
		(double)n->cpu_user_ns / NS_PER_S, (double)n->cpu_system_ns / NS_PER_S,
		(double)n->cpu_span_ns / NS_PER_S, n->switches_voluntary, n->switches_involuntary,
		(double)s->total.memory.rss_peak_bytes / 1e6);
	if (run->busy_polls)
		fprintf(out, "busy-poll: %" PRIu64 " polls, spinning %.3f s\n", n->polls,
			(double)n->spun_ns / NS_PER_S);
	text_time(out, run, &s->total);
	if (s->exit_code)
		fprintf(out, "ended: %s, %s, exit code %d\n", s->stop_reason,
			s->complete ? "complete" : "not complete", s->exit_code);
}

const struct report_format report_text = {
	.name = "text", .start = text_start, .interval = text_interval, .summary = text_summary};
