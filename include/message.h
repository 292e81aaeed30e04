/* message: the message that psend sends. Layer 3.
 *
 * A plain AMQP message: header and properties only if asked, application-properties `sn` (ulong)
 * and `ts` (long, ns), one body: what qpid-send writes and qpid-receive reads. It is encoded once;
 * per message only the eight bytes of each value are patched.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "big_endian.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message_options {
	const char *content; /* bytes of the body */
	size_t content_bytes;
	bool sequence, timestamp; /* whether to carry sn, ts */
	bool durable;
	bool has_ttl, has_priority;
	uint32_t ttl_ms;
	uint8_t priority;
};

struct message_template {
	char *bytes;
	size_t length;
	size_t sequence_at, timestamp_at; /* offsets of the values, 0 if there is none */
};

/* Encodes; ends the process if the library refuses. */
void message_template_create(struct message_template *t, const struct message_options *options);
void message_template_destroy(struct message_template *t);

/* Writes the two values, those that the message carries. */
static inline void message_stamp(const struct message_template *t, uint64_t sn, int64_t ts)
{
	if (t->sequence_at)
		big_endian_store(t->bytes + t->sequence_at, sn);
	if (t->timestamp_at)
		big_endian_store(t->bytes + t->timestamp_at, (uint64_t)ts);
}

#endif
