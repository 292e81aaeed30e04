#define _GNU_SOURCE
#include "trap.h"

#include "fatal.h"

#include <proton/condition.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* What to do when an assertion fails on this thread; NULL: end the process. */
static _Thread_local struct trap {
	jmp_buf back;
	const char *assertion;
} * trap;

/* Not declared by assert.h where assertions are off, as they are in ours. */
_Noreturn void __assert_fail(
	const char *assertion, const char *file, unsigned line, const char *function);

/* Takes the place of libc's in the library as well, whose references find the program's first. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
	if (!trap) {
		complain("%s:%u: %s: assertion '%s' failed", file, line, function, assertion);
		abort();
	}
	trap->assertion = assertion;
	longjmp(trap->back, 1);
}

static void set_condition(pn_transport_t *transport, const char *assertion)
{
	pn_condition_t *condition = pn_transport_condition(transport);
	char text[128];
	if (pn_condition_is_set(condition))
		return;
	snprintf(text, sizeof text, "libqpid-proton does not allow that: assertion '%s' failed",
		assertion);
	pn_condition_set_name(condition, "amqp:connection:framing-error");
	pn_condition_set_description(condition, text);
}

/* True if an assertion has failed. COUNT < 0: the input has ended. */
static bool failed(pn_transport_t *transport, ssize_t count)
{
	struct trap here = {0};
	trap = &here;
	if (setjmp(here.back)) {
		trap = NULL;
		set_condition(transport, here.assertion);
		return true;
	}
	if (count < 0)
		pn_transport_close_tail(transport);
	else
		pn_transport_process(transport, (size_t)count);
	trap = NULL;
	return false;
}

/* What has failed is still there to be read, and is tried once more when the input is closed; after
 * that the library does not read any more. */
void trap_process(pn_transport_t *transport, size_t count)
{
	if (failed(transport, (ssize_t)count))
		failed(transport, -1);
}

/* The end of the input. */
void trap_close_tail(pn_transport_t *transport)
{
	failed(transport, -1);
}
