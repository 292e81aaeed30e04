#include "report_columns.h"

#include <math.h>

static double seconds(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

static double percentile(const struct report_period *p, enum timing timing, double percent)
{
	const struct histogram *h = &p->stats.timings[timing];
	struct histogram_summary summary;
	if (!(p->stats.timings_used & TIMING_BIT(timing)))
		return NAN;
	histogram_summarize(h, &summary);
	return summary.count ? (double)histogram_percentile(h, &summary, percent) : NAN;
}

/* A count of the schedule, if there is one. */
static double of_schedule(const struct report_period *p, uint64_t count)
{
	return p->stats.timings_used & TIMING_BIT(TIMING_SEND_DELAY) ? (double)count : NAN;
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
#define PERCENTILES(NAME, TIMING)                                                                  \
	COLUMN(NAME##_p50, percentile(p, TIMING, 50))                                              \
	COLUMN(NAME##_p99, percentile(p, TIMING, 99))                                              \
	COLUMN(NAME##_max, percentile(p, TIMING, 100))
PERCENTILES(latency, TIMING_LATENCY)
PERCENTILES(send_delay, TIMING_SEND_DELAY)
PERCENTILES(round_trip, TIMING_ROUND_TRIP)
PERCENTILES(batch, TIMING_BATCH_LAST)
COLUMN(due, of_schedule(p, p->stats.n.due))
COLUMN(late, of_schedule(p, p->stats.n.late))
COLUMN(skipped, of_schedule(p, p->stats.n.slots_skipped))
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

/* What columns need. */
#define DELAY  TIMING_BIT(TIMING_SEND_DELAY)
#define ANSWER TIMING_BIT(TIMING_ROUND_TRIP)
#define BATCH  TIMING_BIT(TIMING_BATCH_LAST)

/* In the order of the table. */
const struct report_column report_columns[] = {
	{"start_s", NULL, 0, 0, 1, SIDE_BOTH, start_s, 0},
	{"end_s", "time s", 8, 1, 1, SIDE_BOTH, end_s, 0},
	{"messages", "messages", 10, 0, 1, SIDE_BOTH, messages, 0},
	{"messages_per_s", "msg/s", 9, 0, 1, SIDE_BOTH, report_rate_per_s, 0},
	{"content_bytes", NULL, 0, 0, 1, SIDE_BOTH, content_bytes, 0},
	{"bytes_per_s", "MB/s", 8, 1, 1e6, SIDE_BOTH, report_bytes_per_s, 0},
	{"call_ns", "call ns", 8, 0, 1, SIDE_SENDER, report_call_ns, 0},
	{"settlement_p50_ns", "settle us p50", 14, 1, 1e3, SIDE_SENDER, latency_p50, 0},
	{"settlement_p99_ns", "p99", 9, 1, 1e3, SIDE_SENDER, latency_p99, 0},
	{"settlement_max_ns", "max", 9, 1, 1e3, SIDE_SENDER, latency_max, 0},
	{"send_delay_p50_ns", "delay us p50", 13, 1, 1e3, SIDE_SENDER, send_delay_p50, DELAY},
	{"send_delay_p99_ns", "p99", 9, 1, 1e3, SIDE_SENDER, send_delay_p99, DELAY},
	{"send_delay_max_ns", "max", 9, 1, 1e3, SIDE_SENDER, send_delay_max, DELAY},
	{"round_trip_p50_ns", "rtt us p50", 11, 1, 1e3, SIDE_SENDER, round_trip_p50, ANSWER},
	{"round_trip_p99_ns", "p99", 9, 1, 1e3, SIDE_SENDER, round_trip_p99, ANSWER},
	{"round_trip_max_ns", "max", 9, 1, 1e3, SIDE_SENDER, round_trip_max, ANSWER},
	{"batch_p50_ns", "batch us p50", 13, 1, 1e3, SIDE_SENDER, batch_p50, BATCH},
	{"batch_p99_ns", "p99", 9, 1, 1e3, SIDE_SENDER, batch_p99, BATCH},
	{"batch_max_ns", "max", 9, 1, 1e3, SIDE_SENDER, batch_max, BATCH},
	{"due", NULL, 0, 0, 1, SIDE_SENDER, due, 0},
	{"late", "late", 7, 0, 1, SIDE_SENDER, late, DELAY},
	{"skipped", NULL, 0, 0, 1, SIDE_SENDER, skipped, 0},
	{"blocked", "blocked", 8, 0, 1, SIDE_SENDER, blocked, 0},
	{"stalls", NULL, 0, 0, 1, SIDE_SENDER, stalls, 0},
	{"stalled_s", NULL, 0, 0, 1, SIDE_SENDER, stalled_s, 0},
	{"stalled_percent", "stalled %", 10, 1, 1, SIDE_SENDER, report_stalled_percent, 0},
	{"latency_p50_ns", "lat us p50", 11, 1, 1e3, SIDE_RECEIVER, latency_p50, 0},
	{"latency_p99_ns", "p99", 9, 1, 1e3, SIDE_RECEIVER, latency_p99, 0},
	{"latency_max_ns", "max", 9, 1, 1e3, SIDE_RECEIVER, latency_max, 0},
	{"credit_lowest", "credit min", 11, 0, 1, SIDE_RECEIVER, lowest, 0},
	{"grants", NULL, 0, 0, 1, SIDE_RECEIVER, grants, 0},
	{"granted", NULL, 0, 0, 1, SIDE_RECEIVER, granted, 0},
	{"frames_in", NULL, 0, 0, 1, SIDE_BOTH, frames_in, 0},
	{"frames_out", NULL, 0, 0, 1, SIDE_BOTH, frames_out, 0},
	{"time_busy_s", NULL, 0, 0, 1, SIDE_BOTH, time_busy, 0},
	{"time_credit_s", NULL, 0, 0, 1, SIDE_BOTH, time_credit, 0},
	{"time_session_s", NULL, 0, 0, 1, SIDE_BOTH, time_session, 0},
	{"time_socket_s", NULL, 0, 0, 1, SIDE_BOTH, time_socket, 0},
	{"time_settlement_s", NULL, 0, 0, 1, SIDE_BOTH, time_settlement, 0},
	{"time_pacing_s", NULL, 0, 0, 1, SIDE_BOTH, time_pacing, 0},
	{"time_idle_s", NULL, 0, 0, 1, SIDE_BOTH, time_idle, 0},
	{"cpu_percent", "cpu %", 6, 0, 1, SIDE_BOTH, report_cpu_percent, 0},
	{"rss_bytes", "rss MB", 7, 1, 1e6, SIDE_BOTH, rss, 0},
	{"warmup", NULL, 0, 0, 1, SIDE_BOTH, warmup, 0},
	{"partial", NULL, 0, 0, 1, SIDE_BOTH, partial, 0},
	{0},
};

/* The other program's are not there. */
bool report_has(const struct report_run *run, const struct report_column *column)
{
	return column->side & (run->sender ? SIDE_SENDER : SIDE_RECEIVER);
}

/* The summary's own rate is that of the time in which there was traffic. */
double report_total(const struct report_column *column, const struct report_summary *s)
{
	if (column->value == report_rate_per_s)
		return report_summary_rate_per_s(s);
	if (column->value == report_bytes_per_s)
		return report_summary_bytes_per_s(s);
	return column->value(&s->total);
}
