/* report: the events of JSON, parsed strictly. */
#define _GNU_SOURCE
#include "report.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))

static const double PERCENTILES[] = {50, 99.9, 99.99999, 100, 50};

static const struct report_value OPTIONS[] = {
	{.name = "flag", .type = VALUE_BOOLEAN, .boolean = true},
	{.name = "count", .type = VALUE_INTEGER, .integer = INT64_MAX},
	{.name = "rate_per_s", .type = VALUE_REAL, .real = 0.5},
	{.name = "text", .type = VALUE_TEXT, .text = "a\"b\\\n\xc3\xa9"},
	{.name = "binary", .type = VALUE_TEXT, .text = "a\xff"},
	{.name = "none", .type = VALUE_NULL},
};

/* What is the same for all reports. */
static struct report_run make_run(bool sender)
{
	static char *argv[] = {"psend", "--address", "\"q\\\t", "\xff", NULL};
	return (struct report_run){.program = "psend",
		.libraries = {{"libqpid-proton", "0.37.0"}, {"jansson", "2.14"}},
		.sender = sender,
		.clock = CLOCK_KIND_MONOTONIC,
		.argv = argv,
		.options = OPTIONS,
		.option_count = LENGTH(OPTIONS),
		.percentiles = PERCENTILES,
		.percentile_count = LENGTH(PERCENTILES),
		.started_ns = INT64_C(1796070000123456789)};
}

/* Ten messages in a quarter of a second, whose time was spent on all causes. */
static struct report_period *make_period(struct report_period *p)
{
	*p = (struct report_period){.index = 4,
		.start_ns = NS_PER_S,
		.end_ns = NS_PER_S + NS_PER_S / 4,
		.partial = true,
		.memory = {5000000, 6000000}};
	stats_reset(&p->stats, TIMINGS_ALL);
	p->stats.n.messages = 10;
	p->stats.n.content_bytes = 1000;
	p->stats.n.accepted = 9;
	p->stats.n.skipped = 3;
	p->stats.n.reordered = 1;
	p->stats.n.call_ns = 5000;
	p->stats.n.stalled_ns = NS_PER_S / 8;
	p->stats.n.cpu_user_ns = NS_PER_S / 8;
	p->stats.n.cpu_span_ns = (uint64_t)(p->end_ns - p->start_ns);
	for (int64_t i = 0; i < 10; i++)
		histogram_record(&p->stats.timings[TIMING_LATENCY], 100 + i * i * 100000);
	uint64_t left = NS_PER_S / 4;
	for (enum time_cause c = TIME_BUSY; c < TIME_IDLE; c++) {
		p->stats.n.time_ns[c] = left / 3;
		left -= left / 3;
	}
	p->stats.n.time_ns[TIME_IDLE] = left;
	p->stats.credit_lowest = 7;
	return p;
}

/* Nothing happened, and nothing is known. */
static struct report_period *make_empty_period(struct report_period *p)
{
	*p = (struct report_period){0};
	stats_reset(&p->stats, TIMINGS_ALL);
	return p;
}

/* A run of that one period; the rate is of half a second. */
static struct report_summary *make_summary(struct report_summary *s)
{
	*s = (struct report_summary){.began_ns = INT64_C(1796070000123456789),
		.first_ns = NS_PER_S,
		.last_ns = NS_PER_S + NS_PER_S / 8,
		.unsettled = 1,
		.stop_reason = "messages",
		.complete = true};
	make_period(&s->total);
	s->whole = s->total.stats.n;
	s->whole.messages += 90; /* of the warm-up */
	return s;
}

/* ---- parsing ---- */

/* Calls MEMBER of the format with its arguments, and returns the one line that it prints. */
#define EVENT(MEMBER, ...)                                                                         \
	({                                                                                         \
		char *text_ = NULL;                                                                \
		size_t size_ = 0;                                                                  \
		FILE *out_ = open_memstream(&text_, &size_);                                       \
		report_json.MEMBER(out_, __VA_ARGS__);                                             \
		fclose(out_);                                                                      \
		parse_line(text_, size_);                                                          \
	})

