/* pacer: when messages are due, under rates, work and lateness. */
#include "pacer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define ORIGIN_NS INT64_C(5000000000000)
#define S_NS      INT64_C(1000000000)
#define SLACK_NS  PACER_SLACK_NS

/* A pacer that starts at the origin. */
static struct pacer start(double rate_per_s, int64_t work_ns)
{
	struct pacer p;
	pacer_start(&p, rate_per_s, work_ns, ORIGIN_NS);
	return p;
}

/* Relative to the origin. */
static void assert_due(const struct pacer *p, int64_t since_origin_ns)
{
	assert_int_equal(pacer_due_ns(p) - ORIGIN_NS, since_origin_ns);
}

/* Takes COUNT messages, each when it is due. */
static void take_on_time(struct pacer *p, int count)
{
	while (count--)
		pacer_take(p, pacer_due_ns(p), true);
}

/* A run without limits must not look at the schedule. */
static void test_without_rate_and_work_nothing_is_waited_for(void **state)
{
	(void)state;
	struct pacer p = start(0, 0);
	assert_false(pacer_limits(&p));
	for (int i = 0; i < 100; i++) {
		assert_true(pacer_due_ns(&p) <= ORIGIN_NS + i);
		pacer_take(&p, ORIGIN_NS + i, false);
	}
	p = start(1, 0);
	assert_true(pacer_limits(&p));
	p = start(0, 1);
	assert_true(pacer_limits(&p));
}

/* No period is lost at the start. */
static void test_the_first_is_due_at_once(void **state)
{
	(void)state;
	struct pacer p = start(1000, 0);
	assert_due(&p, 0);
	pacer_take(&p, ORIGIN_NS, false);
	assert_due(&p, 1000000);
}

/* Due times are absolute, however many came before. */
static void test_the_schedule_does_not_drift(void **state)
{
	(void)state;
	static const struct {
		double rate_per_s;
		int messages;
		int64_t due_ns;
	} RUNS[] = {{1000, 100000, 100 * S_NS}, {3, 300, 100 * S_NS}, {7, 70000, 10000 * S_NS},
		{3000000, 6000000, 2 * S_NS}, {0.1, 100, 1000 * S_NS}, {1e9, 1000, 1000}};
	for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
		struct pacer p = start(RUNS[i].rate_per_s, 0);
		take_on_time(&p, RUNS[i].messages);
		int64_t off_ns = pacer_due_ns(&p) - ORIGIN_NS - RUNS[i].due_ns;
		if (llabs(off_ns) > 100) /* rounding, in up to three hours */
			fail_msg("%g/s: %lld ns off", RUNS[i].rate_per_s, (long long)off_ns);
	}
}

/* Late wake-ups must not lower the rate. */
static void test_lateness_within_the_slack_is_caught_up(void **state)
{
	(void)state;
	struct pacer p = start(1000, 0);
	for (int i = 0; i < 1000; i++) /* each one late, by up to 1 ms */
		pacer_take(&p, pacer_due_ns(&p) + i * 1000, true);
	assert_due(&p, S_NS);
}

/* A long silence must not be followed by a long burst. */
static void test_what_is_missed_beyond_the_slack_is_given_up(void **state)
{
	(void)state;
	struct pacer p = start(1000, 0);
	pacer_take(&p, ORIGIN_NS, true);
	assert_due(&p, 1000000);
	const int64_t now_ns = 10 * S_NS; /* since the origin, after a long silence */
	pacer_take(&p, ORIGIN_NS + now_ns, false);
	/* the next is due as if this one had been late by just the slack */
	assert_due(&p, now_ns - SLACK_NS + 1000000);
	int burst = 0;
	while (pacer_due_ns(&p) <= ORIGIN_NS + now_ns) {
		pacer_take(&p, ORIGIN_NS + now_ns, false);
		burst++;
	}
	assert_int_equal(burst, SLACK_NS / 1000000);
}

