#define _GNU_SOURCE
#include "fatal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* TEXT in ASCII, on one line, whatever a peer or a user has written into it, or NULL. */
static char *escape(const char *text)
{
	char *escaped = malloc(4 * strlen(text) + 1), *to = escaped;
	for (const unsigned char *c = (const unsigned char *)text; escaped && *c; c++)
		if (*c < ' ' || *c > '~')
			to += sprintf(to, "\\x%02x", *c);
		else
			*to++ = (char)*c;
	if (escaped)
		*to = '\0';
	return escaped;
}

/* Prints one line; SUFFIX, if not NULL, follows a colon. The stream is locked, so that lines of
 * two threads do not mix. */
static void line(const char *format, va_list arguments, const char *suffix)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL; /* out of memory: the format says enough */
	char *escaped = text ? escape(text) : NULL;
	flockfile(stderr);
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, escaped ? escaped : format,
		suffix ? ": " : "", suffix ? suffix : "");
	funlockfile(stderr);
	free(escaped);
	free(text);
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
