/* Makes text of a message, which the input is: twice the same, headers of nothing but ASCII, and a
 * body that is bounded by what the message has.
 */
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Characters that a byte of a message may become: "null, ". */
#define GROWTH_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run, which libFuzzer reports with the input. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_headers(const char *message, size_t size)
{
	struct text t = {0};
	text_headers(&t, message, size);
	for (size_t i = 0; i < t.length; i++)
		require(t.bytes[i] == '\n' || (t.bytes[i] >= ' ' && t.bytes[i] <= '~'));
	require(t.length && t.bytes[t.length - 1] == '\n');
	text_destroy(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *message = (const char *)data, *body, *again;
	size_t length, length_again;
	struct text first = {0}, second = {0};
	bool plain = text_body(&first, message, size, &body, &length);
	require(text_body(&second, message, size, &again, &length_again) == plain);
	require(length == length_again && memcmp(body, again, length) == 0);
	require(length <= GROWTH_MAX * size);
	for (size_t i = 0; i < length && !plain; i++)
		require(body[i] || memchr(message, 0, size));
	text_destroy(&first);
	text_destroy(&second);
	check_headers(message, size);
	return 0;
}
