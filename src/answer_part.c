#define _GNU_SOURCE
#include "answer_part.h"

/* A delivery of ours is known by having a context. */
void answer_part_begin(struct answer_part *p, pn_link_t *link, const void *owner, uint64_t tag,
	const char *head, size_t head_bytes, size_t body_at, size_t body_end)
{
	p->owner = owner;
	p->at = body_at;
	p->end = body_end;
	p->delivery = pn_delivery(link, pn_dtag((const char *)&tag, sizeof tag));
	pn_delivery_set_context(p->delivery, p->delivery);
	pn_link_send(link, head, head_bytes);
}

/* In its own buffer, whatever else the session has. */
size_t answer_part_queued_bytes(const struct answer_part *p)
{
	return p->delivery ? pn_delivery_pending(p->delivery) : 0;
}

/* Those before it are gone when the link's queue is empty; how much is left of each is not known
 * until then. */
size_t answer_part_link_bytes(const struct answer_part *p, pn_link_t *link)
{
	return answer_part_queued_bytes(p) + (pn_link_queued(link) > 0 ? p->before_bytes : 0);
}

/* The link goes on to the next. */
static void clear(struct answer_part *p)
{
	*p = (struct answer_part){.before_bytes = p->before_bytes};
}

/* All of it is handed over. */
static void end(struct answer_part *p, pn_link_t *link, bool settled)
{
	uint8_t mode = pn_link_snd_settle_mode(link);
	p->before_bytes = answer_part_link_bytes(p, link);
	if (mode == PN_SND_SETTLED || (settled && mode != PN_SND_UNSETTLED))
		pn_delivery_settle(p->delivery);
	else
		pn_link_advance(link);
	clear(p);
}

/* One that the peer has settled has come to its end. */
bool answer_part_send(struct answer_part *p, pn_link_t *link, const char *bytes, bool settled)
{
	size_t left = p->end - p->at;
	size_t piece = left < ANSWER_PART_BYTES ? left : ANSWER_PART_BYTES;
	if (!p->delivery) {
		clear(p);
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
	clear(p);
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
