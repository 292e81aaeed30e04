/* report: derived numbers, sinks, and the formats that are tables: text, CSV and .hgrm. */
#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))
#define LINES_MAX     1200
#define FIELDS_MAX    64

static const double PERCENTILES[] = {50, 99.9, 99.99999, 100};

/* What is the same for all reports. */
static struct report_run make_run(bool sender)
{
	static char *argv[] = {NULL};
	return (struct report_run){.program = sender ? "psend" : "precv",
		.libraries = {{"a", "1"}, {"b", "2"}},
		.sender = sender,
		.header = true,
		.argv = argv,
		.percentiles = PERCENTILES,
		.percentile_count = LENGTH(PERCENTILES)};
}

/* The second second of a run: 1000 messages of 100 bytes, latencies 1 .. 1000 us. */
static struct report_period *make_period(struct report_period *p)
{
	*p = (struct report_period){.index = 1,
		.start_ns = NS_PER_S,
		.end_ns = 2 * NS_PER_S,
		.memory = {5000000, 6000000}};
	stats_reset(&p->stats, TIMINGS_ALL);
	for (int64_t i = 1; i <= 1000; i++)
		histogram_record(&p->stats.timings[TIMING_LATENCY], i * NS_PER_US);
	p->stats.credit_lowest = 301;
	p->stats.unsettled = 3;
	p->stats.n = (struct counters){.messages = 1000,
		.content_bytes = 100000,
		.accepted = 990,
		.rejected = 4,
		.released = 2,
		.modified = 1,
		.call_ns = 250000,
		.skipped = 7,
		.reordered = 5,
		.duplicated = 2,
		.redelivered = 1,
		.no_timestamp = 6,
		.blocked = 8,
		.stalls = 2,
		.stalled_ns = NS_PER_S / 4,
		.grants = 20,
		.granted = 1100,
		.frames_in = 30,
		.frames_out = 40,
		.cpu_span_ns = NS_PER_S,
		.cpu_user_ns = 600000000,
		.cpu_system_ns = 380000000,
		.switches_voluntary = 11,
		.switches_involuntary = 12,
		.time_ns = {[TIME_BUSY] = 700000000,
			[TIME_CREDIT] = 250000000,
			[TIME_IDLE] = 50000000}};
	histogram_record(&p->stats.timings[TIMING_STALL], NS_PER_S / 8);
	histogram_record(&p->stats.timings[TIMING_STALL], NS_PER_S / 8);
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
	*s = (struct report_summary){.first_ns = NS_PER_S + NS_PER_S / 4,
		.last_ns = NS_PER_S + NS_PER_S / 4 * 3,
		.unsettled = 3,
		.stop_reason = "messages",
		.complete = true};
	make_period(&s->total);
	s->whole = s->total.stats.n;
	return s;
}

/* ---- what is printed ---- */

struct output {
	char *text;
	size_t size;
	FILE *stream;
	char *lines[LINES_MAX]; /* after split_lines(), without newlines */
	size_t line_count;
};

/* Nothing is printed yet. */
static void open_output(struct output *o)
{
	memset(o, 0, sizeof *o);
	o->stream = open_memstream(&o->text, &o->size);
	assert_non_null(o->stream);
}

/* Every line must end, and be of printable ASCII. */
static void split_lines(struct output *o)
{
	fflush(o->stream);
	assert_true(!o->size || o->text[o->size - 1] == '\n');
	for (char *line = o->text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		assert_true(o->line_count < LINES_MAX);
		o->lines[o->line_count++] = line;
		for (const char *c = line; c < end; c++)
			assert_in_range(*c, ' ', '~');
	}
}

/* Frees the text. */
static void close_output(struct output *o)
{
	fclose(o->stream);
	free(o->text);
}

/* Everything that a table has: header, a period, an empty one, the summary. */
static void print_all(struct output *o, const struct report_format *format, bool sender)
{
	static struct report_period period;
	static struct report_summary summary;
	struct report_run run = make_run(sender);
	open_output(o);
	format->start(o->stream, &run);
	format->interval(o->stream, &run, make_period(&period));
	format->interval(o->stream, &run, make_empty_period(&period));
	format->summary(o->stream, &run, make_summary(&summary));
	split_lines(o);
}