/* TEXT must be one line of ASCII with one object; it is freed. */
static json_t *parse_line(char *text, size_t size)
{
	json_error_t error;
	assert_true(size > 1 && text[size - 1] == '\n');
	for (size_t i = 0; i < size - 1; i++)
		assert_in_range(text[i], ' ', '~');
	json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		fail_msg("%s at %d: %s", error.text, error.position, text);
	assert_true(json_is_object(object));
	free(text);
	return object;
}

/* The value at a path such as "latency_ns.p50"; the last name is all that is left, so that it may
 * hold points, behind a slash: "latency_ns/p99.9". */
static json_t *at(json_t *object, const char *path)
{
	char name[64];
	const char *rest = path;
	for (const char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
		snprintf(name, sizeof name, "%.*s", (int)(slash - rest), rest);
		object = json_object_get(object, name);
	}
	json_t *value = json_object_get(object, rest);
	if (!value)
		fail_msg("there is no %s", path);
	return value;
}

/* Counts and ns are never printed as reals. */
static void assert_integer(json_t *object, const char *path, json_int_t expected)
{
	assert_true(json_is_integer(at(object, path)));
	if (json_integer_value(at(object, path)) != expected)
		fail_msg("%s is %lld, not %lld", path, json_integer_value(at(object, path)),
			(long long)expected);
}

/* But for rounding. */
static void assert_number(json_t *object, const char *path, double expected)
{
	double value = json_number_value(at(object, path));
	assert_true(json_is_number(at(object, path)));
	if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
		fail_msg("%s is %.17g, not %.17g", path, value, expected);
}

/* A string, not null. */
static void assert_text(json_t *object, const char *path, const char *expected)
{
	assert_true(json_is_string(at(object, path)));
	assert_string_equal(json_string_value(at(object, path)), expected);
}

/* It is there, and null. */
static void assert_null_at(json_t *object, const char *path)
{
	if (!json_is_null(at(object, path)))
		fail_msg("%s is not null", path);
}

/* True or false, not a number. */
static void assert_boolean(json_t *object, const char *path, bool expected)
{
	assert_true(json_is_boolean(at(object, path)));
	assert_int_equal(json_is_true(at(object, path)), expected);
}

/* ---- events ---- */

/* All that is needed to repeat the run. */
static void test_start(void **state)
{
	(void)state;
	struct report_run run = make_run(true);
	json_t *o = EVENT(start, &run);
	assert_text(o, "event", "start");
	assert_text(o, "schema", "ppair/1");
	assert_text(o, "program", "psend");
	assert_text(o, "version", PPAIR_VERSION);
	assert_text(o, "libraries/libqpid-proton", "0.37.0");
	assert_text(o, "libraries/jansson", "2.14");
	assert_text(o, "clock", "monotonic");
	assert_text(o, "time", "2026-11-30T20:20:00.123456789Z");
	assert_integer(o, "time_ns", INT64_C(1796070000123456789));
	assert_true(json_integer_value(at(o, "cpu/count")) > 0);
	assert_true(json_is_string(at(o, "host")));
	assert_true(json_is_string(at(o, "kernel")));
	assert_int_equal(json_array_size(at(o, "argv")), 4);
	assert_string_equal(json_string_value(json_array_get(at(o, "argv"), 2)), "\"q\\\t");
	assert_true(json_is_string(json_array_get(at(o, "argv"), 3)));
	json_decref(o);
}

