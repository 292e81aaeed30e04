#include "trace.h"

#include <proton/logger.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

/* What stands before a password: in a frame that is shown, and in raw bytes, where PLAIN is a
 * symbol of five characters. */
static const char *const SECRETS[] = {"initial-response=", "\\xa3\\x05PLAIN"};

static bool is_wanted(void)
{
	for (char **variable = environ; *variable; variable++)
		if (!strncmp(*variable, "PN_LOG=", 7) || !strncmp(*variable, "PN_TRACE_", 9))
			return true;
	return false;
}

/* The length of TEXT up to a password. */
static size_t harmless(const char *text)
{
	size_t length = strlen(text);
	for (size_t i = 0; i < sizeof SECRETS / sizeof *SECRETS; i++) {
		const char *secret = strstr(text, SECRETS[i]);
		if (secret && (size_t)(secret - text) + strlen(SECRETS[i]) < length)
			length = (size_t)(secret - text) + strlen(SECRETS[i]);
	}
	return length;
}

/* In the library's form. */
static void print(
	intptr_t logger, pn_log_subsystem_t subsystem, pn_log_level_t severity, const char *message)
{
	size_t length = harmless(message);
	fprintf(stderr, "[%p]:%5s:%5s:%.*s%s\n", (void *)logger,
		pn_logger_subsystem_name(subsystem), pn_logger_level_name(severity), (int)length,
		message, message[length] ? "..." : "");
}

static void ignore(
	intptr_t logger, pn_log_subsystem_t subsystem, pn_log_level_t severity, const char *message)
{
	(void)logger, (void)subsystem, (void)severity, (void)message;
}

/* Transports take it from the default logger. */
void trace_start(void)
{
	pn_logger_t *logger = pn_default_logger();
	pn_logger_set_log_sink(
		logger, is_wanted() ? print : ignore, pn_logger_get_log_sink_context(logger));
}
