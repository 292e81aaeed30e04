#define _GNU_SOURCE
#include "reporter.h"

#include "clock.h"
#include "parent.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <proton/version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How long a worker that is asked to leave at once may take before we leave without it. */
#define ABANDON_MS 1000
/* And how long our own leaving may take then, if nobody reads what we write. */
#define SIGNALS_GRACE_S (ABANDON_MS / 1000 + 1)

struct reporter {
	const struct options *options;
	struct worker *worker;
	struct report report;
	struct report_run run;
	struct report_value values[OPTIONS_MAX];
	char proton_version[32];
	int timer_fd, signal_fd;
	int signal;   /* that ended the run, or 0 */
	bool leaving; /* a second signal has come */
	bool finished;
	bool cut; /* the last period was ended by something else than the timer */
	int64_t began_ns, last_end_ns; /* monotonic; of measuring, and of the last period */
	uint64_t periods;
	struct stats last;                    /* at the end of the last period */
	uint64_t warmup_time_ns[TIME_CAUSES]; /* of all periods of the warm-up */
	struct report_period period;          /* scratch */
	struct report_summary summary;        /* grows with each period */
};

/* ---- where to ---- */

static FILE *open_file(const char *name)
{
	FILE *file = fopen(name, "we");
	if (!file)
		fatal(EXIT_INTERNAL, "%s", name);
	return file;
}

/* A copy: the descriptor may be one of the standard ones. */
static FILE *open_copy(int fd, const char *what)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	if (!file)
		fatal(EXIT_INTERNAL, "%s: descriptor %d", what, fd);
	return file;
}

/* Standard output has the messages alone then, and standard error the report. */
static bool prints(const struct options *o)
{
	return o->print_content || o->print_headers;
}

static void open_sinks(struct report *report, const struct options *o)
{
	if (!o->quiet && prints(o))
		report_add_sink(report, report_formats[o->format],
			open_copy(STDERR_FILENO, "standard error"), "standard error");
	else if (!o->quiet)
		report_add_sink(report, report_formats[o->format], stdout, "standard output");
	if (o->output)
		report_add_sink(report, &report_json, open_file(o->output), o->output);
	if (o->has_events)
		report_add_sink(
			report, &report_json, open_copy((int)o->events_fd, "--events"), "--events");
	if (o->hdr)
		report_add_sink(report, &report_hdr, open_file(o->hdr), o->hdr);
}

static void describe_run(struct reporter *r, const struct options *o, char **argv)
{
	snprintf(r->proton_version, sizeof r->proton_version, "%d.%d.%d", PN_VERSION_MAJOR,
		PN_VERSION_MINOR, PN_VERSION_POINT);
	r->run = (struct report_run){
		.program = program_invocation_short_name,
		.libraries = {{"libqpid-proton", r->proton_version}, {"jansson", JANSSON_VERSION}},
		.sender = o->program == PROGRAM_PSEND,
		.presettled = o->presettled,
		.checks_content = o->check_content,
		.header = o->report_header,
		.clock = o->clock,
		.send_rate_per_s = o->send_rate_per_s,
		.batch = o->timings & TIMING_BIT(TIMING_BATCH_LAST) ? o->batch : 0,
		.asks = o->round_trip,
		.answers = o->reply,
		.busy_polls = o->busy_poll,
		.timings = o->timings,
		.argv = argv,
		.options = r->values,
		.option_count = options_describe(o, r->values),
		.percentiles = o->percentiles,
		.percentile_count = o->percentile_count,
		.started_ns = clock_realtime_ns(),
	};
}

/* ---- periods ---- */

/* Whether a period is not of the length asked for, give or take what a turn may take. */
static bool is_short(const struct reporter *r, int64_t length_ns)
{
	int64_t interval_ns = (int64_t)r->options->interval_ns;
	return length_ns < interval_ns - interval_ns / 100;
}

/* Makes the period that ends with NOTE out of it and what came before. False if nothing has
 * happened since then: it has no length. */
