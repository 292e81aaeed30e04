#define _GNU_SOURCE
#include "fatal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints one line; SUFFIX, if not NULL, follows a colon. The stream is locked, so that lines of
 * two threads do not mix. */
static void line(const char *format, va_list arguments, const char *suffix)
{
	flockfile(stderr);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	if (suffix)
		fprintf(stderr, ": %s", suffix);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* Says what is wrong and goes on. */
void complain(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	line(format, arguments, NULL);
	va_end(arguments);
}

/* Says what is wrong, with errno's text, and exits. */
void fatal(enum exit_code code, const char *format, ...)
{
	const char *reason = strerror(errno);
	va_list arguments;
	va_start(arguments, format);
	line(format, arguments, reason);
	va_end(arguments);
	exit(code);
}

/* Says what is wrong and exits. */
void fatalx(enum exit_code code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	line(format, arguments, NULL);
	va_end(arguments);
	exit(code);
}
