/* fatal: one line of error, and the exit code that goes with it. Layer 0. */
#ifndef FATAL_H
#define FATAL_H

#include <stdbool.h>

/* Exit codes of psend and precv. A run ended by signal n exits with EXIT_BY_SIGNAL + n. */
enum exit_code {
	EXIT_DONE = 0,       /* done, nothing missing */
	EXIT_INTERNAL = 1,   /* internal or local I/O error */
	EXIT_CONNECTION = 2, /* could not connect, or connection, session or link failed */
	EXIT_SECURITY = 3,   /* authentication or TLS failed */
	EXIT_SHORT = 4,      /* ended with fewer messages than asked */
	EXIT_VERIFY = 5,     /* loss, duplicate, order or content */
	EXIT_REFUSED = 6,    /* rejected, released or modified messages */
	EXIT_USAGE = 64,     /* an option that cannot be accepted */
	EXIT_BY_SIGNAL = 128,
};

/* Why a connection, session or link is of no use any more. Texts are empty where there is none. */
struct failure {
	enum exit_code code;
	char what[192];     /* e.g. "connection to 127.0.0.1:5672" */
	char condition[64]; /* AMQP's */
	char description[256];
	bool cut_off; /* the connection just ended: nobody has said why */
};

/* Prints "PROGRAM: MESSAGE" and a newline on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* complain(), then exit with CODE. fatal() adds the text of errno, fatalx() does not. */
_Noreturn void fatal(enum exit_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void fatalx(enum exit_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
