#define _GNU_SOURCE
#include "worker.h"

#include "clock.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- notes ---- */

/* Copies the counters as they were at AT, when WAITS had been waited. */
static void fill_period(
	struct worker *w, struct note *note, int64_t at_ns, const uint64_t waits_ns[TIME_CAUSES])
{
	if (w->role->cut)
		w->role->cut(w->self, at_ns);
	engine_count_frames(&w->engine);
	stats_sample_cpu(&w->stats.n);
	note->at_ns = at_ns;
	note->warmup = !w->warm;
	stats_copy(&note->stats, &w->stats);
	struct counters *n = &note->stats.n;
	n->cpu_span_ns = (uint64_t)(clock_monotonic_ns() - w->began_ns);
	n->cpu_user_ns -= w->cpu_base.cpu_user_ns;
	n->cpu_system_ns -= w->cpu_base.cpu_system_ns;
	n->switches_voluntary -= w->cpu_base.switches_voluntary;
	n->switches_involuntary -= w->cpu_base.switches_involuntary;
	uint64_t waited = 0;
	for (enum time_cause c = 0; c < TIME_CAUSES; c++)
		waited += n->time_ns[c] = waits_ns[c];
	n->time_ns[TIME_BUSY] = (uint64_t)(at_ns - w->began_ns) - waited;
	stats_cut(&w->stats);
}

/* Until something happens, the clock stops here. */
static void mark_stop(struct worker *w, int64_t now_ns)
{
	w->stop_ns = now_ns;
	memcpy(w->stop_waits_ns, w->stats.n.time_ns, sizeof w->stop_waits_ns);
}

/* A time without a connection is booked in pieces, so that each report has its own. */
static void book_gap(struct worker *w, int64_t now_ns)
{
	if (!w->gap_booked_ns)
		return;
	if (w->begun)
		w->stats.n.disconnected_ns += (uint64_t)(now_ns - w->gap_booked_ns);
	w->gap_booked_ns = now_ns;
}

/* Messages have moved, the last of them at NOW. */
static void mark_moved(struct worker *w, int64_t now_ns)
{
	w->moved = false;
	w->last_ns = w->quiet_since_ns = now_ns;
	if (w->reason != STOP_DURATION)
		mark_stop(w, now_ns);
}

static void note_period(struct worker *w, int64_t now_ns, bool partial)
{
	struct note *note = notes_begin(&w->notes, NOTE_PERIOD);
	fill_period(w, note, now_ns, w->stats.n.time_ns);
	note->partial = partial;
	notes_send(&w->notes);
}

static void note_ready(struct worker *w)
{
	w->ready.at_ns = clock_realtime_ns();
	notes_begin(&w->notes, NOTE_READY)->ready = w->ready;
	notes_send(&w->notes);
	int64_t now_ns = clock_monotonic_ns();
	w->quiet_since_ns = now_ns > w->start_at_ns ? now_ns : w->start_at_ns;
}

static void note_failure(struct worker *w, const struct failure *failure)
{
	notes_begin(&w->notes, NOTE_ERROR)->failure = *failure;
	notes_send(&w->notes);
}

/* ---- the course of the run ---- */

/* Whether the time for traffic has come. */
bool worker_may_start(struct worker *w, int64_t now_ns)
{
	if (now_ns >= w->start_at_ns)
		return true;
	engine_turn_by(&w->engine, w->start_at_ns);
	return false;
}

/* Zero of all times. */
void worker_begin(struct worker *w, int64_t now_ns)
{
	if (w->begun)
		return;
	w->begun = true;
	w->began_ns = now_ns;
	w->warm = !w->options->warmup_ns;
	memset(w->stats.n.time_ns, 0, sizeof w->stats.n.time_ns);
	w->stats.n.polls = w->stats.n.spun_ns = 0;
	stats_sample_cpu(&w->cpu_base);
	mark_stop(w, now_ns);
	notes_begin(&w->notes, NOTE_BEGAN)->at_ns = now_ns;
	notes_send(&w->notes);
}

static void set_milestone(struct worker *w)
{
	const struct options *o = w->options;
	w->milestone = UINT64_MAX;
	if (o->messages && w->stats.n.messages < o->messages)
		w->milestone = o->messages;
	if (o->report_every && w->next_report < w->milestone)
		w->milestone = w->next_report;
}

/* As many messages as were asked for, or as are wanted in a report. */
void worker_milestone(struct worker *w)
{
	int64_t now_ns = clock_monotonic_ns();
	if (w->options->report_every && w->stats.n.messages >= w->next_report) {
		w->next_report += w->options->report_every;
		mark_moved(w, now_ns);
		note_period(w, now_ns, false);
	}
	set_milestone(w);
}