/* At a rate at which the slack holds many messages. */
static void test_a_burst_after_silence_is_as_long_as_the_slack(void **state)
{
	(void)state;
	struct pacer p = start(100000, 0); /* one each 10 us */
	const int64_t now_ns = ORIGIN_NS + 60 * S_NS;
	int burst = 0;
	for (; pacer_due_ns(&p) <= now_ns; burst++)
		pacer_take(&p, now_ns, false);
	assert_in_range(burst, SLACK_NS / 10000, SLACK_NS / 10000 + 1);
}

/* No debt is built up. */
static void test_the_rate_is_kept_when_every_message_is_overdue(void **state)
{
	(void)state;
	struct pacer p = start(1000, 0);
	int64_t now_ns = ORIGIN_NS;
	for (int i = 0; i < 1000; i++) { /* 5 ms late each: slower than the rate, no debt */
		now_ns = pacer_due_ns(&p) + 5000000;
		pacer_take(&p, now_ns, true);
		assert_int_equal(pacer_due_ns(&p), now_ns - SLACK_NS + 1000000);
	}
}

/* A consumer that works on one message takes no other. */
static void test_work_holds_the_next_back(void **state)
{
	(void)state;
	struct pacer p = start(0, 250000);
	assert_true(pacer_due_ns(&p) <= ORIGIN_NS);
	pacer_take(&p, ORIGIN_NS + 100, false);
	assert_due(&p, 100 + 250000);
	pacer_take(&p, ORIGIN_NS + 300000, false); /* there was none before */
	assert_due(&p, 300000 + 250000);
}

/* Or waking up would be counted as work. */
static void test_work_begins_when_it_was_due_if_we_were_waiting(void **state)
{
	(void)state;
	struct pacer p = start(0, 250000);
	pacer_take(&p, ORIGIN_NS, false);
	for (int i = 1; i <= 1000; i++) {
		assert_due(&p, i * INT64_C(250000));
		pacer_take(&p, pacer_due_ns(&p) + 7000, true); /* woken late, without drift */
	}
}

/* Beyond the slack there was no waiting. */
static void test_work_begins_now_if_we_are_much_too_late(void **state)
{
	(void)state;
	struct pacer p = start(0, 250000);
	pacer_take(&p, ORIGIN_NS, false);
	pacer_take(&p, ORIGIN_NS + 250000 + SLACK_NS, true);
	assert_due(&p, 250000 + SLACK_NS + 250000);
	struct pacer q = start(0, 250000);
	pacer_take(&q, ORIGIN_NS, false);
	pacer_take(&q, ORIGIN_NS + 250000 + SLACK_NS - 1, true);
	assert_due(&q, 500000);
}

/* Both limits hold. */
static void test_the_slower_of_rate_and_work_decides(void **state)
{
	(void)state;
	struct pacer rate = start(1000, 250000), work = start(10000, 250000);
	take_on_time(&rate, 100);
	assert_due(&rate, 100 * INT64_C(1000000));
	take_on_time(&work, 100);
	assert_due(&work, 100 * INT64_C(250000));
}

/* All of them. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_rate_and_work_nothing_is_waited_for),
		cmocka_unit_test(test_the_first_is_due_at_once),
		cmocka_unit_test(test_the_schedule_does_not_drift),
		cmocka_unit_test(test_lateness_within_the_slack_is_caught_up),
		cmocka_unit_test(test_what_is_missed_beyond_the_slack_is_given_up),
		cmocka_unit_test(test_a_burst_after_silence_is_as_long_as_the_slack),
		cmocka_unit_test(test_the_rate_is_kept_when_every_message_is_overdue),
		cmocka_unit_test(test_work_holds_the_next_back),
		cmocka_unit_test(test_work_begins_when_it_was_due_if_we_were_waiting),
		cmocka_unit_test(test_work_begins_now_if_we_are_much_too_late),
		cmocka_unit_test(test_the_slower_of_rate_and_work_decides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
