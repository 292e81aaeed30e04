#define _GNU_SOURCE
#include "numbering.h"

#include "fatal.h"

#include <stdlib.h>
#include <string.h>

/* A new one is the latest. */
static struct numbering *add(
	struct numberings *all, const char *container, const char *link_name, uint64_t first)
{
	struct numbering *n = calloc(1, sizeof *n);
	if (!n || !(n->container = strdup(container)) || !(n->link_name = strdup(link_name)))
		fatal(EXIT_INTERNAL, "sequence");
	sequence_start(&n->sequence, first);
	STAILQ_INSERT_HEAD(all, n, next);
	return n;
}

static void drop(struct numberings *all, struct numbering *n)
{
	STAILQ_REMOVE(all, n, numbering, next);
	sequence_free(&n->sequence);
	free(n->container);
	free(n->link_name);
	free(n);
}

/* Numberings that are over are not found again. */
struct numbering *numbering_take(
	struct numberings *all, const char *container, const char *link_name, uint64_t first)
{
	struct numbering *n;
	STAILQ_FOREACH (n, all, next)
		if (!n->over && !strcmp(n->container, container)
			&& !strcmp(n->link_name, link_name))
			break;
	if (!n)
		n = add(all, container, link_name, first);
	n->links++;
	return n;
}

/* The oldest of those that nobody has, if they are too many. */
static void drop_oldest(struct numberings *all)
{
	size_t idle = 0;
	struct numbering *n, *last = NULL;
	STAILQ_FOREACH (n, all, next)
		if (!n->links) {
			idle++;
			last = n;
		}
	if (idle > NUMBERING_IDLE_MAX)
		drop(all, last);
}

/* It is the latest of those that nobody has. */
void numbering_leave(struct numberings *all, struct numbering *n)
{
	if (--n->links)
		return;
	if (n->over) {
		drop(all, n);
		return;
	}
	STAILQ_REMOVE(all, n, numbering, next);
	STAILQ_INSERT_HEAD(all, n, next);
	drop_oldest(all);
}

/* Whether they are over or not. */
void numbering_free_all(struct numberings *all)
{
	while (!STAILQ_EMPTY(all))
		drop(all, STAILQ_FIRST(all));
}