/* Text that is not UTF-8 must not make the event vanish. */
static void test_options_have_their_types(void **state)
{
	(void)state;
	struct report_run run = make_run(true);
	json_t *o = EVENT(start, &run);
	assert_int_equal(json_object_size(at(o, "options")), LENGTH(OPTIONS));
	assert_boolean(o, "options/flag", true);
	assert_integer(o, "options/count", INT64_MAX);
	assert_number(o, "options/rate_per_s", 0.5);
	assert_text(o, "options/text", "a\"b\\\n\xc3\xa9");
	assert_text(o, "options/binary", "a?");
	assert_null_at(o, "options/none");
	json_decref(o);
}

/* Of either kind. */
static void test_ready(void **state)
{
	(void)state;
	struct report_run run = make_run(false);
	const struct report_ready listening = {
		.listening = true, .host = "::1", .port = "5672", .at_ns = 1};
	const struct report_ready attached = {
		.host = "host", .port = "1", .address = "q", .at_ns = NS_PER_S};
	struct report_ready secure = attached;
	secure.tls_protocol = "TLSv1.3";
	secure.tls_cipher = "cipher";
	secure.sasl_mechanism = "PLAIN";
	json_t *o = EVENT(ready, &run, &listening);
	assert_text(o, "event", "ready");
	assert_boolean(o, "listening", true);
	assert_text(o, "host", "::1");
	assert_integer(o, "port", 5672);
	assert_null_at(o, "address");
	assert_text(o, "time", "1970-01-01T00:00:00.000000001Z");
	json_decref(o);
	o = EVENT(ready, &run, &attached);
	assert_boolean(o, "listening", false);
	assert_text(o, "address", "q");
	assert_integer(o, "time_ns", NS_PER_S);
	assert_null_at(o, "tls");
	assert_null_at(o, "sasl");
	json_decref(o);
	o = EVENT(ready, &run, &secure);
	assert_text(o, "tls/protocol", "TLSv1.3");
	assert_text(o, "tls/cipher", "cipher");
	assert_text(o, "sasl", "PLAIN");
	json_decref(o);
}

/* Without a condition it is null. */
static void test_error(void **state)
{
	(void)state;
	struct report_run run = make_run(false);
	const struct failure failure = {.code = EXIT_CONNECTION,
		.what = "link",
		.condition = "amqp:not-found",
		.description = "no \"q\"\n\x80"};
	const struct failure bare = {.code = EXIT_SECURITY, .what = "connection"};
	json_t *o = EVENT(error, &run, &failure);
	assert_text(o, "event", "error");
	assert_text(o, "what", "link");
	assert_text(o, "condition", "amqp:not-found");
	assert_text(o, "description", "no \"q\"\n?");
	assert_integer(o, "exit_code", 2);
	json_decref(o);
	o = EVENT(error, &run, &bare);
	assert_null_at(o, "condition");
	assert_null_at(o, "description");
	assert_integer(o, "exit_code", 3);
	json_decref(o);
}

/* Wall time is split without rest. */
static void assert_times_sum_up(json_t *o, double wall_s)
{
	const char *name;
	json_t *seconds;
	double sum = 0;
	json_object_foreach(at(o, "time_s"), name, seconds)
	{
		assert_true(json_is_number(seconds));
		sum += json_number_value(seconds);
	}
	assert_int_equal(json_object_size(at(o, "time_s")), TIME_CAUSES);
	if (fabs(sum - wall_s) > 1e-9)
		fail_msg("times add up to %.12g, not %.12g", sum, wall_s);
}

/* Only who looks can tell. */
static void test_corrupted_is_known_if_content_is_checked(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	run.checks_content = true;
	make_period(&p)->stats.n.corrupted = 3;
	json_t *o = EVENT(interval, &run, &p);
	assert_integer(o, "messages/corrupted", 3);
	json_decref(o);
}

