/* sending: how messages of a link are handed to the library. Layer 5, for outgoing.c and
 * settling.c. */
#ifndef SENDING_H
#define SENDING_H

#include "outgoing.h"

/* Hands over up to COUNT messages, 1 or more, as long as there are some and they have ROOM; at
 * least one, which there must be. */
void sending_burst(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes);

/* Begins a message, or goes on with it, as far as ROOM goes. */
void sending_part(struct sender *s, struct outgoing *o, size_t room_bytes);

/* Whether there is something that was sent on a link that was lost, and not settled. */
bool sending_has_again(struct outgoing *o);

/* Hands that over, as sending_burst() does, with the numbers and times that it had. */
void sending_again(struct sender *s, struct outgoing *o, uint64_t count, size_t room_bytes);

/* The present part will not be ended. Returns its letter, to be freed; NULL if there is none. */
struct letter *sending_drop_part(struct sender *s, struct outgoing *o);

/* What a burst of one would hand over, or a little more. */
size_t sending_next_bytes(const struct sender *s, struct outgoing *o);

/* Hands over one message that says that no more will come. The time of sending that its delivery
 * has is not one. */
#define SENDING_EOS_NS 1
void sending_eos(struct sender *s, struct outgoing *o);

#endif