/* Prints all lines if there is none. */
static void assert_has_line(const struct output *o, const char *expected)
{
	for (size_t i = 0; i < o->line_count; i++)
		if (!strcmp(o->lines[i], expected))
			return;
	for (size_t i = 0; i < o->line_count; i++)
		print_error("|%s\n", o->lines[i]);
	fail_msg("no line is: %s", expected);
}

/* But for rounding. */
static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
		fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- numbers ---- */

/* Rates of a period are of its length, those of a summary from first to last message. */
static void test_numbers_of_a_period(void **state)
{
	(void)state;
	static struct report_period p;
	static struct report_summary s;
	make_period(&p);
	make_summary(&s);
	assert_near(report_rate_per_s(&p), 1000);
	assert_near(report_bytes_per_s(&p), 100000);
	assert_near(report_cpu_percent(&p), 98);
	assert_near(report_stalled_percent(&p), 25);
	assert_near(report_call_ns(&p), 250);
	assert_near(report_summary_rate_per_s(&s), 2000);
	assert_near(report_summary_bytes_per_s(&s), 200000);
	assert_int_equal(report_limit(&p), TIME_BUSY);
	p.stats.n.time_ns[TIME_SOCKET] = 800000000;
	assert_int_equal(report_limit(&p), TIME_SOCKET);
}

/* Never 0: that would be a result. */
static void test_numbers_that_do_not_exist_are_nan(void **state)
{
	(void)state;
	static struct report_period p;
	static struct report_summary s;
	make_empty_period(&p);
	assert_true(isnan(report_rate_per_s(&p)));
	assert_true(isnan(report_bytes_per_s(&p)));
	assert_true(isnan(report_cpu_percent(&p)));
	assert_true(isnan(report_stalled_percent(&p)));
	assert_true(isnan(report_call_ns(&p)));
	assert_int_equal(report_limit(&p), TIME_CAUSES);
	make_summary(&s);
	s.first_ns = s.last_ns;
	assert_true(isnan(report_summary_rate_per_s(&s)));
	assert_true(isnan(report_summary_bytes_per_s(&s)));
}

/* ---- text ---- */

/* Line by line. */
static void test_text_of_a_receiver(void **state)
{
	(void)state;
	struct output o;
	print_all(&o, &report_text, false);
	assert_string_equal(o.lines[0],
		"  time s  messages    msg/s    MB/s lat us p50      p99      max credit min cpu %"
		" rss MB");
	assert_string_equal(o.lines[1],
		"     2.0      1000     1000     0.1      501.8    991.2   1000.0        301    98"
		"    5.0");
	assert_string_equal(o.lines[2],
		"     0.0         0        -       -          -        -        -          -     -"
		"      -");
	assert_string_equal(o.lines[3],
		"   total      1000     2000     0.2      501.8    991.2   1000.0        301    98"
		"    5.0");
	assert_has_line(&o,
		"messages: received 1000  lost 2  duplicated 2  reordered 5  "
		"redelivered 1  no timestamp 6");
	assert_has_line(&o, "credit: grants 20  granted 1100  lowest 301  frames in 30  out 40");
	assert_has_line(&o,
		"time: busy 70.0 %  credit 25.0 %  idle 5.0 %   limited by receiver"
		" cpu");
	close_output(&o);
}

/* It is said that nothing was found. */
static void test_text_of_a_receiver_that_checks_content(void **state)
{
	(void)state;
	struct report_run run = make_run(false);
	struct report_summary s;
	struct output o;
	run.checks_content = true;
	make_summary(&s)->whole.corrupted = 4;
	open_output(&o);
	report_text.summary(o.stream, &run, &s);
	split_lines(&o);
	assert_has_line(&o,
		"messages: received 1000  lost 2  duplicated 2  reordered 5  "
		"redelivered 1  corrupted 4  no timestamp 6");
	close_output(&o);
}

/* Its columns are others. */
static void test_text_of_a_sender(void **state)
{
	(void)state;
	struct output o;
	print_all(&o, &report_text, true);
	assert_string_equal(o.lines[0],
		"  time s  messages    msg/s    MB/s call ns settle us p50      p99      max blocked"
		" stalled % cpu % rss MB");
	assert_string_equal(o.lines[1],
		"     2.0      1000     1000     0.1     250         501.8    991.2   1000.0       8"
		"      25.0    98    5.0");
	assert_has_line(&o,
		"messages: sent 1000  accepted 990  rejected 4  released 2  modified 1"
		"  unsettled 3");
	assert_has_line(&o,
		"stall us: min 125000.0  p50 125000.0  p99.9 125000.0  p99.99999"
		" 125000.0  p100 125000.0  max 125000.0  mean 125000.0  stddev 0.0");
	close_output(&o);
}

