/* message: the messages that psend sends. Layer 3.
 *
 * A plain AMQP message: header and properties only if asked, application-properties `sn` (ulong),
 * `ts` (long, ns) and the user's, one body: what qpid-send writes and qpid-receive reads. All that
 * is before the body, the head, is encoded once (once a group, if there are groups); per message
 * only the eight bytes of each value are patched. Where bodies differ, the head is copied in front
 * of each.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "big_endian.h"

#include <proton/message.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Body of a message that says that no more will come, as qpid-send has it. */
#define MESSAGE_EOS       "eos"
#define MESSAGE_EOS_BYTES (sizeof MESSAGE_EOS - 1)

/* A message id that stands for the message's number. */
#define MESSAGE_ID_AUTO "auto"

struct message_options {
	const char *content; /* bytes of the body, a data section; NULL: see the next ones, or
				message_set_body() */
	size_t content_bytes;
	bool check_content;     /* the body is that of content_check.h, of content_bytes */
	const char *const *map; /* K=V, as in field.h; if there are any, the body is this map */
	size_t map_count;
	bool sequence, timestamp; /* whether to carry sn, ts */
	bool durable;
	bool has_ttl, has_priority;
	uint32_t ttl_ms;
	uint8_t priority;
	const char *message_id, *user_id, *subject, *reply_to, *correlation_id, *content_type;
	const char *id_prefix; /* of a message id that ends with the message's number, as in hex.h;
				  NULL: see message_id */
	const char *const *properties; /* K=V, of the application */
	size_t property_count;
	size_t group_name_max; /* bytes of the longest name for message_set_group(); 0: no groups */
	const char *group_key; /* application property that has it; NULL: AMQP's group-id has */
};

struct message_template {
	char *bytes; /* the present message */
	size_t length;
	size_t sequence_at, timestamp_at; /* offsets of the values, 0 if there is none */
	bool has_others;                  /* of these, one at least is not 0: */
	size_t id_at, check_at;           /* offsets of the number as message id, and in the body */
	size_t id_hex_at;                 /* offset of its digits in a message id */
	size_t group_sequence_at;         /* offset of its four bytes */
	size_t own_bytes;     /* what is behind so many bytes is the same in all messages, and stays
				 where it is */
	size_t content_bytes; /* of the body, as stamp.h counts them */

	struct message_options options;
	pn_message_t *source; /* of which the head is the encoding */
	char *head;
	size_t head_bytes, head_capacity;
	size_t reserve; /* room that is needed before a body */
	char *body;     /* what all messages have, behind such room; NULL: they differ */
};

/* Encodes; ends the process if the library refuses, or a K=V is none. */
void message_template_create(struct message_template *t, const struct message_options *options);
void message_template_destroy(struct message_template *t);

/* The next messages are of group NAME. */
void message_set_group(struct message_template *t, const char *name);

/* The present message gets this body. `reserve` bytes before it are overwritten; it must stay where
 * it is for as long as the message is used. */
void message_set_body(struct message_template *t, char *content, size_t length);

/* Writes where in its group the message is. */
static inline void message_stamp_group(const struct message_template *t, uint32_t group_sequence)
{
	uint32_t stored = htobe32(group_sequence);
	if (t->group_sequence_at)
		memcpy(t->bytes + t->group_sequence_at, &stored, sizeof stored);
}

/* Part of message_stamp(). */
void message_stamp_others(const struct message_template *t, uint64_t sn);

/* Writes number and time, where the message carries them. */
static inline void message_stamp(const struct message_template *t, uint64_t sn, int64_t ts)
{
	if (t->sequence_at)
		big_endian_store(t->bytes + t->sequence_at, sn);
	if (t->timestamp_at)
		big_endian_store(t->bytes + t->timestamp_at, (uint64_t)ts);
	if (__builtin_expect(t->has_others, 0))
		message_stamp_others(t, sn);
}

#endif