/* Value by value. */
static void test_interval_of_a_receiver(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	json_t *o = EVENT(interval, &run, make_period(&p));
	assert_text(o, "event", "interval");
	assert_integer(o, "index", 4);
	assert_boolean(o, "partial", true);
	assert_boolean(o, "warmup", false);
	assert_number(o, "start_s", 1);
	assert_number(o, "end_s", 1.25);
	assert_integer(o, "messages/received", 10);
	assert_integer(o, "messages/lost", 2);
	assert_integer(o, "messages/reordered", 1);
	assert_null_at(o, "messages/corrupted");
	assert_number(o, "messages_per_s", 40);
	assert_number(o, "bytes_per_s", 4000);
	assert_integer(o, "content_bytes", 1000);
	assert_integer(o, "latency_ns/count", 10);
	assert_integer(o, "latency_ns/min", 100);
	assert_integer(o, "latency_ns/max", 8100100);
	assert_integer(o, "latency_ns/sum", 28501000);
	assert_number(o, "latency_ns/mean", 2850100);
	assert_integer(o, "latency_ns/p100", 8100100);
	assert_integer(o, "latency_ns/p99.9", 8100100);
	assert_integer(o, "latency_ns/p99.99999", 8100100);
	assert_integer(o, "latency_ns/p50", 1605631);
	assert_null_at(o, "latency_ns/lowest");
	assert_null(json_object_get(at(o, "latency_ns"), "buckets"));
	assert_integer(o, "credit/lowest", 7);
	assert_number(o, "cpu/percent", 50);
	assert_integer(o, "rss_bytes", 5000000);
	assert_text(o, "limited_by", "busy");
	assert_times_sum_up(o, 0.25);
	json_decref(o);
}

/* What only a sender has. */
static void test_interval_of_a_sender(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(true);
	json_t *o = EVENT(interval, &run, make_period(&p));
	assert_integer(o, "messages/sent", 10);
	assert_integer(o, "messages/accepted", 9);
	assert_integer(o, "messages/rejected", 0);
	assert_integer(o, "settlement_ns/count", 10);
	assert_number(o, "call_ns", 500);
	assert_number(o, "credit/stalled_s", 0.125);
	assert_integer(o, "credit/stall_ns/count", 0);
	assert_null_at(o, "credit/stall_ns/p50");
	json_decref(o);
}

/* So that intervals add up to the total. */
static void test_more_may_come_late_than_is_passed_over(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	make_period(&p)->stats.n.reordered = 8;
	json_t *o = EVENT(interval, &run, &p);
	assert_integer(o, "messages/lost", -5);
	json_decref(o);
}

/* Never 0, never nan. */
static void test_what_does_not_exist_is_null(void **state)
{
	(void)state;
	static const char *const NULLS[] = {"messages_per_s", "bytes_per_s", "limited_by",
		"cpu/percent", "rss_bytes", "rss_peak_bytes", "latency_ns/min", "latency_ns/sum",
		"latency_ns/mean", "latency_ns/stddev", "latency_ns/p50", "latency_ns/p99.9",
		"latency_ns/max", "latency_ns/lowest", "credit/lowest"};
	static struct report_period p;
	struct report_run run = make_run(false);
	json_t *o = EVENT(interval, &run, make_empty_period(&p));
	for (size_t i = 0; i < LENGTH(NULLS); i++)
		assert_null_at(o, NULLS[i]);
	assert_integer(o, "latency_ns/count", 0);
	json_decref(o);
	run.sender = true;
	o = EVENT(interval, &run, &p);
	assert_null_at(o, "call_ns");
	assert_null_at(o, "settlement_ns/p50");
	json_decref(o);
}

/* Nobody knows what became of them. */
static void test_without_settlement_there_are_no_outcomes(void **state)
{
	(void)state;
	static const char *const NULLS[] = {"messages/accepted", "messages/rejected",
		"messages/released", "messages/modified", "messages/no_outcome",
		"messages/unsettled"};
	static struct report_summary s;
	struct report_run run = make_run(true);
	run.presettled = true;
	json_t *o = EVENT(summary, &run, make_summary(&s));
	for (size_t i = 0; i < LENGTH(NULLS); i++)
		assert_null_at(o, NULLS[i]);
	json_decref(o);
}

