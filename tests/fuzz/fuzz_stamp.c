/* Feeds messages to one stamp reader, one after the other. Whatever came before, it must read the
 * same from a message as a new reader.
 *
 * The input is cut into messages: two bytes (big-endian) say how many bytes are at hand, and one
 * how many more the message is said to have.
 */
#include "stamp.h"

#include <stdlib.h>

#define HEAD_BYTES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run, which libFuzzer reports with the input. */
static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The values of absent stamps do not count. */
static void require_same(const struct stamp *a, const struct stamp *b)
{
	require(a->has_sn == b->has_sn);
	require(a->has_ts == b->has_ts);
	require(!a->has_sn || a->sn == b->sn);
	require(!a->has_ts || a->ts == b->ts);
	require(a->content_bytes == b->content_bytes);
	require(a->redelivered == b->redelivered);
}

/* The message is in a block of its own, so that a read beyond it is seen. */
static void check_message(struct stamp_reader *r, const uint8_t *data, size_t prefix, size_t length)
{
	char *bytes = malloc(prefix ? prefix : 1);
	memcpy(bytes + !prefix, data, prefix);
	struct stamp_reader fresh;
	stamp_reader_create(&fresh);
	stamp_decode(&fresh, bytes + !prefix, prefix, length);
	require(fresh.last.content_bytes <= length);
	require_same(stamp_read(r, bytes + !prefix, prefix, length), &fresh.last);
	stamp_reader_destroy(&fresh);
	free(bytes);
}

/* One reader for all messages of the input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stamp_reader r;
	stamp_reader_create(&r);
	while (size >= HEAD_BYTES) {
		size_t prefix = (size_t)data[0] << 8 | data[1], more = data[2];
		data += HEAD_BYTES;
		size -= HEAD_BYTES;
		if (prefix > size)
			prefix = size;
		check_message(&r, data, prefix, prefix + more);
		data += prefix;
		size -= prefix;
	}
	stamp_reader_destroy(&r);
	return 0;
}
