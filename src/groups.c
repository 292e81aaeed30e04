#define _GNU_SOURCE
#include "groups.h"

#include "fatal.h"
#include "mix.h"

#include <stdlib.h>

static struct group new_group(struct groups_plan *plan)
{
	struct group group = {.number = plan->next++, .size = plan->size};
	if (plan->randomize)
		group.size = mix_at(group.number) % plan->size + 1;
	return group;
}

static void open_all(struct groups *g, struct groups_plan *plan)
{
	g->open = calloc(plan->interleave, sizeof *g->open);
	if (!g->open)
		fatal(EXIT_INTERNAL, "%zu groups", plan->interleave);
	for (size_t i = 0; i < plan->interleave; i++)
		g->open[i] = new_group(plan);
}

/* Groups have their turn one after the other; a full one makes way for a new one. */
struct group groups_next(struct groups *g, struct groups_plan *plan)
{
	if (!g->open)
		open_all(g, plan);
	struct group *turn = &g->open[g->turn];
	g->turn = (g->turn + 1) % plan->interleave;
	turn->filled++;
	g->last = *turn;
	if (turn->filled == turn->size)
		*turn = new_group(plan);
	return g->last;
}

/* A group that was opened in its place is given up; its number is free again, unless another link
 * has opened one since. */
void groups_back(struct groups *g, struct groups_plan *plan)
{
	g->turn = (g->turn + plan->interleave - 1) % plan->interleave;
	struct group *turn = &g->open[g->turn];
	if (turn->number != g->last.number && plan->next == turn->number + 1)
		plan->next--;
	*turn = g->last;
	turn->filled--;
}

/* Groups that are not full stay so. */
void groups_free(struct groups *g)
{
	free(g->open);
	*g = (struct groups){0};
}
