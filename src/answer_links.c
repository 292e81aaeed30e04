#define _GNU_SOURCE
#include "answer_links.h"

#include "connections.h"
#include "endpoints.h"

#include <proton/condition.h>
#include <proton/session.h>
#include <proton/terminus.h>

/* In a link's record: that the peer has attached it. */
PN_HANDLE(ANSWERS_ATTACHED)

static pn_connection_t *connection_of(pn_link_t *link)
{
	return pn_session_connection(pn_link_session(link));
}

/* A peer that refuses a link may end its session, and with it whatever else is there. */
pn_link_t *answer_links_open(struct engine *e, pn_connection_t *connection, const char *name,
	const char *address, void *link_context)
{
	pn_session_t *session = pn_session(connection);
	pn_session_set_context(session, session); /* it is known by that */
	endpoints_open_session(e, session);
	pn_link_t *link;
	if (e->options->sender) {
		link = pn_receiver(session, name);
		pn_terminus_set_address(pn_link_source(link), address);
	} else {
		link = pn_sender(session, name);
		pn_terminus_set_address(pn_link_target(link), address);
	}
	pn_link_set_context(link, link_context);
	pn_incref(link); /* as for other links, see endpoints.c */
	pn_link_open(link);
	return link;
}

/* By its context. */
bool answer_links_owns(pn_session_t *session)
{
	return pn_session_get_context(session);
}

/* A link that the peer asks for. */
static bool accept_link(struct engine *e, pn_link_t *link)
{
	pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
	pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
	pn_link_set_snd_settle_mode(link, pn_link_remote_snd_settle_mode(link));
	bool accepted = e->answers->accepts(e->answers_context, link);
	if (accepted)
		pn_incref(link);
	else
		pn_terminus_set_type(pn_link_source(link), PN_UNSPECIFIED);
	pn_link_open(link);
	if (!accepted)
		pn_link_close(link);
	return accepted;
}

/* The library does not notice each second attach. */
void answer_links_opened(struct engine *e, pn_link_t *link)
{
	pn_record_t *record = pn_link_attachments(link);
	if (pn_record_has(record, ANSWERS_ATTACHED)) {
		endpoints_refuse(e, link, "amqp:not-allowed",
			"the peer has attached a link that was attached");
		return;
	}
	bool ours = !(pn_link_state(link) & PN_LOCAL_UNINIT);
	if (ours ? endpoints_is_refused(link) : !accept_link(e, link))
		return;
	pn_record_def(record, ANSWERS_ATTACHED, PN_VOID);
	if (pn_link_get_context(link))
		e->answers->attached(e->answers_context, link);
}

/* With its session, if that is for it alone. */
void answer_links_close(struct engine *e, pn_link_t *link)
{
	pn_session_t *session = pn_link_session(link);
	if (pn_link_state(link) & PN_LOCAL_ACTIVE)
		pn_link_close(link);
	if (answer_links_owns(session) && pn_session_state(session) & PN_LOCAL_ACTIVE)
		pn_session_close(session);
	if (!pn_link_get_context(link))
		return;
	e->answers->detached(e->answers_context, link);
	pn_link_set_context(link, NULL);
	pn_decref(link);
}

/* One that was refused, too. */
void answer_links_closed(struct engine *e, pn_link_t *link)
{
	pn_condition_t *condition = pn_link_remote_condition(link);
	bool refused = pn_link_get_context(link)
		&& !pn_record_has(pn_link_attachments(link), ANSWERS_ATTACHED);
	if (e->answers->vital && (refused || pn_condition_is_set(condition)))
		connections_fail(e, connection_of(link), "link of ", condition, false);
	answer_links_close(e, link);
	pn_link_free(link);
}