/* 99.99999 must not be called 100. */
static void test_text_names_percentiles_as_they_were_asked_for(void **state)
{
	(void)state;
	struct output o;
	print_all(&o, &report_text, false);
	assert_has_line(&o,
		"latency us: min 1.0  p50 501.8  p99.9 999.4  p99.99999 1000.0"
		"  p100 1000.0  max 1000.0  mean 500.5  stddev 288.7");
	close_output(&o);
}

/* The right ends of the words of LINE are where those of the headings are, except for headings of
 * more than one word. */
static void assert_columns_end_alike(const char *a, const char *b)
{
	assert_int_equal(strlen(a), strlen(b));
	for (size_t i = 0; a[i]; i++) {
		bool ends_a = a[i] != ' ' && (a[i + 1] == ' ' || !a[i + 1]);
		bool ends_b = b[i] != ' ' && (b[i + 1] == ' ' || !b[i + 1]);
		if (ends_a != ends_b)
			fail_msg("column %zu:\n%s\n%s", i, a, b);
	}
}

/* With and without numbers. */
static void test_text_columns_are_aligned(void **state)
{
	(void)state;
	for (int sender = 0; sender < 2; sender++) {
		struct output o;
		print_all(&o, &report_text, sender);
		for (size_t i = 2; i < 4; i++)
			assert_columns_end_alike(o.lines[1], o.lines[i]);
		assert_int_equal(strlen(o.lines[0]), strlen(o.lines[1]));
		close_output(&o);
	}
}

/* Counts the words of LINE. */
static size_t count_words(const char *line)
{
	size_t words = 0;
	for (size_t i = 0; line[i]; i++)
		words += line[i] != ' ' && (!i || line[i - 1] == ' ');
	return words;
}

/* Scripts split lines at spaces. */
static void test_text_columns_stay_apart_however_large(void **state)
{
	(void)state;
	static struct report_period p;
	struct output o;
	struct report_run run = make_run(true);
	make_period(&p);
	p.end_ns = INT64_C(1000000) * NS_PER_S;
	p.stats.n.messages = UINT64_C(1) << 60;
	p.stats.n.content_bytes = UINT64_C(1) << 62;
	p.stats.n.blocked = UINT64_C(1) << 50;
	p.stats.n.call_ns = UINT64_C(1) << 62;
	p.stats.n.cpu_user_ns = UINT64_C(1) << 62;
	p.stats.n.cpu_span_ns = UINT64_C(1000000) * NS_PER_S;
	p.stats.n.stalled_ns = UINT64_C(1) << 62;
	p.memory.rss_bytes = UINT64_C(1) << 45;
	histogram_record(&p.stats.timings[TIMING_LATENCY], INT64_MAX);
	open_output(&o);
	report_text.interval(o.stream, &run, &p);
	split_lines(&o);
	assert_int_equal(count_words(o.lines[0]), 12);
	assert_int_equal(o.lines[0][0], ' ');
	close_output(&o);
}

/* Values that are in no percentile must not vanish. */
static void test_text_says_what_was_left_out(void **state)
{
	(void)state;
	static struct report_summary s;
	struct report_run run = make_run(false);
	struct output o;
	make_summary(&s);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], -1500);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], -2500);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], HISTOGRAM_MAX_NS + 1);
	s.stop_reason = "timeout";
	s.complete = false;
	s.exit_code = 4;
	open_output(&o);
	report_text.summary(o.stream, &run, &s);
	split_lines(&o);
	assert_has_line(&o, "latency us: 2 negative, left out; the lowest was -2.5");
	assert_has_line(&o, "latency us: 1 above one hour");
	assert_has_line(&o, "ended: timeout, not complete, exit code 4");
	close_output(&o);
}

/* It has no numbers, and says so. */
static void test_text_of_a_run_without_traffic(void **state)
{
	(void)state;
	for (int sender = 0; sender < 2; sender++) {
		static struct report_summary s;
		struct report_run run = make_run(sender);
		struct output o;
		s = (struct report_summary){.stop_reason = "signal"};
		make_empty_period(&s.total);
		open_output(&o);
		report_text.summary(o.stream, &run, &s);
		split_lines(&o);
		assert_has_line(&o, sender ? "settlement us: -" : "latency us: -");
		assert_has_line(&o, "time: -");
		for (size_t i = 0; i < o.line_count; i++) {
			assert_null(strstr(o.lines[i], "nan"));
			assert_null(strstr(o.lines[i], "inf"));
		}
		close_output(&o);
	}
}