/* Messages are of the whole run, rates of what was measured. */
static void test_summary(void **state)
{
	(void)state;
	static struct report_summary s;
	struct report_run run = make_run(true);
	json_t *o = EVENT(summary, &run, make_summary(&s));
	assert_text(o, "event", "summary");
	assert_text(o, "stop_reason", "messages");
	assert_boolean(o, "interrupted", false);
	assert_boolean(o, "complete", true);
	assert_integer(o, "exit_code", 0);
	assert_integer(o, "messages/sent", 100);
	assert_integer(o, "messages/unsettled", 1);
	assert_integer(o, "measured_messages", 10);
	assert_number(o, "messages_per_s", 80);
	assert_number(o, "bytes_per_s", 8000);
	assert_integer(o, "began_time_ns", INT64_C(1796070000123456789));
	assert_number(o, "first_s", 1);
	assert_number(o, "last_s", 1.125);
	assert_number(o, "wall_s", 0.25);
	assert_times_sum_up(o, 0.25);
	json_decref(o);
}

/* So that stored results can be merged. */
static void test_buckets_sum_to_the_count(void **state)
{
	(void)state;
	static struct report_summary s;
	struct report_run run = make_run(false);
	make_summary(&s);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], -77);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], 2 * HISTOGRAM_MAX_NS);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], 100);
	json_t *o = EVENT(summary, &run, &s);
	json_int_t count = 0, last = -1;
	size_t i;
	json_t *bucket;
	json_array_foreach(at(o, "latency_ns/buckets"), i, bucket)
	{
		json_int_t lowest, in_it;
		assert_int_equal(json_unpack(bucket, "[I, I!]", &lowest, &in_it), 0);
		assert_true(lowest > last && in_it > 0);
		assert_int_equal(histogram_lowest(histogram_index(lowest)), lowest);
		assert_int_equal(
			s.total.stats.timings[TIMING_LATENCY].buckets[histogram_index(lowest)],
			in_it);
		count += in_it;
		last = lowest;
	}
	assert_int_equal(count, 12);
	assert_integer(o, "latency_ns/count", 12);
	assert_integer(o, "latency_ns/negative", 1);
	assert_integer(o, "latency_ns/lowest", -77);
	assert_integer(o, "latency_ns/overflow", 1);
	assert_integer(o, "latency_ns/max", 2 * HISTOGRAM_MAX_NS);
	json_decref(o);
}

/* It is an event like any other. */
static void test_summary_of_a_run_without_traffic(void **state)
{
	(void)state;
	static struct report_summary s;
	struct report_run run = make_run(false);
	s = (struct report_summary){.stop_reason = "signal", .interrupted = true, .exit_code = 130};
	make_empty_period(&s.total);
	json_t *o = EVENT(summary, &run, &s);
	assert_boolean(o, "interrupted", true);
	assert_boolean(o, "complete", false);
	assert_integer(o, "exit_code", 130);
	assert_null_at(o, "began_time_ns");
	assert_null_at(o, "first_s");
	assert_null_at(o, "messages_per_s");
	assert_null_at(o, "bytes_per_s");
	assert_int_equal(json_array_size(at(o, "latency_ns/buckets")), 0);
	json_decref(o);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_options_have_their_types),
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_interval_of_a_receiver),
		cmocka_unit_test(test_corrupted_is_known_if_content_is_checked),
		cmocka_unit_test(test_interval_of_a_sender),
		cmocka_unit_test(test_more_may_come_late_than_is_passed_over),
		cmocka_unit_test(test_what_does_not_exist_is_null),
		cmocka_unit_test(test_without_settlement_there_are_no_outcomes),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_buckets_sum_to_the_count),
		cmocka_unit_test(test_summary_of_a_run_without_traffic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
