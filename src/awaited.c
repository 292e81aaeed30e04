#define _GNU_SOURCE
#include "awaited.h"

#include "fatal.h"

#include <stdlib.h>

#define FIRST_CAPACITY 16
/* 2^64 divided by the golden ratio: numbers that follow each other are spread out evenly. */
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

static size_t home(const struct awaited *a, uint64_t number)
{
	return (size_t)(number * MULTIPLIER >> a->shift);
}

static size_t behind(const struct awaited *a, size_t place)
{
	return (place + 1) & (a->capacity - 1);
}

/* Of all of them. */
void awaited_free(struct awaited *a)
{
	free(a->table);
	*a = (struct awaited){0};
}

static struct awaited_message *free_place(struct awaited *a, uint64_t number)
{
	size_t place = home(a, number);
	while (a->table[place].used)
		place = behind(a, place);
	return &a->table[place];
}

/* To twice the size. */
static void grow(struct awaited *a)
{
	struct awaited larger = *a;
	larger.capacity = a->capacity ? 2 * a->capacity : FIRST_CAPACITY;
	larger.shift = 64 - (unsigned)__builtin_ctzll(larger.capacity);
	larger.table = calloc(larger.capacity, sizeof *larger.table);
	if (!larger.table)
		fatal(EXIT_INTERNAL, "%zu messages", larger.capacity);
	for (size_t i = 0; i < a->capacity; i++)
		if (a->table[i].used)
			*free_place(&larger, a->table[i].number) = a->table[i];
	free(a->table);
	*a = larger;
}

/* There are always places that are free, at which a search ends. */
void awaited_add(struct awaited *a, uint64_t number, int64_t since_ns, bool settled)
{
	if (2 * (a->count + 1) > a->capacity)
		grow(a);
	*free_place(a, number) = (struct awaited_message){
		.number = number, .since_ns = since_ns, .used = true, .settled = settled};
	a->count++;
	a->depth++;
}

/* From its hash on. */
struct awaited_message *awaited_find(const struct awaited *a, uint64_t number)
{
	if (!a->count)
		return NULL;
	for (size_t place = home(a, number); a->table[place].used; place = behind(a, place))
		if (a->table[place].number == number)
			return &a->table[place];
	return NULL;
}

/* Those behind it that would be found no more move up. */
void awaited_remove(struct awaited *a, struct awaited_message *m)
{
	size_t mask = a->capacity - 1, hole = (size_t)(m - a->table);
	a->count--;
	a->depth -= !m->late;
	for (size_t place = behind(a, hole); a->table[place].used; place = behind(a, place)) {
		size_t from_home = (place - home(a, a->table[place].number)) & mask;
		if (from_home < ((place - hole) & mask))
			continue; /* its home is behind the hole */
		a->table[hole] = a->table[place];
		hole = place;
	}
	a->table[hole].used = false;
}

/* Nobody is to wait for it any more. */
static bool is_newly_late(const struct awaited_message *m)
{
	return m->used && m->settled && !m->late;
}

/* So many of those that were given up before. One from behind may take a place that is left, which
 * is then looked at again. */
static void forget(struct awaited *a, size_t count)
{
	for (size_t i = 0; i < a->capacity && count;)
		if (a->table[i].used && a->table[i].late) {
			awaited_remove(a, &a->table[i]);
			count--;
		} else {
			i++;
		}
}

/* Not often: the whole table is gone through. */
void awaited_give_up(struct awaited *a, size_t kept)
{
	size_t late = a->count - a->depth, more = 0;
	for (size_t i = 0; i < a->capacity; i++)
		more += is_newly_late(&a->table[i]);
	size_t room = more < kept ? kept - more : 0;
	forget(a, late > room ? late - room : 0);
	for (size_t i = 0; i < a->capacity; i++)
		if (is_newly_late(&a->table[i])) {
			a->table[i].late = true;
			a->depth--;
		}
}
