/* options: the command line of psend and precv. Layer 4.
 *
 * One table of rows describes every option: its names, what it takes, its limits and default, and
 * the field it sets. Parsing, --help, the defaults and the list of effective options in reports
 * are all made from it.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "clock.h"
#include "engine.h"
#include "report.h"
#include "security.h"
#include "url.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_PERCENTILES_MAX 32
#define OPTIONS_ROWS_MAX        128
#define OPTIONS_SEED_MAX        ((UINT64_C(1) << 53) - 1) /* a double holds no more exactly */
#define OPTIONS_CONTENT_MAX     (1 << 30)                 /* bytes of a body */

enum program { PROGRAM_PSEND = 1, PROGRAM_PRECV = 2, PROGRAM_BOTH = 3 };

enum catch_up { CATCH_UP_NONE, CATCH_UP_FULL };

enum outcome { OUTCOME_ACCEPTED, OUTCOME_REJECTED, OUTCOME_RELEASED, OUTCOME_MODIFIED };

struct text_list {
	const char **items;
	size_t count;
};

/* What the other program alone has an option for keeps its default here. Times are in ns, and 0
 * means no limit or off, if not said otherwise. */
struct options {
	/* connection */
	const char *url, *broker, *address, *listen;
	uint64_t connect_timeout_ns, close_timeout_ns, idle_timeout_ns;
	uint64_t max_frame_bytes, session_window_bytes, sndbuf_bytes, rcvbuf_bytes;
	uint64_t reconnect_attempts; /* in a row; UINT64_MAX: no limit, 0: do not reconnect */
	const char *user, *password_file, *sasl_mechanisms;
	bool sasl_insecure;
	const char *tls_ca, *tls_certificate, *tls_key, *tls_name;
	bool tls_no_verify;
	const char *container_id, *link_name;

	/* load */
	uint64_t messages, duration_ns, warmup_ns;
	double send_rate_per_s; /* of an open loop; 0: there is none */
	uint64_t batch;         /* messages at a time */
	uint64_t poisson_seed;  /* 0: gaps are even */
	unsigned catch_up;      /* enum catch_up */
	bool round_trip;
	uint64_t max_unsettled;
	double receive_rate_per_s;
	uint64_t work_ns;

	/* delivery and credit */
	bool presettled;
	uint64_t ack_frequency;
	unsigned outcome; /* enum outcome */
	bool reply;
	uint64_t credit, credit_low, credit_add, drain_batch;

	/* message */
	uint64_t content_size_bytes;
	const char *content_string, *content_file;
	bool content_stdin, check_content;
	struct text_list content_map; /* K=V */
	const char *content_type, *subject, *message_id, *correlation_id, *user_id, *reply_to;
	struct text_list properties; /* K=V */
	uint64_t group_size;         /* 0: no groups */
	bool group_randomize_size;
	uint64_t group_interleave;
	const char *group_prefix, *group_key;
	uint64_t send_eos;
	bool durable;
	uint64_t ttl_ms, priority;
	bool sequence, timestamp;
	uint64_t first_sequence;
	bool verify_sequence, ignore_duplicates;
	bool print_content, print_headers;
	const char *save_content;

	/* report */
	uint64_t interval_ns, report_every;
	bool report_total, report_header, quiet;
	unsigned format; /* index into report_formats */
	const char *output, *hdr;
	uint64_t events_fd;
	const char *percentile_list;
	unsigned clock; /* enum clock_kind */
	bool tsc;

	/* run */
	uint64_t timeout_ns;
	bool forever;
	const char *ready_file;
	uint64_t start_at_ns; /* realtime */
	const char *cpu_list;
	bool busy_poll;
	uint64_t parent_fd;

	/* made from the above */
	enum program program;
	unsigned timings;                  /* TIMING_BIT()s of what is to be timed */
	bool given[OPTIONS_ROWS_MAX];      /* by row of the option table: on the command line */
	char peer_url[URL_HOST_SIZE + 64]; /* what is connected to: no address, no user */
	const char *broker_url;            /* as it was given: it owns the address within */
	struct url peer;                   /* of the URL, or to listen on */
	const char *password;              /* NULL: none */
	char mechanisms[SECURITY_MECHANISMS_SIZE];
	struct security *security; /* the owner is who runs the program */
	double percentiles[OPTIONS_PERCENTILES_MAX];
	size_t percentile_count;
	cpu_set_t cpus; /* empty if the option was not given */
	bool has_ttl, has_priority, has_events, has_parent_fd;
	char default_id[64];
	struct engine_options engine;
};

/* Reads the command line of PROGRAM. What cannot be accepted ends the process with one line and
 * EXIT_USAGE; --help and --version end it as well. */
void options_parse(struct options *o, enum program program, int argc, char **argv);

/* The effective options, for reports: VALUES needs room for OPTIONS_MAX. Returns how many. */
#define OPTIONS_MAX 96
size_t options_describe(const struct options *o, struct report_value values[OPTIONS_MAX]);

#endif