/* Its lines are not part of the total. */
static void test_text_marks_the_warm_up(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	struct output o;
	make_period(&p)->warmup = true;
	open_output(&o);
	report_text.interval(o.stream, &run, &p);
	split_lines(&o);
	assert_non_null(strstr(o.lines[0], "  warm-up"));
	close_output(&o);
}

/* --report-header no */
static void test_tables_without_header_begin_with_numbers(void **state)
{
	(void)state;
	struct report_run run = make_run(true);
	struct output o;
	run.header = false;
	open_output(&o);
	report_text.start(o.stream, &run);
	report_csv.start(o.stream, &run);
	fflush(o.stream);
	assert_int_equal(o.size, 0);
	close_output(&o);
}

/* ---- CSV ---- */

/* Cuts LINE at its commas. */
static size_t split_fields(char *line, char *fields[FIELDS_MAX])
{
	size_t count = 0;
	for (char *field; (field = strsep(&line, ","));) {
		assert_true(count < FIELDS_MAX);
		fields[count++] = field;
	}
	return count;
}

/* Where the field called NAME is. */
static size_t find_field(char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	fail_msg("no column is called %s", name);
	return 0;
}

/* And no two columns have the same name. */
static void test_csv_lines_have_the_same_fields(void **state)
{
	(void)state;
	for (int sender = 0; sender < 2; sender++) {
		struct output o;
		char *names[FIELDS_MAX], *fields[FIELDS_MAX];
		print_all(&o, &report_csv, sender);
		assert_int_equal(o.line_count, 4);
		size_t count = split_fields(o.lines[0], names);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(find_field(names, count, names[i]), i);
		for (size_t i = 1; i < 4; i++)
			assert_int_equal(split_fields(o.lines[i], fields), count);
		close_output(&o);
	}
}

/* A column's value in the lines of a period, an empty one, and the summary; NULL is not looked
 * at. */
struct csv_column {
	const char *name, *period, *empty, *summary;
};

/* Finds columns by their names. */
static void check_csv(bool sender, const struct csv_column *columns, size_t column_count)
{
	struct output o;
	char *names[FIELDS_MAX], *fields[3][FIELDS_MAX];
	print_all(&o, &report_csv, sender);
	size_t count = split_fields(o.lines[0], names);
	for (size_t i = 0; i < 3; i++)
		split_fields(o.lines[i + 1], fields[i]);
	for (size_t i = 0; i < column_count; i++) {
		size_t at = find_field(names, count, columns[i].name);
		assert_string_equal(fields[0][at], columns[i].period);
		assert_string_equal(fields[1][at], columns[i].empty);
		assert_string_equal(fields[2][at], columns[i].summary);
	}
	close_output(&o);
}

/* In the units that the names say, empty where there is none. */
static void test_csv_values_of_a_receiver(void **state)
{
	(void)state;
	static const struct csv_column COLUMNS[] = {
		{"event", "interval", "interval", "summary"},
		{"start_s", "1", "0", "1"},
		{"end_s", "2", "0", "2"},
		{"messages", "1000", "0", "1000"},
		{"messages_per_s", "1000", "", "2000"},
		{"content_bytes", "100000", "0", "100000"},
		{"bytes_per_s", "100000", "", "200000"},
		{"latency_p50_ns", "501759", "", "501759"},
		{"latency_max_ns", "1000000", "", "1000000"},
		{"credit_lowest", "301", "", "301"},
		{"grants", "20", "0", "20"},
		{"granted", "1100", "0", "1100"},
		{"frames_in", "30", "0", "30"},
		{"time_busy_s", "0.7", "0", "0.7"},
		{"time_credit_s", "0.25", "0", "0.25"},
		{"cpu_percent", "98", "", "98"},
		{"rss_bytes", "5000000", "", "5000000"},
		{"warmup", "0", "0", "0"},
	};
	check_csv(false, COLUMNS, LENGTH(COLUMNS));
}

