#include "option_table.h"

#include "credit.h"

#include <string.h>

#define BATCH_MAX 1000000000

static const char *const FORMATS[] = {"text", "csv", "json", NULL};
static const char *const CLOCKS[] = {"realtime", "monotonic", NULL};
static const char *const CATCH_UPS[] = {"none", "full", NULL};
static const char *const OUTCOMES[] = {"accepted", "rejected", "released", "modified", NULL};

#define HEADING(PROGRAMS, TITLE)                                                                   \
	{                                                                                          \
		.help = TITLE, .programs = PROGRAM_##PROGRAMS, .kind = KIND_HEADING                \
	}
#define ROW(PROGRAMS, KIND, KEY, NAME, FIELD)                                                      \
	.name = NAME, .key = KEY, .programs = PROGRAM_##PROGRAMS, .kind = KIND_##KIND,             \
	.field = offsetof(struct options, FIELD)

/* In the order of --help. */
const struct option_row option_table[] = {
	HEADING(BOTH, "Connection:"),
	{ROW(BOTH, URL, 'b', "broker", broker), .argument = "URL",
		.help = "connect there; its parts override those of the URL argument"},
	{ROW(BOTH, TEXT, 'a', "address", address), .argument = "ADDR",
		.help = "node at the peer; overrides that of the URL"},
	{ROW(BOTH, TEXT, 'l', "listen", listen), .argument = "HOST:PORT",
		.help = "accept connections instead of making one; port 0: the kernel chooses; "
			"amqps:// before it: TLS only"},
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "connect-timeout", connect_timeout_ns), .argument = "T",
		.initial = "10s", .min = 1,
		.help = "from the start until the link is attached; a refused connection is tried "
			"again for one second of it; with --listen: from each connection"},
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "close-timeout", close_timeout_ns), .argument = "T",
		.initial = "5s",
		.help = "for outstanding dispositions and answers, and again for closing, when the "
			"run ends"},
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "idle-timeout", idle_timeout_ns), .argument = "T",
		.shown = "off", .min = 2 * NS_PER_MS, .max = UINT32_MAX * NS_PER_MS,
		.help = "end a connection on which nothing has arrived for so long, in whole ms"},
	{ROW(BOTH, BYTES, KEY_LONG_ONLY, "max-frame", max_frame_bytes), .argument = "BYTES",
		.initial = "16Mi", .min = 512, .max = UINT32_MAX,
		.help = "largest AMQP frame that we accept"},
	{ROW(BOTH, BYTES, KEY_LONG_ONLY, "session-window", session_window_bytes),
		.argument = "BYTES", .shown = "unlimited", .min = 512,
		.help = "incoming session window, kept in whole frames: must hold at least one of "
			"--max-frame"},
	{ROW(BOTH, BYTES, KEY_LONG_ONLY, "sndbuf", sndbuf_bytes), .argument = "BYTES",
		.shown = "the kernel's", .min = 1, .max = INT32_MAX,
		.help = "send buffer of each socket"},
	{ROW(BOTH, BYTES, KEY_LONG_ONLY, "rcvbuf", rcvbuf_bytes), .argument = "BYTES",
		.shown = "the kernel's", .min = 1, .max = INT32_MAX,
		.help = "receive buffer of each socket"},
	{ROW(BOTH, OPTIONAL_COUNT, KEY_LONG_ONLY, "reconnect", reconnect_attempts), .argument = "N",
		.shown = "off", .min = 1,
		.help = "connect again when the connection is lost or cannot be made, after "
			"pauses that grow from 50 ms to 5 s; give up after N attempts in a row"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "user", user), .argument = "NAME",
		.help = "authenticate as NAME; overrides the URL's"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "password-file", password_file), .argument = "FILE",
		.help = "the first line of FILE is the password, if the URL has none; without "
			"either it is the environment's PPAIR_PASSWORD"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "sasl-mechs", sasl_mechanisms), .argument = "LIST",
		.shown = "PLAIN with a user, else EXTERNAL with a certificate, or ANONYMOUS",
		.help = "SASL mechanisms that may be used, or none: no SASL; when listening, one "
			"of these must be"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "sasl-insecure", sasl_insecure),
		.help = "send a password over a connection without TLS"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "tls-ca", tls_ca), .argument = "FILE",
		.shown = "the system's",
		.help = "certificates (PEM) that a peer's must be signed by; when listening, "
			"every peer must have one"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "tls-cert", tls_certificate), .argument = "FILE",
		.help = "own certificate (PEM); when listening, speak TLS only"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "tls-key", tls_key), .argument = "FILE",
		.help = "its private key (PEM)"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "tls-sni", tls_name), .argument = "NAME",
		.shown = "the host of the URL",
		.help = "name to ask for, which the peer's certificate must have"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "tls-no-verify", tls_no_verify),
		.help = "encrypt, but do not care who the peer is"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "container-id", container_id), .argument = "ID",
		.shown = "made from host and process", .help = "AMQP container id"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "link-name", link_name), .argument = "NAME",
		.shown = "the container id", .help = "name of the link, when connecting"},

	HEADING(BOTH, "Load:"),
	{ROW(PSEND, COUNT, 'm', "messages", messages), .argument = "N", .initial = "1m",
		.shown = "1000000, or no limit with --duration or --content-stdin",
		.help = "send N messages in all; 0: no limit"},
	{ROW(PRECV, COUNT, 'm', "messages", messages), .argument = "N", .initial = "0",
		.help = "end after N messages; 0: no limit"},
	{ROW(PSEND, DURATION, 'd', "duration", duration_ns), .argument = "T", .shown = "no limit",
		.min = 1,
		.help = "run for T, beginning with the attached link and after the warm-up; with "
			"--messages, send those and be idle for the rest of T"},
	{ROW(PRECV, DURATION, 'd', "duration", duration_ns), .argument = "T", .shown = "no limit",
		.min = 1,
		.help = "end T after the first message, the warm-up not counted, if --messages "
			"has not ended it before"},
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "warmup", warmup_ns), .argument = "T", .initial = "0",
		.help = "leave the first T of the traffic out of all results but the accounting"},
	{ROW(PSEND, RATE, KEY_LONG_ONLY, "send-rate", send_rate_per_s), .argument = "R",
		.shown = "no limit",
		.help = "open loop: R messages a second (a plain decimal) of the whole program on "
			"a "
			"fixed schedule, however slow the peer is; time stamps are those of the "
			"schedule"},
	{ROW(PSEND, COUNT, KEY_LONG_ONLY, "batch", batch), .argument = "N", .initial = "1",
		.min = 1, .max = BATCH_MAX,
		.help = "send N messages at a time: N when they are due, or, without --send-rate, "
			"N when --max-unsettled has room for so many"},
	{ROW(PSEND, OPTIONAL_COUNT, KEY_LONG_ONLY, "poisson", poisson_seed), .argument = "SEED",
		.shown = "even gaps", .min = 1, .max = OPTIONS_SEED_MAX,
		.help = "exponential gaps in the schedule of --send-rate, the same for the same "
			"SEED; without one, others each time"},
	{ROW(PSEND, CHOICE, KEY_LONG_ONLY, "catch-up", catch_up), .choices = CATCH_UPS,
		.argument = "none|full", .initial = "full",
		.help = "after a stall send all that is due, or leave out what is more than 1 ms "
			"and one gap late"},
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "round-trip", round_trip),
		.help = "ask for an answer to each message, as precv --reply gives it, at "
			"--reply-to or at an address of its own, and time it"},
	{ROW(PSEND, COUNT, KEY_LONG_ONLY, "max-unsettled", max_unsettled), .argument = "N",
		.initial = "0",
		.help = "queue depth: have at most N messages unsettled on a link, or unanswered "
			"with --round-trip; 0: credit decides, up to 8 MiB of messages, 1 KiB "
			"reckoned for each on top"},
	{ROW(PRECV, RATE, KEY_LONG_ONLY, "receive-rate", receive_rate_per_s), .argument = "R",
		.shown = "no limit", .help = "take at most R messages a second"},
	{ROW(PRECV, DURATION, KEY_LONG_ONLY, "work", work_ns), .argument = "T", .initial = "0",
		.help = "spend T on each message before the next is taken"},

	HEADING(BOTH, "Delivery:"),
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "presettled", presettled),
		.help = "send settled: at most once; the default is at least once"},
	{ROW(PRECV, COUNT, KEY_LONG_ONLY, "ack-frequency", ack_frequency), .argument = "N",
		.initial = "1", .min = 1, .max = 1000000,
		.help = "settle every N-th message, and the rest when none has come for 20 ms"},
	{ROW(PRECV, CHOICE, KEY_LONG_ONLY, "outcome", outcome), .choices = OUTCOMES,
		.argument = "accepted|rejected|released|modified", .initial = "accepted",
		.help = "with this outcome"},

	{ROW(PRECV, FLAG, KEY_LONG_ONLY, "reply", reply),
		.help = "answer each message, with its body, at the address that it has as "
			"reply-to; messages that cannot be answered are counted"},

	HEADING(PRECV, "Credit:"),
	{ROW(PRECV, COUNT, KEY_LONG_ONLY, "credit", credit), .alias = "capacity", .argument = "N",
		.initial = "1000", .min = 1, .max = CREDIT_MAX, .help = "grant N at the start"},
	{ROW(PRECV, COUNT, KEY_LONG_ONLY, "credit-low", credit_low), .argument = "N",
		.shown = "half of --credit",
		.help = "whenever credit has fallen to N, grant more; below --credit"},
	{ROW(PRECV, COUNT, KEY_LONG_ONLY, "credit-add", credit_add), .argument = "N",
		.shown = "up to --credit", .min = 1, .max = CREDIT_MAX, .help = "grant N then"},
	{ROW(PRECV, COUNT, KEY_LONG_ONLY, "drain-batch", drain_batch), .argument = "N",
		.initial = "0",
		.help = "take N messages, then write what answers them before taking more; 1: one "
			"event, one message; 0: take all there are"},

	HEADING(BOTH, "Message:"),
	{ROW(PSEND, BYTES, KEY_LONG_ONLY, "content-size", content_size_bytes), .argument = "N",
		.shown = "100", .max = OPTIONS_CONTENT_MAX, .help = "body of N bytes"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "content-string", content_string), .argument = "S",
		.help = "body S"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "content-file", content_file), .argument = "FILE",
		.help = "body from FILE, as it is at the start"},
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "content-stdin", content_stdin),
		.help = "a message for each line of standard input, until its end or --messages"},
	{ROW(PSEND, LIST, KEY_LONG_ONLY, "content-map", content_map), .argument = "K=V",
		.help = "body is a map with this entry; may be given again"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "check-content", check_content),
		.help = "begin bodies with number, length and CRC-32; precv exits with 5 if one "
			"does not fit"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "content-type", content_type), .argument = "TYPE",
		.help = "MIME type of the body"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "subject", subject), .argument = "S",
		.help = "subject of the messages"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "message-id", message_id), .argument = "ID",
		.help = "message id; auto: the message's number"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "correlation-id", correlation_id), .argument = "ID",
		.help = "correlation id"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "user-id", user_id), .argument = "ID", .help = "user id"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "reply-to", reply_to), .argument = "ADDR",
		.help = "address for answers"},
	{ROW(PSEND, LIST, 'P', "property", properties), .argument = "K=V",
		.help = "application property; true, false and numbers are sent as such; may be "
			"given again"},
	{ROW(PSEND, COUNT, KEY_LONG_ONLY, "group-size", group_size), .argument = "N",
		.shown = "no groups, or 10 with another --group option", .min = 1,
		.help = "number of messages in a group"},
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "group-randomize-size", group_randomize_size),
		.help = "between 1 and --group-size messages in each"},
	{ROW(PSEND, COUNT, KEY_LONG_ONLY, "group-interleave", group_interleave), .argument = "N",
		.initial = "1", .min = 1, .max = 10000, .help = "fill N groups at a time, in turn"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "group-prefix", group_prefix), .argument = "S",
		.initial = "GROUP-", .help = "a group's name is S and its number, from 0 on"},
	{ROW(PSEND, TEXT, KEY_LONG_ONLY, "group-key", group_key), .argument = "K",
		.shown = "AMQP's group-id",
		.help = "put the group's name into application property K"},
	{ROW(PSEND, COUNT, KEY_LONG_ONLY, "send-eos", send_eos), .argument = "N", .initial = "0",
		.max = 1000000,
		.help = "when done, send N messages with body eos, to the links in turn; they do "
			"not count"},
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "durable", durable), .help = "mark messages as durable"},
	{ROW(PSEND, NUMBER, KEY_LONG_ONLY, "ttl", ttl_ms), .argument = "MS", .unit = "_ms",
		.shown = "none", .min = 1, .max = UINT32_MAX,
		.help = "time to live in milliseconds"},
	{ROW(PSEND, NUMBER, KEY_LONG_ONLY, "priority", priority), .argument = "N", .shown = "none",
		.max = 255, .help = "priority, 0 to 255"},
	{ROW(PSEND, YES_NO, KEY_LONG_ONLY, "sequence", sequence), .argument = "yes|no",
		.initial = "yes", .help = "number messages in property sn"},
	{ROW(PSEND, YES_NO, KEY_LONG_ONLY, "timestamp", timestamp), .argument = "yes|no",
		.initial = "yes", .help = "stamp messages with the time in property ts, in ns"},
	{ROW(BOTH, NUMBER, KEY_LONG_ONLY, "first-sequence", first_sequence), .argument = "N",
		.initial = "1",
		.help = "first number of each sender; precv counts what is missing from there on"},
	{ROW(PRECV, FLAG, KEY_LONG_ONLY, "verify-sequence", verify_sequence),
		.help = "exit with 5 if messages are lost, duplicated, reordered or not numbered"},
	{ROW(PRECV, FLAG, KEY_LONG_ONLY, "ignore-duplicates", ignore_duplicates),
		.help = "do not count a number seen before as received, nor as an error"},
	{ROW(PRECV, FLAG, KEY_LONG_ONLY, "print-content", print_content),
		.help = "print each body as a line on standard output; the report goes to "
			"standard error"},
	{ROW(PRECV, FLAG, KEY_LONG_ONLY, "print-headers", print_headers),
		.help = "print what each message says about itself, on standard output as well"},
	{ROW(PRECV, TEXT, KEY_LONG_ONLY, "save-content", save_content), .argument = "FILE",
		.help = "append each body to FILE, nothing between them"},

	HEADING(BOTH, "Report:"),
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "interval", interval_ns), .argument = "T",
		.initial = "1s", .help = "report every T; 0: the total only"},
	{ROW(BOTH, COUNT, KEY_LONG_ONLY, "report-every", report_every), .argument = "N",
		.shown = "off",
		.help = "report every N messages; the default of --interval is then 0"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "report-total", report_total),
		.help = "report the total only"},
	{ROW(BOTH, YES_NO, KEY_LONG_ONLY, "report-header", report_header), .argument = "yes|no",
		.initial = "yes", .help = "print a line of headings"},
	{ROW(BOTH, FLAG, 'q', "quiet", quiet), .help = "print nothing but errors"},
	{ROW(BOTH, CHOICE, 'f', "format", format), .choices = FORMATS, .argument = "text|csv|json",
		.initial = "text", .help = "format of standard output"},
	{ROW(BOTH, TEXT, 'o', "output", output), .argument = "FILE",
		.help = "write the JSON report to FILE as well"},
	{ROW(BOTH, NUMBER, KEY_LONG_ONLY, "events", events_fd), .argument = "FD", .max = INT32_MAX,
		.help = "write the JSON report to this open descriptor as well"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "percentiles", percentile_list), .argument = "LIST",
		.initial = "50,90,99,99.9,99.99", .help = "which ones the total has"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "hdr", hdr), .argument = "FILE",
		.help = "write the latency distribution to FILE, as HdrHistogram's plotters read "
			"it (.hgrm), psend that of settlement, or with --round-trip of the "
			"answers; ppair "
			"report merges such files"},
	{ROW(BOTH, CHOICE, KEY_LONG_ONLY, "clock", clock), .choices = CLOCKS,
		.argument = "realtime|monotonic", .initial = "realtime",
		.help = "clock of ts; monotonic is for two programs on one host"},
	{ROW(PSEND, FLAG, KEY_LONG_ONLY, "tsc", tsc),
		.help = "with --batch: time them in ticks of the processor's time stamp counter as "
			"well"},

	HEADING(BOTH, "Run:"),
	{ROW(BOTH, DURATION, KEY_LONG_ONLY, "timeout", timeout_ns), .argument = "T", .shown = "off",
		.min = 1, .help = "end after T without traffic"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "forever", forever),
		.help = "when listening, do not end when every peer has detached"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "ready-file", ready_file), .argument = "FILE",
		.help = "write HOST:PORT to FILE once the peer may start, or the link is attached"},
	{ROW(BOTH, NUMBER, KEY_LONG_ONLY, "start-at", start_at_ns), .argument = "NS", .unit = "_ns",
		.shown = "at once", .help = "no traffic before this time, in ns since the epoch"},
	{ROW(BOTH, TEXT, KEY_LONG_ONLY, "cpu", cpu_list), .argument = "LIST",
		.help = "run on these processors only, e.g. 0 or 0,2-3"},
	{ROW(BOTH, FLAG, KEY_LONG_ONLY, "busy-poll", busy_poll),
		.help = "look for news again and again instead of sleeping: takes a processor"},
	{ROW(BOTH, NUMBER, KEY_LONG_ONLY, "parent-fd", parent_fd), .argument = "FD",
		.max = INT32_MAX,
		.help = "end the run when the other side of this open descriptor is closed, as a "
			"driver that dies does"},
};

const size_t option_table_rows = sizeof option_table / sizeof *option_table;

/* Of the program's own row, if both have one of this name. */
bool option_given(const struct options *o, const char *name)
{
	for (size_t i = 0; i < option_table_rows; i++)
		if (o->given[i] && option_table[i].programs & o->program
			&& !strcmp(option_table[i].name, name))
			return true;
	return false;
}
