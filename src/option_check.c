#define _GNU_SOURCE
#include "option_check.h"

#include "credit.h"
#include "fatal.h"
#include "mix.h"
#include "option_connection.h"
#include "option_message.h"
#include "option_table.h"
#include "schedule.h"
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_connection(struct options *o)
{
	option_connection_check(o);
	if (o->session_window_bytes && o->session_window_bytes < o->max_frame_bytes)
		fatalx(EXIT_USAGE, "--session-window: must hold at least one --max-frame");
	if (!o->container_id) {
		char host[32] = "";
		gethostname(host, sizeof host - 1);
		snprintf(o->default_id, sizeof o->default_id, "%s-%s-%d",
			program_invocation_short_name, host, getpid());
		o->container_id = o->default_id;
	}
	if (!o->link_name && !o->listen)
		o->link_name = o->container_id;
}

/* Neither twice the same seed nor one that JSON's readers would round. */
static uint64_t choose_seed(void)
{
	uint64_t state = mix_seed(clock_realtime_ns(), getpid());
	return 1 + mix_next(&state) % OPTIONS_SEED_MAX;
}

static void check_schedule(struct options *o)
{
	static const char *const OPEN_LOOP[] = {"poisson", "catch-up"};
	if (o->program != PROGRAM_PSEND)
		return;
	for (size_t i = 0; i < sizeof OPEN_LOOP / sizeof *OPEN_LOOP; i++)
		if (!(o->send_rate_per_s > 0) && option_given(o, OPEN_LOOP[i]))
			fatalx(EXIT_USAGE, "--%s: there is no schedule without --send-rate",
				OPEN_LOOP[i]);
	if (o->send_rate_per_s > SCHEDULE_RATE_MAX_PER_S)
		fatalx(EXIT_USAGE, "--send-rate: is above %.0f", SCHEDULE_RATE_MAX_PER_S);
	double batches_per_s = o->send_rate_per_s / (double)o->batch;
	if (o->poisson_seed && batches_per_s > SCHEDULE_POISSON_RATE_MAX_PER_S)
		fatalx(EXIT_USAGE, "--poisson: more than %.0f batches a second are too many",
			SCHEDULE_POISSON_RATE_MAX_PER_S);
	if (o->poisson_seed == UINT64_MAX)
		o->poisson_seed = choose_seed();
	if (o->send_rate_per_s > 0)
		return;
	if (o->presettled && o->batch > 1 && !o->round_trip)
		fatalx(EXIT_USAGE,
			"--batch: with --presettled there is nothing to wait for "
			"between batches, but for --send-rate");
	if (o->max_unsettled && o->max_unsettled < o->batch)
		fatalx(EXIT_USAGE, "--batch: %" PRIu64 " are more than --max-unsettled %" PRIu64,
			o->batch, o->max_unsettled);
}

/* What psend can time besides the usual. */
static void choose_timings(struct options *o)
{
	bool batches = option_given(o, "batch") && !o->presettled;
	o->timings = TIMING_BIT(TIMING_LATENCY);
	if (o->program != PROGRAM_PSEND)
		return;
	if (o->tsc && !option_given(o, "batch"))
		fatalx(EXIT_USAGE, "--tsc: there is no --batch to be timed");
	if (o->tsc && o->presettled)
		fatalx(EXIT_USAGE, "--tsc: with --presettled no batch is ever settled");
	if (o->tsc && o->send_rate_per_s > 0)
		fatalx(EXIT_USAGE,
			"--tsc: with --send-rate a batch is timed from when it was due, "
			"which that counter has not seen");
	if (o->hdr && o->presettled && !o->round_trip)
		fatalx(EXIT_USAGE,
			"--hdr: with --presettled nothing is settled; there would be "
			"nothing in it");
	if (o->tsc && !clock_has_ticks())
		fatalx(EXIT_USAGE,
			"--tsc: this processor has no time stamp counter that ticks "
			"evenly");
	o->timings |= TIMING_BIT(TIMING_STALL);
	if (o->send_rate_per_s > 0)
		o->timings |= TIMING_BIT(TIMING_SEND_DELAY);
	if (o->round_trip)
		o->timings |= TIMING_BIT(TIMING_ROUND_TRIP);
	if (batches)
		o->timings |= TIMING_BIT(TIMING_BATCH_FIRST) | TIMING_BIT(TIMING_BATCH_LAST);
	if (o->tsc)
		o->timings |= TIMING_BIT(TIMING_BATCH_TICKS);
}

static void check_load(struct options *o)
{
	if (o->program == PROGRAM_PSEND && o->duration_ns && !option_given(o, "messages"))
		o->messages = 0;
	if (o->presettled && o->max_unsettled && !o->round_trip)
		fatalx(EXIT_USAGE, "--max-unsettled: nothing is unsettled with --presettled");
	check_schedule(o);
	choose_timings(o);
}

/* Whether precv takes messages when they are due, one by one. */
static bool is_paced(const struct options *o)
{
	return o->work_ns || o->receive_rate_per_s > 0;
}

