#define _GNU_SOURCE
#include "option_message.h"

#include "content_check.h"
#include "fatal.h"
#include "field.h"
#include "option_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CONTENT_BYTES 100
#define DEFAULT_GROUP_SIZE    10

/* ---- body ---- */

/* The one option that says what the body is, or NULL. */
static const char *body_option(const struct options *o)
{
	static const char *const NAMES[] = {
		"content-size", "content-string", "content-file", "content-stdin", "content-map"};
	const char *found = NULL;
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		if (!option_given(o, NAMES[i]))
			continue;
		if (found)
			fatalx(EXIT_USAGE, "--%s: cannot be combined with --%s", found, NAMES[i]);
		found = NAMES[i];
	}
	return found;
}

/* A parent that closed it would have us read whatever is opened next. */
static void check_stdin(struct options *o)
{
	int flags = fcntl(STDIN_FILENO, F_GETFL);
	if (flags < 0)
		fatal(EXIT_USAGE, "--content-stdin: standard input");
	if ((flags & O_ACCMODE) == O_WRONLY)
		fatalx(EXIT_USAGE, "--content-stdin: standard input is not open for reading");
	if (option_given(o, "parent-fd") && o->parent_fd == STDIN_FILENO)
		fatalx(EXIT_USAGE, "--content-stdin: cannot be combined with --parent-fd 0");
	if (!option_given(o, "messages"))
		o->messages = 0;
}

static void check_body(struct options *o)
{
	const char *body = body_option(o);
	if (!body)
		o->content_size_bytes = DEFAULT_CONTENT_BYTES;
	if (o->content_string)
		o->content_size_bytes = strlen(o->content_string);
	if (o->content_stdin)
		check_stdin(o);
	if (!o->check_content)
		return;
	if (body && strcmp(body, "content-size"))
		fatalx(EXIT_USAGE, "--check-content: cannot be combined with --%s", body);
	if (o->content_size_bytes < CONTENT_CHECK_HEADER_BYTES)
		fatalx(EXIT_USAGE, "--check-content: needs --content-size %d or more",
			CONTENT_CHECK_HEADER_BYTES);
}

/* ---- properties ---- */

static int compare_keys(const void *a, const void *b)
{
	const struct field *x = a, *y = b;
	size_t common = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
	int order = memcmp(x->key, y->key, common);
	return order ? order : (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
}

/* An AMQP map has no key twice. OWN are keys that are ours, NULL where we do not use one. */
static void check_fields(
	const char *option, const struct text_list *list, const char *const *own, size_t own_count)
{
	struct field *fields = calloc(list->count + own_count + 1, sizeof *fields);
	size_t count = 0;
	if (!fields)
		fatal(EXIT_INTERNAL, "--%s", option);
	for (size_t i = 0; i < own_count; i++)
		if (own[i])
			fields[count++] =
				(struct field){.key = own[i], .key_bytes = strlen(own[i])};
	for (size_t i = 0; i < list->count; i++) {
		const char *error = field_parse(list->items[i], &fields[count++]);
		if (error)
			fatalx(EXIT_USAGE, "--%s: \"%s\" %s", option, list->items[i], error);
	}
	qsort(fields, count, sizeof *fields, compare_keys);
	for (size_t i = 1; i < count; i++)
		if (!compare_keys(&fields[i - 1], &fields[i]))
			fatalx(EXIT_USAGE, "--%s: key \"%.*s\" is used twice", option,
				(int)fields[i].key_bytes, fields[i].key);
	free(fields);
}

static void check_properties(const struct options *o)
{
	const char *own[] = {o->sequence ? "sn" : NULL, o->timestamp ? "ts" : NULL, o->group_key};
	check_fields("content-map", &o->content_map, NULL, 0);
	check_fields(o->properties.count ? "property" : "group-key", &o->properties, own, 3);
}

/* ---- groups ---- */

static void check_groups(struct options *o)
{
	static const char *const NAMES[] = {
		"group-randomize-size", "group-interleave", "group-prefix", "group-key"};
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
		if (!o->group_size && option_given(o, NAMES[i]))
			o->group_size = DEFAULT_GROUP_SIZE;
}

/* precv has none of these options. */
void option_message_check(struct options *o)
{
	if (o->program != PROGRAM_PSEND)
		return;
	check_body(o);
	check_properties(o);
	check_groups(o);
	if (o->round_trip && o->message_id)
		fatalx(EXIT_USAGE,
			"--message-id: cannot be combined with --round-trip, which "
			"makes its own");
	o->has_ttl = option_given(o, "ttl");
	o->has_priority = option_given(o, "priority");
}