/* Those that a receiver does not have. */
static void test_csv_values_of_a_sender(void **state)
{
	(void)state;
	static const struct csv_column COLUMNS[] = {
		{"call_ns", "250", "", "250"},
		{"settlement_p50_ns", "501759", "", "501759"},
		{"settlement_max_ns", "1000000", "", "1000000"},
		{"blocked", "8", "0", "8"},
		{"stalls", "2", "0", "2"},
		{"stalled_s", "0.25", "0", "0.25"},
		{"stalled_percent", "25", "", "25"},
		{"frames_out", "40", "0", "40"},
	};
	check_csv(true, COLUMNS, LENGTH(COLUMNS));
}

/* ---- .hgrm ---- */

/* Prints the distribution of a summary. */
static void print_hdr(struct output *o, const struct report_summary *s)
{
	struct report_run run = make_run(false);
	open_output(o);
	report_hdr.summary(o->stream, &run, s);
	split_lines(o);
}

/* Prints the distribution of a summary and checks its lines; returns how many there are. */
static size_t check_hdr(const struct report_summary *s, uint64_t count, double max_us)
{
	struct output o;
	print_hdr(&o, s);
	double value, quantile, inverse, last_value = 0, last_quantile = -1;
	uint64_t total = 0, last_total = 0;
	size_t rows = 0;
	assert_has_line(&o, "           Value     Percentile TotalCount 1/(1-Percentile)");
	for (size_t i = 2; i < o.line_count && o.lines[i][0] != '#'; i++, rows++) {
		int read = sscanf(
			o.lines[i], "%lf %lf %" SCNu64 " %lf", &value, &quantile, &total, &inverse);
		bool last = o.lines[i + 1][0] == '#';
		assert_true(o.lines[i][0] == ' ');
		assert_int_equal(read, last ? 3 : 4);
		assert_true(quantile > last_quantile && quantile <= 1);
		assert_true(value >= last_value);
		assert_true(total >= last_total);
		assert_true((double)total >= quantile * (double)count * (1 - 1e-12));
		if (!last)
			assert_true(fabs(inverse * (1 - quantile) - 1) < 0.01);
		last_value = value;
		last_quantile = quantile;
		last_total = total;
	}
	if (rows) {
		assert_true(last_quantile == 1);
		assert_near(last_value, max_us);
	}
	assert_int_equal(last_total, count);
	close_output(&o);
	return rows;
}

/* The format that plotters of HdrHistogram read. */
static void test_hdr_percentiles_ascend_to_the_count(void **state)
{
	(void)state;
	static struct report_summary s;
	make_summary(&s);
	assert_true(check_hdr(&s, 1000, 1000) > 20);
	for (int i = 0; i < 20; i++) /* a thousand million */
		histogram_add(&s.total.stats.timings[TIMING_LATENCY],
			&s.total.stats.timings[TIMING_LATENCY]);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], 5 * NS_PER_MS);
	assert_true(check_hdr(&s, (UINT64_C(1000) << 20) + 1, 5000) > 100);
}

/* The loop over percentiles has to end. */
static void test_hdr_of_one_value_and_of_none(void **state)
{
	(void)state;
	static struct report_summary s;
	make_summary(&s);
	histogram_reset(&s.total.stats.timings[TIMING_LATENCY]);
	assert_int_equal(check_hdr(&s, 0, 0), 0);
	histogram_record(&s.total.stats.timings[TIMING_LATENCY], 1234567);
	assert_int_equal(check_hdr(&s, 1, 1234.567), 3); /* 0 %, 10 % and 100 % */
}

/* Several files are put beside one another line by line. */
static void test_hdr_lists_percentiles_of_hdrhistogram_alone(void **state)
{
	(void)state;
	static const double QUANTILES[] = {0, .1, .2, .3, .4, .5, .55, .6, .65, .7, .75, .775, .8,
		.825, .85, .875, .8875, .9, .9125, .925, .9375, .94375};
	static struct report_summary s;
	make_summary(&s);
	struct output o;
	print_hdr(&o, &s);
	for (size_t i = 0; i < LENGTH(QUANTILES); i++) {
		double quantile;
		assert_int_equal(sscanf(o.lines[i + 2], "%*f %lf", &quantile), 1);
		assert_near(quantile, QUANTILES[i]);
	}
	close_output(&o);
}