static bool add_period(struct reporter *r, const struct note *note)
{
	struct report_period *p = &r->period;
	int64_t end_ns = note->at_ns > r->last_end_ns ? note->at_ns : r->last_end_ns;
	p->start_ns = r->last_end_ns - r->began_ns;
	p->end_ns = end_ns - r->began_ns;
	bool by_count = r->options->report_every;
	/* between two ticks of the timer it is whole, even if the first of them came late */
	bool may_be_short = note->partial || r->cut;
	p->partial =
		by_count ? note->partial : may_be_short && is_short(r, p->end_ns - p->start_ns);
	r->cut = note->partial;
	p->warmup = note->warmup;
	stats_subtract(&p->stats, &note->stats, &r->last);
	p->memory = memory_sample();
	stats_copy(&r->last, &note->stats);
	r->last_end_ns = end_ns;

	struct report_summary *s = &r->summary;
	counters_add(&s->whole, &p->stats.n);
	if (p->warmup) {
		s->total.start_ns = p->end_ns;
		memcpy(r->warmup_time_ns, note->stats.n.time_ns, sizeof r->warmup_time_ns);
	} else {
		stats_add(&s->total.stats, &p->stats);
		s->total.index++;
	}
	s->total.end_ns = p->end_ns;
	s->unsettled = p->stats.unsettled;
	bool has_length = p->end_ns > p->start_ns;
	if (has_length)
		p->index = r->periods++;
	return has_length;
}

/* The total's time ends where the clock stopped, which may be before the last period's end. */
static void stop_clock(struct reporter *r, const struct note *note)
{
	struct report_period *total = &r->summary.total;
	total->end_ns = note->at_ns - r->began_ns;
	bool warmed_up = total->end_ns > total->start_ns;
	if (!warmed_up)
		total->end_ns = total->start_ns;
	for (enum time_cause c = 0; c < TIME_CAUSES; c++)
		total->stats.n.time_ns[c] =
			warmed_up ? note->stats.n.time_ns[c] - r->warmup_time_ns[c] : 0;
}

/* Intervals begin with the measuring. */
static void start_timer(struct reporter *r)
{
	int64_t ns = (int64_t)r->options->interval_ns;
	struct timespec every = {ns / NS_PER_S, ns % NS_PER_S};
	struct itimerspec timer = {.it_interval = every, .it_value = every};
	timerfd_settime(r->timer_fd, 0, &timer, NULL);
}

/* A code of our own for what went wrong, else how it was ended, else what is missing. */
static int exit_code(const struct reporter *r, enum exit_code code)
{
	return r->signal && (code == EXIT_DONE || code == EXIT_SHORT) ? EXIT_BY_SIGNAL + r->signal
								      : (int)code;
}

/* Whether there are to be reports before the summary. */
static bool wants_periods(const struct reporter *r)
{
	return r->options->interval_ns || r->options->report_every;
}

static void summarize(struct reporter *r, const struct note *note)
{
	struct report_summary *s = &r->summary;
	if (r->last_end_ns) { /* measuring has begun */
		if (add_period(r, note) && wants_periods(r))
			report_interval(&r->report, &r->period);
		stop_clock(r, note);
	}
	if (note->first_ns && note->last_ns > note->first_ns) {
		s->first_ns = note->first_ns - r->began_ns;
		s->last_ns = note->last_ns - r->began_ns;
	}
	s->total.memory = memory_sample();
	s->stop_reason = stop_reason_name(note->reason);
	s->interrupted = r->signal;
	s->complete = note->code == EXIT_DONE;
	s->exit_code = exit_code(r, note->code);
	report_summary(&r->report, s);
}

/* ---- what happens ---- */

/* By renaming, so that who waits for the file never reads half of it. */
static void write_ready_file(const char *name, const struct report_ready *ready)
{
	char temporary[4096];
	snprintf(temporary, sizeof temporary, "%s.tmp", name);
	FILE *file = fopen(temporary, "we");
	bool ipv6 = strchr(ready->host, ':');
	if (!file
		|| fprintf(file, "%s%s%s:%s\n", ipv6 ? "[" : "", ready->host, ipv6 ? "]" : "",
			   ready->port)
			< 0
		|| fclose(file) || rename(temporary, name))
		fatal(EXIT_INTERNAL, "%s", name);
}

static void ready(struct reporter *r, const struct report_ready *ready)
{
	const struct options *o = r->options;
	bool mixes =
		prints(o) && report_formats[o->format] != &report_text; /* with what is parsed */
	if (ready->listening && !o->quiet && !mixes)
		complain("listening on %s:%s", ready->host, ready->port);
	report_is_ready(&r->report, ready);
	if (o->ready_file)
		write_ready_file(o->ready_file, ready);
}

static void error(struct reporter *r, const struct failure *f)
{
	const char *separator = *f->condition && *f->description ? ": " : "";
	const char *reason = *f->condition || *f->description ? ": " : "";
	/* "proton:io" and the like are the library's own, and say nothing to anybody */
	bool ours = !strncmp(f->condition, "proton:", 7);
	const char *failed = f->code == EXIT_INTERNAL ? "" : " failed"; /* no peer did it */
	complain("%s%s%s%s%s%s", f->what, failed, reason, ours ? "" : f->condition,
		ours ? "" : separator, f->description);
	report_error(&r->report, f);
}

