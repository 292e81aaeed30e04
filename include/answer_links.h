/* answer_links: links in the other direction than the program's own. Layer 3, for engine.c and
 * endpoints.c alone.
 *
 * One that ends does not end the run by itself: that is the program's to say.
 */
#ifndef ANSWER_LINKS_H
#define ANSWER_LINKS_H

#include "engine.h"

/* Whether LINK is one. */
static inline bool answer_links_is(const struct engine *e, pn_link_t *link)
{
	return __builtin_expect(e->answers != NULL, 0)
		&& pn_link_is_sender(link) != e->options->sender;
}

/* engine_open_answers(). */
pn_link_t *answer_links_open(struct engine *e, pn_connection_t *connection, const char *name,
	const char *address, void *link_context);

/* The peer has attached LINK, which we have opened, or which it asks for. */
void answer_links_opened(struct engine *e, pn_link_t *link);

/* The peer has left LINK, which is freed. */
void answer_links_closed(struct engine *e, pn_link_t *link);

/* Closes our end, and tells the program if it knows the link. */
void answer_links_close(struct engine *e, pn_link_t *link);

/* Whether SESSION is of one such link, which we have opened. */
bool answer_links_owns(pn_session_t *session);

#endif