static void check_credit(struct options *o)
{
	if (o->program != PROGRAM_PRECV)
		return;
	if (o->drain_batch && is_paced(o))
		fatalx(EXIT_USAGE, "--drain-batch: messages are taken one by one with %s",
			o->work_ns ? "--work" : "--receive-rate");
	if (!option_given(o, "credit-low"))
		o->credit_low = o->credit / 2;
	if (o->credit_low >= o->credit)
		fatalx(EXIT_USAGE, "--credit-low: %" PRIu64 " is not below --credit %" PRIu64,
			o->credit_low, o->credit);
	if (!option_given(o, "credit-add"))
		o->credit_add = o->credit - o->credit_low;
	if (o->credit_low + o->credit_add > CREDIT_MAX)
		fatalx(EXIT_USAGE, "--credit-add: credit would exceed %d", CREDIT_MAX);
}

static void check_percentiles(struct options *o)
{
	char *list = strdupa(o->percentile_list), *rest = list, *item;
	while ((item = strsep(&rest, ","))) {
		double percent = 0;
		const char *error = units_parse_percentile(item, &percent);
		if (!error && o->percentile_count == OPTIONS_PERCENTILES_MAX)
			error = "is one too many";
		if (error)
			fatalx(EXIT_USAGE, "--percentiles: \"%s\" %s", item, error);
		o->percentiles[o->percentile_count++] = percent;
	}
}

/* The flags of a descriptor that must be open. */
static int check_descriptor(const char *option, uint64_t fd)
{
	int flags = fcntl((int)fd, F_GETFL);
	if (flags < 0)
		fatal(EXIT_USAGE, "%s: descriptor %" PRIu64, option, fd);
	return flags;
}

static void check_events(const struct options *o)
{
	int flags = check_descriptor("--events", o->events_fd);
	if ((flags & O_ACCMODE) == O_RDONLY)
		fatalx(EXIT_USAGE, "--events: descriptor %" PRIu64 " is not open for writing",
			o->events_fd);
	if (o->events_fd == STDOUT_FILENO && (o->print_content || o->print_headers))
		fatalx(EXIT_USAGE, "--events: descriptor 1 is for the messages that are printed");
}

/* Two options that name the same file; either may be NULL. */
static void refuse_same(
	const char *option, const char *file, const char *other_option, const char *other)
{
	if (file && other && !strcmp(file, other))
		fatalx(EXIT_USAGE, "--%s: is the same file as --%s", option, other_option);
}

static void check_report(struct options *o)
{
	if (o->report_total && (o->report_every || option_given(o, "interval")))
		fatalx(EXIT_USAGE, "--report-total: cannot be combined with --%s",
			o->report_every ? "report-every" : "interval");
	if (o->report_total || (o->report_every && !option_given(o, "interval")))
		o->interval_ns = 0;
	o->has_events = option_given(o, "events");
	if (o->has_events)
		check_events(o);
	refuse_same("hdr", o->hdr, "output", o->output);
	refuse_same("save-content", o->save_content, "output", o->output);
	refuse_same("save-content", o->save_content, "hdr", o->hdr);
	check_percentiles(o);
}

/* One item of a processor list: N or N-M. Returns what is wrong or NULL. */
static const char *add_cpus(const char *item, cpu_set_t *cpus)
{
	char *end;
	if (!isdigit((unsigned char)*item))
		return "is not a number";
	unsigned long first = strtoul(item, &end, 10), last = first;
	if (*end == '-' && isdigit((unsigned char)end[1]))
		last = strtoul(end + 1, &end, 10);
	if (*end || last < first)
		return "is not a number or a range";
	if (last >= CPU_SETSIZE)
		return "is too large";
	for (; first <= last; first++)
		CPU_SET(first, cpus);
	return NULL;
}

static void check_cpus(struct options *o)
{
	if (!o->cpu_list)
		return;
	char *list = strdupa(o->cpu_list), *rest = list, *item;
	while ((item = strsep(&rest, ","))) {
		const char *error = add_cpus(item, &o->cpus);
		if (error)
			fatalx(EXIT_USAGE, "--cpu: \"%s\" %s", item, error);
	}
	if (sched_setaffinity(0, sizeof o->cpus, &o->cpus))
		fatalx(EXIT_USAGE, "--cpu: \"%s\" is not among this machine's processors",
			o->cpu_list);
}

static void check_parent(struct options *o)
{
	o->has_parent_fd = option_given(o, "parent-fd");
	if (o->has_parent_fd)
		check_descriptor("--parent-fd", o->parent_fd);
}

/* Everything that more than one option decides. */
void option_check(struct options *o)
{
	check_connection(o);
	check_load(o);
	option_message_check(o);
	check_credit(o);
	check_report(o);
	check_cpus(o);
	check_parent(o);
	o->engine = (struct engine_options){
		.sender = o->program == PROGRAM_PSEND,
		.listen = o->listen,
		.host = o->peer.host,
		.port = o->peer.port,
		.address = o->peer.address,
		.container_id = o->container_id,
		.link_name = o->link_name,
		.reconnect_attempts = o->reconnect_attempts,
		.security = o->security,
		.connect_timeout_ns = (int64_t)o->connect_timeout_ns,
		.close_timeout_ns = (int64_t)o->close_timeout_ns,
		.idle_timeout_ms = (uint32_t)(o->idle_timeout_ns / NS_PER_MS),
		.max_frame_bytes = (uint32_t)o->max_frame_bytes,
		.session_window_bytes = o->session_window_bytes,
		.sndbuf_bytes = (int)o->sndbuf_bytes,
		.rcvbuf_bytes = (int)o->rcvbuf_bytes,
		.presettled = o->presettled,
		.busy_poll = o->busy_poll,
		.drain_batch = o->drain_batch,
	};
}
