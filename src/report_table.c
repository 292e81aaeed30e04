/* The two formats that are tables: text for people, CSV for spreadsheets. Both are made from one
 * list of columns. */
#include "report.h"

#include <inttypes.h>
#include <math.h>

enum side { SIDE_SENDER = 1, SIDE_RECEIVER = 2, SIDE_BOTH = 3 };

struct column {
	const char *name;    /* in CSV, with the unit */
	const char *heading; /* in text; NULL: not there */
	int width, decimals; /* in text */
	double divisor;      /* CSV's unit / DIVISOR = text's unit */
	enum side side;
	double (*value)(const struct report_period *p);
};

static double seconds(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

static double latency(const struct report_period *p, double percent)
{
	struct histogram_summary summary;
	histogram_summarize(&p->stats.latency, &summary);
	if (!summary.count)
		return NAN;
	return (double)histogram_percentile(&p->stats.latency, &summary, percent);
}

/* One function for each column that is not already a function of the report. */
#define COLUMN(NAME, EXPRESSION)                                                                   \
	static double NAME(const struct report_period *p)                                          \
	{                                                                                          \
		return (double)(EXPRESSION);                                                       \
	}
COLUMN(start_s, seconds(p->start_ns))
COLUMN(end_s, seconds(p->end_ns))
COLUMN(messages, p->stats.n.messages)
COLUMN(content_bytes, p->stats.n.content_bytes)
COLUMN(latency_p50, latency(p, 50))
COLUMN(latency_p99, latency(p, 99))
COLUMN(latency_max, latency(p, 100))
COLUMN(blocked, p->stats.n.blocked)
COLUMN(stalls, p->stats.n.stalls)
COLUMN(stalled_s, seconds((int64_t)p->stats.n.stalled_ns))
COLUMN(grants, p->stats.n.grants)
COLUMN(granted, p->stats.n.granted)
COLUMN(lowest, p->stats.credit_lowest == UINT32_MAX ? NAN : p->stats.credit_lowest)
COLUMN(frames_in, p->stats.n.frames_in)
COLUMN(frames_out, p->stats.n.frames_out)
COLUMN(rss, p->memory.rss_bytes ? (double)p->memory.rss_bytes : NAN)
COLUMN(warmup, p->warmup)
COLUMN(partial, p->partial)
COLUMN(time_busy, seconds((int64_t)p->stats.n.time_ns[TIME_BUSY]))
COLUMN(time_credit, seconds((int64_t)p->stats.n.time_ns[TIME_CREDIT]))
COLUMN(time_session, seconds((int64_t)p->stats.n.time_ns[TIME_SESSION]))
COLUMN(time_socket, seconds((int64_t)p->stats.n.time_ns[TIME_SOCKET]))
COLUMN(time_settlement, seconds((int64_t)p->stats.n.time_ns[TIME_SETTLEMENT]))
COLUMN(time_pacing, seconds((int64_t)p->stats.n.time_ns[TIME_PACING]))
COLUMN(time_idle, seconds((int64_t)p->stats.n.time_ns[TIME_IDLE]))

static const struct column COLUMNS[] = {
	{"start_s", NULL, 0, 0, 1, SIDE_BOTH, start_s},
	{"end_s", "time s", 8, 1, 1, SIDE_BOTH, end_s},
	{"messages", "messages", 10, 0, 1, SIDE_BOTH, messages},
	{"messages_per_s", "msg/s", 9, 0, 1, SIDE_BOTH, report_rate_per_s},
	{"content_bytes", NULL, 0, 0, 1, SIDE_BOTH, content_bytes},
	{"bytes_per_s", "MB/s", 8, 1, 1e6, SIDE_BOTH, report_bytes_per_s},
	{"call_ns", "call ns", 8, 0, 1, SIDE_SENDER, report_call_ns},
	{"settlement_p50_ns", "rtt us p50", 11, 1, 1e3, SIDE_SENDER, latency_p50},
	{"settlement_p99_ns", "p99", 9, 1, 1e3, SIDE_SENDER, latency_p99},
	{"settlement_max_ns", "max", 9, 1, 1e3, SIDE_SENDER, latency_max},
	{"blocked", "blocked", 8, 0, 1, SIDE_SENDER, blocked},
	{"stalls", NULL, 0, 0, 1, SIDE_SENDER, stalls},
	{"stalled_s", NULL, 0, 0, 1, SIDE_SENDER, stalled_s},
	{"stalled_percent", "stalled %", 10, 1, 1, SIDE_SENDER, report_stalled_percent},
	{"latency_p50_ns", "lat us p50", 11, 1, 1e3, SIDE_RECEIVER, latency_p50},
	{"latency_p99_ns", "p99", 9, 1, 1e3, SIDE_RECEIVER, latency_p99},
	{"latency_max_ns", "max", 9, 1, 1e3, SIDE_RECEIVER, latency_max},
	{"credit_lowest", "credit min", 11, 0, 1, SIDE_RECEIVER, lowest},
	{"grants", NULL, 0, 0, 1, SIDE_RECEIVER, grants},
	{"granted", NULL, 0, 0, 1, SIDE_RECEIVER, granted},
	{"frames_in", NULL, 0, 0, 1, SIDE_BOTH, frames_in},
	{"frames_out", NULL, 0, 0, 1, SIDE_BOTH, frames_out},
	{"time_busy_s", NULL, 0, 0, 1, SIDE_BOTH, time_busy},
	{"time_credit_s", NULL, 0, 0, 1, SIDE_BOTH, time_credit},
	{"time_session_s", NULL, 0, 0, 1, SIDE_BOTH, time_session},
	{"time_socket_s", NULL, 0, 0, 1, SIDE_BOTH, time_socket},
	{"time_settlement_s", NULL, 0, 0, 1, SIDE_BOTH, time_settlement},
	{"time_pacing_s", NULL, 0, 0, 1, SIDE_BOTH, time_pacing},
	{"time_idle_s", NULL, 0, 0, 1, SIDE_BOTH, time_idle},
	{"cpu_percent", "cpu %", 6, 0, 1, SIDE_BOTH, report_cpu_percent},
	{"rss_bytes", "rss MB", 7, 1, 1e6, SIDE_BOTH, rss},
	{"warmup", NULL, 0, 0, 1, SIDE_BOTH, warmup},
	{"partial", NULL, 0, 0, 1, SIDE_BOTH, partial},
};
#define COLUMN_COUNT (sizeof COLUMNS / sizeof *COLUMNS)

static bool has(const struct report_run *run, const struct column *column)
{
	return column->side & (run->sender ? SIDE_SENDER : SIDE_RECEIVER);
}

/* The summary's own rate is from first to last message. */
static double total_value(const struct column *column, const struct report_summary *s)
{
	if (column->value == report_rate_per_s)
		return report_summary_rate_per_s(s);
	if (column->value == report_bytes_per_s)
		return report_summary_bytes_per_s(s);
	return column->value(&s->total);
}

/* ---- text ---- */

static void text_start(FILE *out, const struct report_run *run)
{
	if (!run->header)
		return;
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++)
		if (c->heading && has(run, c))
			fprintf(out, "%*s", c->width, c->heading);
	fputc('\n', out);
}

