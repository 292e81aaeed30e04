#include "sequence.h"

#include "fatal.h"

#include <stdlib.h>
#include <string.h>

/* Expects FIRST. */
void sequence_start(struct sequence *s, uint64_t first)
{
	*s = (struct sequence){.next = first};
}

/* Gives back the memory of the ranges. */
void sequence_free(struct sequence *s)
{
	free(s->missing);
	s->missing = NULL;
	s->ranges = 0;
}

static void remove_range(struct sequence *s, uint32_t at)
{
	s->ranges--;
	memmove(s->missing + at, s->missing + at + 1, (s->ranges - at) * sizeof *s->missing);
}

static void insert_range(struct sequence *s, uint32_t at, struct sequence_range range)
{
	if (!s->missing && !(s->missing = malloc(SEQUENCE_RANGES * sizeof *s->missing)))
		fatal(EXIT_INTERNAL, "missing sequence numbers");
	if (s->ranges == SEQUENCE_RANGES) {
		remove_range(s, 0);
		at = at ? at - 1 : 0;
	}
	memmove(s->missing + at + 1, s->missing + at, (s->ranges - at) * sizeof *s->missing);
	s->missing[at] = range;
	s->ranges++;
}

/* The index of the range that holds NUMBER, or `ranges`. Binary search. */
static uint32_t find_range(const struct sequence *s, uint64_t number)
{
	uint32_t low = 0, high = s->ranges;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (s->missing[middle].last < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->ranges && s->missing[low].first <= number ? low : s->ranges;
}

/* Takes NUMBER out of range AT, which may split it. */
static void fill(struct sequence *s, uint32_t at, uint64_t number)
{
	struct sequence_range *range = &s->missing[at];
	if (range->first == range->last) {
		remove_range(s, at);
	} else if (number == range->first) {
		range->first++;
	} else if (number == range->last) {
		range->last--;
	} else {
		struct sequence_range upper = {number + 1, range->last};
		range->last = number - 1;
		insert_range(s, at + 1, upper);
	}
}

/* Higher or lower than expected. */
enum sequence_verdict sequence_see_other(struct sequence *s, uint64_t number)
{
	if (number > s->next) {
		insert_range(s, s->ranges, (struct sequence_range){s->next, number - 1});
		s->skipped += number - s->next;
		s->next = number < UINT64_MAX ? number + 1 : number;
		return SEQUENCE_GAP;
	}
	uint32_t at = find_range(s, number);
	if (at == s->ranges) {
		s->duplicated++;
		return SEQUENCE_DUPLICATE;
	}
	fill(s, at, number);
	s->reordered++;
	return SEQUENCE_REORDERED;
}
