/* report: what is printed, in each format. Layer 2.
 *
 * A run is reported as a start, a ready, intervals, errors and a summary. A format is a value of
 * struct report_format; a sink joins one with a stream. Numbers that do not exist are NAN here,
 * and "-", nothing or null where they are printed.
 */
#ifndef REPORT_H
#define REPORT_H

#include "clock.h"
#include "fatal.h"
#include "stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One effective option. */
struct report_value {
	char name[48]; /* with its unit, as in JSON */
	enum {
		VALUE_NULL,
		VALUE_BOOLEAN,
		VALUE_INTEGER,
		VALUE_REAL,
		VALUE_TEXT,
		VALUE_LIST,
		VALUE_NO_LIMIT, /* of a number */
	} type;
	union {
		bool boolean;
		uint64_t integer;
		double real;
		const char *text;
		struct {
			const char *const *items;
			size_t count;
		} list;
	};
};

/* What holds for the whole run. */
struct report_run {
	const char *program;
	const char *libraries[2][2]; /* name, version */
	bool sender;
	bool presettled;     /* so that there are no outcomes and no settlement */
	bool checks_content; /* so that it is known what is corrupted */
	bool header;         /* print a line of headings */
	enum clock_kind clock;
	double send_rate_per_s; /* of an open loop; 0: there is none */
	uint64_t batch;         /* messages, if batches are timed */
	bool asks, answers;     /* round trips: which end we are */
	bool busy_polls;
	unsigned timings; /* TIMING_BIT()s of what is timed */
	char **argv;      /* ends with NULL */
	const struct report_value *options;
	size_t option_count;
	const double *percentiles; /* percent, in the order asked for */
	size_t percentile_count;
	int64_t started_ns; /* realtime */
};

/* A stretch of the run. Times are ns since the run's measuring began. */
struct report_period {
	uint64_t index;
	int64_t start_ns, end_ns;
	bool partial; /* shorter than asked for, because the run ended or its warm-up did */
	bool warmup;  /* not part of the total */
	struct stats stats;
	struct memory memory; /* at its end */
};

/* How it went. */
struct report_summary {
	struct report_period total; /* the sum of all intervals but those of the warm-up */
	struct counters whole;      /* the sum of all intervals */
	int64_t began_ns;           /* realtime, 0 of all other times; 0: measuring never began */
	int64_t first_ns, last_ns;  /* of the total: first message, last received or settled; on the
				       total's time scale, equal if there were not two */
	uint64_t unsettled;         /* at the end */
	const char *stop_reason;
	bool interrupted, complete;
	int exit_code;
};

/* Where a program can be reached, or what it is attached to. */
struct report_ready {
	bool listening;
	const char *host, *port;
	const char *address; /* NULL when listening */
	/* of the connection, NULL or empty when there is none, or when listening */
	const char *tls_protocol, *tls_cipher, *sasl_mechanism;
	int64_t at_ns; /* realtime */
};

/* Members may be NULL. */
struct report_format {
	const char *name;
	void (*start)(FILE *out, const struct report_run *run);
	void (*ready)(FILE *out, const struct report_run *run, const struct report_ready *ready);
	void (*interval)(FILE *out, const struct report_run *run, const struct report_period *p);
	void (*error)(FILE *out, const struct report_run *run, const struct failure *failure);
	void (*summary)(FILE *out, const struct report_run *run, const struct report_summary *s);
};

extern const struct report_format report_text, report_csv, report_json, report_hdr;

#define REPORT_FORMATS 3
extern const struct report_format *const report_formats[REPORT_FORMATS]; /* for --format */

#define REPORT_SINKS_MAX 4

struct report_sink {
	const struct report_format *format;
	FILE *out;
	const char *name; /* for error texts */
	bool failed;
};

struct report {
	const struct report_run *run;
	struct report_sink sinks[REPORT_SINKS_MAX];
	size_t sink_count;
};

void report_add_sink(
	struct report *r, const struct report_format *format, FILE *out, const char *name);

/* One for each kind of report: to all sinks, flushed. */
void report_start(struct report *r);
void report_is_ready(struct report *r, const struct report_ready *ready);
void report_interval(struct report *r, const struct report_period *period);
void report_error(struct report *r, const struct failure *failure);
void report_summary(struct report *r, const struct report_summary *summary);

/* Closes the streams. False if any of them could not be written; that was said when it happened. */
bool report_close(struct report *r);

/* What a timing is called where it stands beside those of other kinds: in a period, or alone. NULL:
 * it does not. */
const char *report_timing_name(const struct report_run *run, enum timing timing);

/* Numbers of a period; NAN if they do not exist. */
double report_rate_per_s(const struct report_period *p);
double report_bytes_per_s(const struct report_period *p);
double report_cpu_percent(const struct report_period *p);
double report_stalled_percent(const struct report_period *p);
double report_call_ns(const struct report_period *p);
double report_summary_rate_per_s(const struct report_summary *s);
double report_summary_bytes_per_s(const struct report_summary *s);

/* Of an open loop: messages for the time that the schedule has run. NAN if it has not. */
double report_achieved_per_s(const struct report_period *p);

/* Of an open loop: whether all was sent that was due a millisecond before the end, but for a
 * thousandth, or for one message of several; and the last one, if there was one, no later than that
 * after the schedule's end. Unknown if there was nothing to be sent by then. */
enum report_rate { RATE_UNKNOWN, RATE_MISSED, RATE_MET };
enum report_rate report_rate(const struct report_period *p);

/* How many ticks the time stamp counter makes a second; NAN if it was not read. */
double report_ticks_per_s(const struct report_period *p);

/* The cause that took most of the time in which the thread did not wait for a message to be due, or
 * TIME_CAUSES if none took a tenth of the whole. */
enum time_cause report_obstacle(const struct report_period *p);

/* The cause that took most of the period's time, or TIME_CAUSES if it has no length. */
enum time_cause report_limit(const struct report_period *p);

#endif