/* The role's counters are final, as far as the report is concerned. */
static void finish(struct worker *w)
{
	w->phase = PHASE_CLOSING;
	if (!w->begun) /* without traffic, all there is to tell is why */
		w->began_ns = w->stop_ns = clock_monotonic_ns();
	w->end.kind = NOTE_END;
	w->end.partial = true;
	w->end.first_ns = w->warm ? w->first_ns : 0;
	w->end.last_ns = w->last_ns;
	fill_period(w, &w->end, w->stop_ns, w->stop_waits_ns);
	engine_close(&w->engine);
	if (!w->options->listen && (w->engine.dialing || !w->engine.attached))
		engine_abandon(&w->engine); /* there is nobody to take leave of */
}

/* With --forever, too. */
void worker_fail(struct worker *w, const struct failure *failure)
{
	if (!w->failed)
		w->failed = failure->code;
	note_failure(w, failure);
}

/* Flushing begins. */
void worker_stop(struct worker *w, enum stop_reason reason)
{
	if (w->phase >= PHASE_FLUSHING)
		return;
	int64_t now_ns = clock_monotonic_ns();
	if (w->role->cut)
		w->role->cut(w->self, now_ns);
	w->phase = PHASE_FLUSHING;
	w->reason = reason;
	w->flush_by_ns = now_ns + (int64_t)w->options->close_timeout_ns;
	book_gap(w, now_ns);
	w->gap_booked_ns = 0;
	engine_end_dialing(&w->engine);
	/* a sender that is ended while it waits has waited until now */
	if (w->begun && (reason == STOP_DURATION || w->options->engine.sender))
		mark_stop(w, now_ns);
}

/* Whether AFTER have passed since SINCE; if not, a turn will come then. 0: never. */
static bool due(struct worker *w, int64_t now_ns, int64_t since_ns, uint64_t after_ns)
{
	int64_t due_ns = since_ns + (int64_t)after_ns; /* options are bounded: no overflow */
	if (!after_ns)
		return false;
	if (now_ns >= due_ns)
		return true;
	engine_turn_by(&w->engine, due_ns);
	return false;
}

/* All that happens because of the time. */
static void check_time(struct worker *w, int64_t now_ns)
{
	const struct options *o = w->options;
	if (w->begun && !w->warm && due(w, now_ns, w->began_ns, o->warmup_ns)) {
		note_period(w, now_ns, true);
		w->warm = true;
		w->first_ns = 0;
	}
	if (w->warm && due(w, now_ns, w->began_ns + (int64_t)o->warmup_ns, o->duration_ns))
		worker_stop(w, STOP_DURATION);
	if (w->quiet_since_ns && due(w, now_ns, w->quiet_since_ns, o->timeout_ns))
		worker_stop(w, STOP_TIMEOUT);
}

/* What the reporter has asked for. */
static void check_asked(struct worker *w, int64_t now_ns)
{
	if (atomic_load_explicit(&w->abandon_asked, memory_order_relaxed)) {
		worker_stop(w, STOP_SIGNAL);
		w->flush_by_ns = now_ns;
		engine_abandon(&w->engine);
	}
	if (atomic_load_explicit(&w->stop_asked, memory_order_relaxed))
		worker_stop(w, STOP_SIGNAL);
	if (atomic_load_explicit(&w->report_asked, memory_order_relaxed)) {
		atomic_store(&w->report_asked, false);
		if (w->begun && w->phase == PHASE_RUNNING)
			note_period(w, now_ns, false);
	}
}

static enum time_cause turn(void *context, int64_t now_ns)
{
	struct worker *w = context;
	enum time_cause cause = TIME_IDLE;
	book_gap(w, now_ns);
	if (w->moved)
		mark_moved(w, now_ns);
	bool begun = w->begun;
	if (w->phase == PHASE_RUNNING)
		check_time(w, now_ns); /* first: a report due at the very end is that of the end */
	if (w->phase == PHASE_RUNNING)
		cause = w->role->turn(w->self, now_ns);
	if (w->phase == PHASE_RUNNING && w->begun != begun)
		check_time(w, now_ns); /* for the turns that are to come */
	check_asked(w, now_ns);
	if (w->phase == PHASE_FLUSHING) {
		cause = w->options->engine.sender ? TIME_SETTLEMENT : TIME_IDLE;
		if (w->role->flushed(w->self) || now_ns >= w->flush_by_ns)
			finish(w);
		else
			engine_turn_by(&w->engine, w->flush_by_ns);
	}
	return cause;
}

/* ---- what the engine tells ---- */

static void listening(void *context, const char *host, const char *port)
{
	struct worker *w = context;
	strcpy(w->ready_host, host);
	strcpy(w->ready_port, port);
	w->ready = (struct report_ready){
		.listening = true, .host = w->ready_host, .port = w->ready_port};
	note_ready(w);
	w->phase = PHASE_RUNNING;
}

