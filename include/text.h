/* text: a message that was received, as it is printed. Layer 3.
 *
 * The body: a data section, or a value that is a string, a symbol or binary, is its bytes as they
 * are, newlines and all; of several data sections one follows the other. No body, and null, is no
 * text. Any other value is nearly in libqpid-proton's notation, in one line of ASCII:
 *
 *	{"key"=1, "list"=[true, null, :symbol, b"\x00"], "array"=@[1, 2]}
 *
 * The headers: a line for each that the message has, as qpid-receive names and orders them, in
 * ASCII, and an empty line:
 *
 *	Subject: news
 *	TTL: 60000
 *	Durable: true
 *	Properties: {sn:1, ts:1796070000000000000}
 *
 * In both, a byte that is not printable ASCII is \xNN: nobody's terminal is driven by a peer.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as {0}. */
struct text {
	char *bytes; /* of the last text that had to be made */
	size_t length, capacity;
};

void text_destroy(struct text *t);

/* The body of a MESSAGE of LENGTH bytes: *BODY and *BODY_LENGTH are valid as long as MESSAGE, and
 * until the next call. False if it is a value that has no bytes of its own, or no AMQP: then this
 * is a text made of it. */
bool text_body(
	struct text *t, const char *message, size_t length, const char **body, size_t *body_length);

/* Makes the lines of the headers, which are T's bytes then. */
void text_headers(struct text *t, const char *message, size_t length);

#endif
