#define _GNU_SOURCE
#include "answer_part.h"

#include <stdint.h>

/* A delivery of ours is known by having a context. */
void answer_part_begin(struct answer_part *p, pn_link_t *link, const void *owner, uint64_t tag,
	const char *head, size_t head_bytes)
{
	p->owner = owner;
	p->delivery = pn_delivery(link, pn_dtag((const char *)&tag, sizeof tag));
	pn_delivery_set_context(p->delivery, p->delivery);
	pn_link_send(link, head, head_bytes);
}

/* In its own buffer, whatever else the session has. */
size_t answer_part_queued_bytes(const struct answer_part *p)
{
	return p->delivery ? pn_delivery_pending(p->delivery) : 0;
}

static void end(struct answer_part *p, pn_link_t *link, bool settled)
{
	uint8_t mode = pn_link_snd_settle_mode(link);
	if (mode == PN_SND_SETTLED || (settled && mode != PN_SND_UNSETTLED))
		pn_delivery_settle(p->delivery);
	else
		pn_link_advance(link);
	*p = (struct answer_part){.owner = NULL};
}

/* One that the peer has settled has come to its end. */
bool answer_part_send(struct answer_part *p, pn_link_t *link, const char *bytes, bool settled)
{
	size_t left = p->end - p->at;
	size_t piece = left < ANSWER_PART_BYTES ? left : ANSWER_PART_BYTES;
	if (!p->delivery) {
		p->owner = NULL;
		return true;
	}
	pn_link_send(link, bytes + p->at, piece);
	p->at += piece;
	if (piece < left)
		return false;
	end(p, link, settled);
	return true;
}

/* The peer is told that there will be no more. */
void answer_part_settle(struct answer_part *p, pn_delivery_t *d)
{
	if (d != p->delivery) {
		pn_delivery_settle(d);
		return;
	}
	p->delivery = NULL;
	pn_delivery_abort(d);
}

/* So that there is none. */
void answer_part_abort(struct answer_part *p)
{
	if (p->delivery)
		pn_delivery_abort(p->delivery);
	*p = (struct answer_part){.owner = NULL};
}

/* Those that were handed over settled cannot be. */
void answer_part_abort_queued(pn_link_t *link)
{
	pn_delivery_t *next;
	for (pn_delivery_t *d = pn_unsettled_head(link); d; d = next) {
		next = pn_unsettled_next(d);
		if (pn_delivery_pending(d) > 0)
			pn_delivery_abort(d);
	}
}