static void text_cell(FILE *out, const struct column *c, double value)
{
	if (isnan(value))
		fprintf(out, " %*s", c->width - 1, "-");
	else
		fprintf(out, " %*.*f", c->width - 1, c->decimals, value / c->divisor);
}

static void text_interval(FILE *out, const struct report_run *run, const struct report_period *p)
{
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++)
		if (c->heading && has(run, c))
			text_cell(out, c, c->value(p));
	fprintf(out, "%s\n", p->warmup ? "  warm-up" : "");
}

static void text_distribution(
	FILE *out, const struct report_run *run, const char *name, const struct histogram *h)
{
	struct histogram_summary summary;
	histogram_summarize(h, &summary);
	if (!summary.count) {
		fprintf(out, "%s us: -\n", name);
		return;
	}
	fprintf(out, "%s us: min %.1f", name, (double)summary.min / NS_PER_US);
	for (size_t i = 0; i < run->percentile_count; i++)
		fprintf(out, "  p%.12g %.1f", run->percentiles[i],
			(double)histogram_percentile(h, &summary, run->percentiles[i]) / NS_PER_US);
	fprintf(out, "  max %.1f  mean %.1f  stddev %.1f\n", (double)summary.max / NS_PER_US,
		summary.mean / NS_PER_US, summary.stddev / NS_PER_US);
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

static void text_messages(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	const struct counters *n = &s->whole;
	if (!run->sender) {
		fprintf(out,
			"messages: received %" PRIu64 "  lost %" PRIu64 "  duplicated %" PRIu64
			"  reordered %" PRIu64 "  redelivered %" PRIu64,
			n->messages, n->skipped - n->reordered, n->duplicated, n->reordered,
			n->redelivered);
		if (run->checks_content)
			fprintf(out, "  corrupted %" PRIu64, n->corrupted);
		text_rare(out, "no sequence", n->no_sequence);
		text_rare(out, "no timestamp", n->no_timestamp);
		text_rare(out, "aborted", n->aborted);
		fputc('\n', out);
		return;
	}
	fprintf(out, "messages: sent %" PRIu64, n->messages);
	if (!run->presettled)
		fprintf(out,
			"  accepted %" PRIu64 "  rejected %" PRIu64 "  released %" PRIu64
			"  modified %" PRIu64 "  unsettled %" PRIu64,
			n->accepted, n->rejected, n->released, n->modified, s->unsettled);
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
	if (limit == TIME_BUSY)
		fprintf(out, "  limited by %s cpu\n", run->sender ? "sender" : "receiver");
	else
		fprintf(out, "  limited by %s\n", time_cause_name(limit));
}

static void text_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	const struct counters *n = &s->total.stats.n;
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++) {
		if (!c->heading || !has(run, c))
			continue;
		if (c->value == end_s)
			fprintf(out, "%*s", c->width, "total");
		else
			text_cell(out, c, total_value(c, s));
	}
	fputc('\n', out);
	text_messages(out, run, s);
	text_distribution(
		out, run, run->sender ? "settlement" : "latency", &s->total.stats.latency);
	text_credit(out, run, &s->total);
	text_connection(out, n);
	if (run->sender && n->stalls)
		text_distribution(out, run, "stall", &s->total.stats.stall);
	fprintf(out,
		"cpu: user %.2f s  system %.2f s  of %.3f s  switches %" PRIu64
		" voluntary, %" PRIu64 " involuntary;  rss peak %.1f MB\n",
		(double)n->cpu_user_ns / NS_PER_S, (double)n->cpu_system_ns / NS_PER_S,
		(double)n->cpu_span_ns / NS_PER_S, n->switches_voluntary, n->switches_involuntary,
		(double)s->total.memory.rss_peak_bytes / 1e6);
	text_time(out, run, &s->total);
	if (s->exit_code)
		fprintf(out, "ended: %s, %s, exit code %d\n", s->stop_reason,
			s->complete ? "complete" : "not complete", s->exit_code);
}

const struct report_format report_text = {
	.name = "text", .start = text_start, .interval = text_interval, .summary = text_summary};

/* ---- CSV ---- */

static void csv_start(FILE *out, const struct report_run *run)
{
	if (!run->header)
		return;
	fputs("event", out);
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++)
		if (has(run, c))
			fprintf(out, ",%s", c->name);
	fputc('\n', out);
}

static void csv_cell(FILE *out, double value)
{
	if (isnan(value))
		fputc(',', out);
	else
		fprintf(out, ",%.15g", value);
}

static void csv_interval(FILE *out, const struct report_run *run, const struct report_period *p)
{
	fputs("interval", out);
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++)
		if (has(run, c))
			csv_cell(out, c->value(p));
	fputc('\n', out);
}

static void csv_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	fputs("summary", out);
	for (const struct column *c = COLUMNS; c < COLUMNS + COLUMN_COUNT; c++)
		if (has(run, c))
			csv_cell(out, total_value(c, s));
	fputc('\n', out);
}

const struct report_format report_csv = {
	.name = "csv", .start = csv_start, .interval = csv_interval, .summary = csv_summary};