/* From which files are merged: the counts are those of the histogram. */
static void test_hdr_lists_every_bucket(void **state)
{
	(void)state;
	static struct report_summary s;
	static struct histogram read;
	make_summary(&s);
	struct histogram *h = &s.total.stats.timings[TIMING_LATENCY];
	struct output o;
	print_hdr(&o, &s);
	histogram_reset(&read);
	uint64_t lowest_us, lowest_ns, count;
	for (size_t i = 0; i < o.line_count; i++)
		if (sscanf(o.lines[i], "#[Bucket = %" SCNu64 ".%3" SCNu64 ", Count = %" SCNu64 "]",
			    &lowest_us, &lowest_ns, &count)
			== 3)
			read.buckets[histogram_index((int64_t)(lowest_us * 1000 + lowest_ns))] =
				count;
	assert_memory_equal(read.buckets, h->buckets, sizeof read.buckets);
	assert_has_line(&o, "#[Exact   = ppair-hgrm/1, every bucket follows]");
	close_output(&o);
}

/* Sums beyond 64 bits, and what has no bucket. */
static void test_hdr_has_what_buckets_do_not_say(void **state)
{
	(void)state;
	static struct report_summary s;
	make_summary(&s);
	struct histogram *h = &s.total.stats.timings[TIMING_LATENCY];
	histogram_reset(h);
	histogram_record(h, INT64_MAX);
	histogram_record(h, INT64_MAX);
	histogram_record(h, INT64_MIN);
	histogram_record(h, -7);
	histogram_record(h, 4);
	struct output o;
	print_hdr(&o, &s);
	assert_has_line(&o, "           0.004 0.000000000000          1           1.00");
	assert_has_line(&o, "9223372036854775.807 1.000000000000          3");
	assert_has_line(&o, "#[Sum     = 18446744073709551.618, Overflow       =            2]");
	assert_has_line(&o, "#[Lowest  = -9223372036854775.808, Negative       =            2]");
	assert_has_line(&o, "#[Bucket  =        0.004, Count          =            1]");
	assert_has_line(&o, "#[Bucket  = 3590592659.456, Count          =            2]");
	close_output(&o);
}

/* What was timed, by its name in JSON without the unit, as values are in us. */
static void test_hdr_says_what_it_holds(void **state)
{
	(void)state;
	static const struct {
		bool sender, asks;
		const char *line;
	} RUNS[] = {
		{false, false, "#[Timing  = latency]"},
		{true, false, "#[Timing  = settlement]"},
		{true, true, "#[Timing  = round_trip]"},
	};
	static struct report_summary s;
	make_summary(&s);
	for (size_t i = 0; i < LENGTH(RUNS); i++) {
		struct report_run run = make_run(RUNS[i].sender);
		run.asks = RUNS[i].asks;
		struct output o;
		open_output(&o);
		report_hdr.summary(o.stream, &run, &s);
		split_lines(&o);
		assert_has_line(&o, RUNS[i].line);
		close_output(&o);
	}
}

/* ---- sinks ---- */

/* A reader of a pipe waits for each line. */
static void test_every_sink_gets_its_format_at_once(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	struct report report = {.run = &run};
	struct output text, csv, hdr;
	open_output(&text);
	open_output(&csv);
	open_output(&hdr);
	report_add_sink(&report, &report_text, text.stream, "text");
	report_add_sink(&report, &report_csv, csv.stream, "csv");
	report_add_sink(&report, &report_hdr, hdr.stream, "hdr");
	report_start(&report);
	report_interval(&report, make_period(&p));
	/* without a flush of ours: that lines are flushed is part of the contract */
	assert_non_null(strstr(text.text, "lat us p50"));
	assert_non_null(strstr(csv.text, "\ninterval,1,2,1000,"));
	assert_int_equal(hdr.size, 0);
	assert_true(report_close(&report));
	free(text.text);
	free(csv.text);
	free(hdr.text);
}

/* The complaint is on stderr. */
static void test_a_sink_that_cannot_be_written_fails(void **state)
{
	(void)state;
	static struct report_period p;
	struct report_run run = make_run(false);
	struct report report = {.run = &run};
	FILE *full = fopen("/dev/full", "w");
	if (!full)
		skip();
	report_add_sink(&report, &report_csv, full, "/dev/full");
	report_start(&report);
	report_interval(&report, make_period(&p));
	assert_false(report_close(&report));
}

/* Of so many that were due, the last of them just now. */
static enum report_rate rate_of(uint64_t due, uint64_t just_due, uint64_t sent)
{
	struct report_period p;
	make_empty_period(&p);
	p.stats.n.due = due;
	p.stats.n.messages = sent;
	p.stats.just_due = just_due;
	return report_rate(&p);
}