/* A receiver that leaves in order has had enough, which is for its sender to say: it had more. */
static void tell_end(const struct reporter *r, const struct note *note)
{
	bool sender = r->worker->options->engine.sender;
	if (sender && note->reason == STOP_DETACHED && note->code == EXIT_SHORT)
		complain("link detached by the peer before the end");
}

static void take_note(struct reporter *r)
{
	const struct note *note = notes_take(&r->worker->notes);
	switch (note->kind) {
	case NOTE_READY: ready(r, &note->ready); break;
	case NOTE_BEGAN:
		r->began_ns = r->last_end_ns = note->at_ns;
		r->summary.began_ns = clock_realtime_at_ns(note->at_ns);
		start_timer(r);
		break;
	case NOTE_PERIOD:
		if (add_period(r, note) && wants_periods(r))
			report_interval(&r->report, &r->period);
		break;
	case NOTE_ERROR: error(r, &note->failure); break;
	case NOTE_END:
		tell_end(r, note);
		summarize(r, note);
		r->finished = true;
		break;
	}
	notes_done(&r->worker->notes);
}

/* The first signal ends the run in order, the second at once. The parent's end is like a first
 * SIGHUP, and never like a second one: a driver that ends us may die before we have. */
static void take_signal(struct reporter *r)
{
	int number;
	if (read(r->signal_fd, &number, sizeof number) != sizeof number)
		return;
	if (!r->signal) {
		r->signal = number == SIGNALS_ORPHAN ? SIGHUP : number;
		worker_ask_stop(r->worker);
	} else if (number != SIGNALS_ORPHAN) {
		r->leaving = true;
		timerfd_settime(r->timer_fd, 0, &(struct itimerspec){0}, NULL);
		worker_ask_abandon(r->worker);
	}
}

static void take_tick(struct reporter *r)
{
	uint64_t ticks;
	if (read(r->timer_fd, &ticks, sizeof ticks) == sizeof ticks)
		worker_ask_report(r->worker);
}

/* Until the worker's last note. */
static void loop(struct reporter *r)
{
	struct pollfd fds[] = {{.fd = r->worker->notes.fd, .events = POLLIN},
		{.fd = r->signal_fd, .events = POLLIN}, {.fd = r->timer_fd, .events = POLLIN}};
	while (!r->finished) {
		int count = poll(fds, 3, r->leaving ? ABANDON_MS : -1);
		if (count < 0 && errno != EINTR)
			fatal(EXIT_INTERNAL, "poll");
		if (count == 0) { /* the worker is stuck: what we have is all there is */
			r->summary.stop_reason = stop_reason_name(STOP_SIGNAL);
			r->summary.interrupted = true;
			r->summary.exit_code = EXIT_BY_SIGNAL + r->signal;
			report_summary(&r->report, &r->summary);
			_exit(r->summary.exit_code);
		}
		if (fds[0].revents)
			take_note(r);
		if (fds[1].revents)
			take_signal(r);
		if (fds[2].revents)
			take_tick(r);
	}
}

/* ---- the run ---- */

/* Time for an end in order, which is to flush and to close, and a second for all the rest. */
static unsigned grace_s(const struct options *o)
{
	uint64_t s = (2 * o->close_timeout_ns + NS_PER_S - 1) / NS_PER_S + 1;
	return s < INT_MAX ? (unsigned)s : INT_MAX;
}

/* What a parent has closed would be given to the next file opened, and be written to. */
static void open_standard_descriptors(void)
{
	int fd;
	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		close(fd);
}

/* The whole run. */
int reporter_run(struct worker *worker, const struct options *options, const struct role *role,
	void *self, char **argv)
{
	static struct reporter r;
	r = (struct reporter){.options = options, .worker = worker};
	r.report.run = &r.run;
	stats_reset(&r.last, options->timings);
	stats_reset(&r.summary.total.stats, options->timings);
	describe_run(&r, options, argv);
	open_standard_descriptors();
	int orphan_fd = -1;
	if (options->has_parent_fd)
		orphan_fd = parent_watch((int)options->parent_fd, grace_s(options));
	if (role->open)
		role->open(self);
	open_sinks(&r.report, options);
	r.signal_fd = signals_watch(orphan_fd, SIGNALS_GRACE_S);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* both are errors of a write */
	r.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r.timer_fd < 0)
		fatal(EXIT_INTERNAL, "timer");
	report_start(&r.report);
	worker_start(worker, options, role, self);
	loop(&r);
	worker_join(worker);
	security_destroy(options->security);
	close(r.timer_fd);
	bool written = report_close(&r.report);
	signals_end(); /* no sooner: what is written last may have no reader */
	return written || r.summary.exit_code ? r.summary.exit_code : EXIT_INTERNAL;
}