static void attached(void *context, pn_link_t *link)
{
	struct worker *w = context;
	w->links++;
	if (w->gap_booked_ns)
		book_gap(w, clock_monotonic_ns());
	w->gap_booked_ns = 0;
	w->role->attached(w->self, link);
	if (w->options->listen || w->phase != PHASE_OPENING)
		return;
	security_describe(w->options->security, link, &w->ready_security);
	w->ready = (struct report_ready){.host = w->options->engine.host,
		.port = w->options->engine.port,
		.address = w->options->engine.address,
		.tls_protocol = w->ready_security.protocol,
		.tls_cipher = w->ready_security.cipher,
		.sasl_mechanism = w->ready_security.mechanism};
	note_ready(w);
	w->phase = PHASE_RUNNING;
}

static void detached(void *context, pn_link_t *link)
{
	struct worker *w = context;
	w->links--;
	w->role->detached(w->self, link);
	if (worker_reconnects(w) && !w->gap_booked_ns)
		w->gap_booked_ns = clock_monotonic_ns();
	if (w->options->listen && !w->links && !w->options->forever)
		worker_stop(w, w->failed ? STOP_FAILED : STOP_DETACHED);
}

static void deliveries(void *context, pn_link_t *link, struct engine_batch *batch)
{
	struct worker *w = context;
	if (pn_link_get_context(link))
		w->role->deliveries(w->self, link, batch);
}

static bool holds(void *context, pn_link_t *link)
{
	struct worker *w = context;
	return w->phase == PHASE_RUNNING && w->role->holds && w->role->holds(w->self, link);
}

static void failed(void *context, const struct failure *failure)
{
	struct worker *w = context;
	if (failure->code && !w->options->forever && !w->failed)
		w->failed = failure->code;
	note_failure(w, failure);
}

static void lost(void *context)
{
	struct worker *w = context;
	worker_stop(w, w->failed ? STOP_FAILED : STOP_DETACHED);
}

static const struct engine_callbacks CALLBACKS = {
	.listening = listening,
	.attached = attached,
	.detached = detached,
	.deliveries = deliveries,
	.holds = holds,
	.turn = turn,
	.failed = failed,
	.lost = lost,
};

/* ---- the thread ---- */

static void end(struct worker *w)
{
	if (w->phase != PHASE_CLOSING)
		finish(w); /* abandoned */
	struct note *note = notes_begin(&w->notes, NOTE_END);
	*note = w->end;
	note->reason = w->reason;
	note->code = w->failed ? w->failed : w->role->verdict(w->self);
	notes_send(&w->notes);
}

static void *run(void *argument)
{
	struct worker *w = argument;
	prctl(PR_SET_NAME, "reactor");
	prctl(PR_SET_TIMERSLACK, 1); /* waits end when they should, not up to 50 us later */
	engine_run(&w->engine);
	if (w->role->drain)
		w->role->drain(w->self, w->abandon_fd);
	end(w);
	return NULL;
}

/* Pins the thread that is to run to the first of the processors allowed. */
static void choose_cpu(const struct options *o, pthread_attr_t *attributes)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &o->cpus))
			CPU_SET(cpu, &one);
	if (CPU_COUNT(&one))
		pthread_attr_setaffinity_np(attributes, sizeof one, &one);
}

/* Prepares and goes. */
void worker_start(
	struct worker *w, const struct options *options, const struct role *role, void *self)
{
	w->options = options;
	w->role = role;
	w->self = self;
	int64_t now_ns = clock_monotonic_ns();
	w->start_at_ns = options->start_at_ns
		? (int64_t)options->start_at_ns - (clock_realtime_at_ns(now_ns) - now_ns)
		: 0;
	w->next_report = options->report_every;
	stats_reset(&w->stats, options->timings);
	set_milestone(w);
	notes_open(&w->notes);
	w->abandon_fd = eventfd(0, EFD_CLOEXEC);
	if (w->abandon_fd < 0)
		fatal(EXIT_INTERNAL, "eventfd");
	engine_create(&w->engine, &options->engine, &CALLBACKS, w, &w->stats);
	if (options->round_trip || options->reply)
		engine_serve_answers(&w->engine, role->answers, self);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	choose_cpu(options, &attributes);
	int error = pthread_create(&w->thread, &attributes, run, w);
	pthread_attr_destroy(&attributes);
	if (error)
		fatalx(EXIT_INTERNAL, "cannot start a thread: %s", strerror(error));
}

/* ---- what the reporter asks ---- */

/* Next turn. */
void worker_ask_report(struct worker *w)
{
	atomic_store(&w->report_asked, true);
	engine_wake(&w->engine);
}

/* The first signal. */
void worker_ask_stop(struct worker *w)
{
	atomic_store(&w->stop_asked, true);
	engine_wake(&w->engine);
}

/* The second. */
void worker_ask_abandon(struct worker *w)
{
	atomic_store(&w->abandon_asked, true);
	eventfd_write(w->abandon_fd, 1);
	engine_wake(&w->engine);
}

/* The end of the thread. */
void worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	engine_destroy(&w->engine);
	notes_close(&w->notes);
	close(w->abandon_fd);
}