static void test_a_rate_is_met_but_for_a_thousandth(void **state)
{
	(void)state;
	assert_int_equal(rate_of(100000, 0, 99900), RATE_MET);
	assert_int_equal(rate_of(100000, 0, 99899), RATE_MISSED);
	assert_int_equal(rate_of(100000, 500, 99400), RATE_MET);
	assert_int_equal(rate_of(100000, 500, 99399), RATE_MISSED);
	assert_int_equal(rate_of(1000000000, 0, 723000), RATE_MISSED);
	assert_int_equal(rate_of(10, 0, 9), RATE_MET);
	assert_int_equal(rate_of(10, 0, 8), RATE_MISSED);
	assert_int_equal(rate_of(10, 0, 12), RATE_MET);
}

/* All was sent, in more than the time that there was. */
static void test_a_rate_is_missed_by_who_is_late_at_the_end(void **state)
{
	(void)state;
	static const struct {
		uint64_t paced_ns, overrun_ns;
		enum report_rate rate;
	} CASES[] = {
		{NS_PER_S, 0, RATE_MET},
		{NS_PER_S, NS_PER_MS, RATE_MET},
		{NS_PER_S, NS_PER_MS + 1, RATE_MISSED},
		{10 * NS_PER_S, 10 * NS_PER_MS, RATE_MET},
		{10 * NS_PER_S, 10 * NS_PER_MS + 1, RATE_MISSED},
		{NS_PER_MS, NS_PER_MS, RATE_MET},
	};
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		struct report_period p;
		make_empty_period(&p);
		p.stats.n.due = p.stats.n.messages = 1000;
		p.stats.n.paced_ns = CASES[i].paced_ns;
		p.stats.overrun_ns = CASES[i].overrun_ns;
		assert_int_equal(report_rate(&p), CASES[i].rate);
	}
}

static void test_who_sends_nothing_has_no_rate_or_misses_it(void **state)
{
	(void)state;
	assert_int_equal(rate_of(0, 0, 0), RATE_UNKNOWN);
	assert_int_equal(rate_of(1, 1, 0), RATE_UNKNOWN);
	assert_int_equal(rate_of(1, 0, 0), RATE_MISSED);
	assert_int_equal(rate_of(2, 1, 0), RATE_MISSED);
	assert_int_equal(rate_of(0, 0, 1), RATE_MET);
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_of_a_period),
		cmocka_unit_test(test_numbers_that_do_not_exist_are_nan),
		cmocka_unit_test(test_a_rate_is_met_but_for_a_thousandth),
		cmocka_unit_test(test_a_rate_is_missed_by_who_is_late_at_the_end),
		cmocka_unit_test(test_who_sends_nothing_has_no_rate_or_misses_it),
		cmocka_unit_test(test_text_of_a_receiver),
		cmocka_unit_test(test_text_of_a_receiver_that_checks_content),
		cmocka_unit_test(test_text_of_a_sender),
		cmocka_unit_test(test_text_names_percentiles_as_they_were_asked_for),
		cmocka_unit_test(test_text_columns_are_aligned),
		cmocka_unit_test(test_text_columns_stay_apart_however_large),
		cmocka_unit_test(test_text_says_what_was_left_out),
		cmocka_unit_test(test_text_of_a_run_without_traffic),
		cmocka_unit_test(test_text_marks_the_warm_up),
		cmocka_unit_test(test_tables_without_header_begin_with_numbers),
		cmocka_unit_test(test_csv_lines_have_the_same_fields),
		cmocka_unit_test(test_csv_values_of_a_receiver),
		cmocka_unit_test(test_csv_values_of_a_sender),
		cmocka_unit_test(test_hdr_percentiles_ascend_to_the_count),
		cmocka_unit_test(test_hdr_of_one_value_and_of_none),
		cmocka_unit_test(test_hdr_lists_percentiles_of_hdrhistogram_alone),
		cmocka_unit_test(test_hdr_lists_every_bucket),
		cmocka_unit_test(test_hdr_has_what_buckets_do_not_say),
		cmocka_unit_test(test_hdr_says_what_it_holds),
		cmocka_unit_test(test_every_sink_gets_its_format_at_once),
		cmocka_unit_test(test_a_sink_that_cannot_be_written_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
