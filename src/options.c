#define _GNU_SOURCE
#include "options.h"

#include "fatal.h"
#include "option_check.h"
#include "option_table.h"
#include "units.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <proton/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_ROW         0x1000 /* + the row: key of an option without a letter */
#define HELP_TEXT_SIZE  16384
#define DURATION_MAX_NS (UINT64_C(36525) * 86400 * NS_PER_S) /* sums of two do not overflow */
#define RATE_MIN_PER_S  (1.0 / (100 * 86400))
#define KEY_HELP        'h'
#define KEY_VERSION     'V'
#define HELP_FLAGS      (ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC)

/* What parsing needs besides the options themselves. */
struct parser {
	struct options *o;
	enum program program;
};

static void *field(struct options *o, const struct option_row *row)
{
	return (char *)o + row->field;
}

static const void *const_field(const struct options *o, const struct option_row *row)
{
	return (const char *)o + row->field;
}

_Noreturn static void refuse(const struct option_row *row, const char *text, const char *why)
{
	fatalx(EXIT_USAGE, "--%s: \"%s\" %s", row->name, text, why);
}

static uint64_t parse_number(const struct option_row *row, const char *text)
{
	uint64_t value = 0;
	const char *error = NULL;
	switch (row->kind) {
	case KIND_BYTES: error = units_parse_bytes(text, &value); break;
	case KIND_DURATION: error = units_parse_duration(text, &value); break;
	case KIND_NUMBER: error = units_parse_number(text, &value); break;
	default: error = units_parse_count(text, &value); break;
	}
	char limit[64];
	if (!error && row->kind == KIND_DURATION && value > DURATION_MAX_NS)
		error = "is above 100 years";
	if (!error && value < row->min) {
		snprintf(limit, sizeof limit, "is below %" PRIu64, row->min);
		error = limit;
	} else if (!error && row->max && value > row->max) {
		snprintf(limit, sizeof limit, "is above %" PRIu64, row->max);
		error = limit;
	}
	if (error)
		refuse(row, text, error);
	return value;
}

static unsigned parse_choice(const struct option_row *row, const char *text)
{
	for (unsigned i = 0; row->choices[i]; i++)
		if (!strcmp(row->choices[i], text))
			return i;
	char why[128];
	snprintf(why, sizeof why, "is not one of %s", row->argument);
	refuse(row, text, why);
}

static bool parse_yes_no(const struct option_row *row, const char *text)
{
	bool yes = !strcmp(text, "yes");
	if (!yes && strcmp(text, "no"))
		refuse(row, text, "is not yes or no");
	return yes;
}

static void append(struct text_list *list, const char *text)
{
	list->items = realloc(list->items, (list->count + 1) * sizeof *list->items);
	if (!list->items)
		fatal(EXIT_INTERNAL, "options");
	list->items[list->count++] = text;
}

/* Sets a row's field from what was typed, or from the default. */
static void set(struct options *o, const struct option_row *row, const char *text)
{
	void *to = field(o, row);
	const char *error;
	switch (row->kind) {
	case KIND_HEADING: break;
	case KIND_FLAG: *(bool *)to = true; break;
	case KIND_YES_NO: *(bool *)to = parse_yes_no(row, text); break;
	case KIND_CHOICE: *(unsigned *)to = parse_choice(row, text); break;
	case KIND_RATE:
		error = units_parse_rate(text, to);
		if (!error && *(double *)to < RATE_MIN_PER_S)
			error = "is below one in 100 days";
		if (error)
			refuse(row, text, error);
		break;
	case KIND_TEXT:
	case KIND_URL:
		if (!*text)
			refuse(row, text, "is empty");
		*(const char **)to = text;
		break;
	case KIND_LIST: append(to, text); break;
	case KIND_OPTIONAL_COUNT:
		*(uint64_t *)to = text ? parse_number(row, text) : UINT64_MAX;
		break;
	default: *(uint64_t *)to = parse_number(row, text);
	}
}

static size_t row_of_key(const struct parser *p, int key)
{
	if (key >= KEY_ROW)
		return (size_t)key - KEY_ROW;
	for (size_t i = 0; i < option_table_rows; i++)
		if (option_table[i].key && option_table[i].key == key
			&& option_table[i].programs & p->program)
			return i;
	return option_table_rows;
}

/* Whether LETTER is an option without an argument. */
static bool is_flag(const struct parser *p, char letter)
{
	size_t row = row_of_key(p, letter);
	return row < option_table_rows && option_table[row].kind == KIND_FLAG;
}

/* What getopt did not like about ARGUMENT, which it does not say when it is not to print. */
_Noreturn static void complain_about(const struct parser *p, const char *argument)
{
	/* what follows the name may be a password: it is not repeated */
	bool is_long = argument[0] == '-' && argument[1] == '-';
	const char *name = argument + strspn(argument, "-");
	while (!is_long && name[1] && is_flag(p, *name))
		name++;
	size_t length = is_long ? strcspn(name, "=") : 1;
	const char *dashes = is_long ? "--" : "-";
	bool assigned = is_long && name[length] == '=';
	unsigned alike = 0;
	for (size_t i = 0; i < option_table_rows; i++) {
		const struct option_row *row = &option_table[i];
		if (row->kind == KIND_HEADING || !(row->programs & p->program))
			continue;
		bool long_name = is_long && !strncmp(row->name, name, length);
		if (!long_name && (is_long || !row->key || row->key != *name))
			continue;
		alike++;
		bool exact = !long_name || !row->name[length];
		if (exact && row->kind != KIND_FLAG && !assigned)
			fatalx(EXIT_USAGE, "%s%.*s: needs an argument: %s", dashes, (int)length,
				name, row->argument);
		if (exact && row->kind == KIND_FLAG && assigned)
			fatalx(EXIT_USAGE, "--%s: takes no argument", row->name);
	}
	fatalx(EXIT_USAGE, "%s%.*s: %s option, see --help", dashes, (int)length, name,
		alike > 1 ? "ambiguous" : "unknown");
}

/* The exit code after all that was asked for was printed. */
static int finish_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_DONE;
	complain("standard output: %s", strerror(errno));
	return EXIT_INTERNAL;
}

/* A copy of an argument, in which the password is overwritten: others can read it. */
static const char *take_url(char *argument)
{
	char *copy = strdup(argument);
	if (!copy)
		fatal(EXIT_INTERNAL, "options");
	url_remove_password(argument);
	return copy;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct parser *p = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
	case ARGP_KEY_END:
	case ARGP_KEY_NO_ARGS:
	case ARGP_KEY_SUCCESS:
	case ARGP_KEY_FINI: return 0;
	case ARGP_KEY_ERROR: complain_about(p, state->argv[state->next - 1]);
	case KEY_HELP:
		setenv("ARGP_HELP_FMT", "header-col=0,opt-doc-col=36,rmargin=98", 0);
		argp_help(state->root_argp, stdout, HELP_FLAGS, state->name);
		exit(finish_output());
	case KEY_VERSION:
		printf("%s " PPAIR_VERSION " (libqpid-proton %d.%d.%d)\n", state->name,
			PN_VERSION_MAJOR, PN_VERSION_MINOR, PN_VERSION_POINT);
		exit(finish_output());
	case ARGP_KEY_ARG:
		if (p->o->url) /* which may hold a password: it is not repeated */
			fatalx(EXIT_USAGE, "URL: there is more than one");
		p->o->url = take_url(text);
		return 0;
	}
	size_t row = row_of_key(p, key);
	if (row == option_table_rows)
		return ARGP_ERR_UNKNOWN;
	if (!(option_table[row].programs & p->program))
		fatalx(EXIT_USAGE, "--%s: is an option of %s", option_table[row].name,
			p->program == PROGRAM_PSEND ? "precv" : "psend");
	set(p->o, &option_table[row], option_table[row].kind == KIND_URL ? take_url(text) : text);
	p->o->given[row] = true;
	return 0;
}

/* "help [default]", kept until the process ends, in a buffer that holds all of them. */
static const char *help_text(const struct option_row *row, char **free_space, char *end)
{
	const char *shown = row->shown ? row->shown : row->initial;
	if (!shown)
		return row->help;
	char *text = *free_space;
	int length = snprintf(text, (size_t)(end - text), "%s [%s]", row->help, shown);
	*free_space += length + 1;
	return text;
}

/* Whether it is none of PROGRAM's, and argp would take it for an abbreviation of one that is. */
static bool looks_own(const struct option_row *row, enum program program)
{
	if (row->programs & program || row->kind == KIND_HEADING)
		return false;
	for (size_t i = 0; i < option_table_rows; i++)
		if (option_table[i].programs & program && option_table[i].kind != KIND_HEADING
			&& !strncmp(option_table[i].name, row->name, strlen(row->name))
			&& strcmp(option_table[i].name, row->name))
			return true;
	return false;
}

/* The table as argp wants it. */
static void make_argp_options(enum program program, struct argp_option *to)
{
	static char texts[HELP_TEXT_SIZE];
	char *free_space = texts;
	int group = 0;
	for (size_t i = 0; i < option_table_rows; i++) {
		const struct option_row *row = &option_table[i];
		if (looks_own(row, program))
			*to++ = (struct argp_option){.name = row->name,
				.key = KEY_ROW + (int)i,
				.arg = row->argument,
				.flags = OPTION_HIDDEN | OPTION_ARG_OPTIONAL};
		if (!(row->programs & program))
			continue;
		if (row->kind == KIND_HEADING) {
			*to++ = (struct argp_option){.doc = row->help, .group = ++group};
			continue;
		}
		*to++ = (struct argp_option){.name = row->name,
			.key = row->key ? row->key : KEY_ROW + (int)i,
			.arg = row->argument,
			.flags = row->kind == KIND_OPTIONAL_COUNT ? OPTION_ARG_OPTIONAL : 0,
			.doc = help_text(row, &free_space, texts + sizeof texts),
			.group = group};
		if (row->alias)
			*to++ = (struct argp_option){.name = row->alias, .flags = OPTION_ALIAS};
	}
	/* argp's own --help prints nothing when argp is not to print errors */
	*to++ = (struct argp_option){
		.name = "help", .key = KEY_HELP, .doc = "print this help", .group = -1};
	*to++ = (struct argp_option){
		.name = "version", .key = KEY_VERSION, .doc = "print the version", .group = -1};
	*to = (struct argp_option){0};
}

static const char DOC_PSEND[] =
	"Sends AMQP 1.0 messages as fast as libqpid-proton can, and says where the time went.\v"
	"URL is [amqp[s]://][USER[:PASSWORD]@]HOST[:PORT][/ADDRESS]; without it, psend connects to "
	"amqp://127.0.0.1:5672/ppair.\n\n"
	"Counts take k m g (powers of 1000), bytes k M G and Ki Mi Gi, times ns us ms s min h "
	"(no unit: seconds).\n\n"
	"Exit status: 0 done, nothing missing; 1 internal or local I/O error; 2 could not connect, "
	"or connection, session or link failed; 3 authentication or TLS failed; 4 fewer "
	"messages sent and settled than asked; "
	"6 rejected, released or modified messages; 64 usage; 128+n ended by signal n.";

static const char DOC_PRECV[] =
	"Receives AMQP 1.0 messages as fast as libqpid-proton can, and says where the time went.\v"
	"URL is [amqp[s]://][USER[:PASSWORD]@]HOST[:PORT][/ADDRESS]; without it, precv listens on "
	"127.0.0.1:5672 (5671 with --tls-cert), and ends when every sender that attached has "
	"detached. A message whose "
	"body is eos, as psend --send-eos sends it, ends it too.\n\n"
	"Counts take k m g (powers of 1000), bytes k M G and Ki Mi Gi, times ns us ms s min h "
	"(no unit: seconds).\n\n"
	"Exit status: 0 done, nothing missing; 1 internal or local I/O error; 2 could not connect "
	"or listen, or connection, session or link failed; 3 authentication or TLS failed; 4 "
	"fewer messages than asked; "
	"5 verification failed; 64 usage; 128+n ended by signal n.";

/* Table, defaults, argv, then what belongs together. */
void options_parse(struct options *o, enum program program, int argc, char **argv)
{
	struct argp_option argp_options[2 * OPTIONS_ROWS_MAX];
	struct parser parser = {.o = o, .program = program};
	struct argp argp = {.options = argp_options,
		.parser = parse_option,
		.args_doc = "[URL]",
		.doc = program == PROGRAM_PSEND ? DOC_PSEND : DOC_PRECV};
	*o = (struct options){.program = program};
	for (size_t i = 0; i < option_table_rows; i++)
		if (option_table[i].programs & program && option_table[i].initial)
			set(o, &option_table[i], option_table[i].initial);
	make_argp_options(program, argp_options);
	argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &parser);
	option_check(o);
}

/* An option's name with its unit, as JSON has it: connect-timeout is connect_timeout_ns. */
static void name_with_unit(char *to, size_t size, const struct option_row *row)
{
	static const char *const UNITS[] = {
		[KIND_BYTES] = "_bytes", [KIND_DURATION] = "_ns", [KIND_RATE] = "_per_s"};
	const char *unit = row->kind <= KIND_RATE && UNITS[row->kind] ? UNITS[row->kind] : "";
	snprintf(to, size, "%s%s", row->name, row->unit ? row->unit : unit);
	for (char *c = to; *c; c++)
		if (*c == '-')
			*c = '_';
}

static void describe(const struct options *o, const struct option_row *row, bool given,
	struct report_value *value)
{
	const void *from = const_field(o, row);
	name_with_unit(value->name, sizeof value->name, row);
	switch (row->kind) {
	case KIND_HEADING: break;
	case KIND_FLAG:
	case KIND_YES_NO:
		value->type = VALUE_BOOLEAN;
		value->boolean = *(const bool *)from;
		break;
	case KIND_CHOICE:
		value->type = VALUE_TEXT;
		value->text = row->choices[*(const unsigned *)from];
		break;
	case KIND_TEXT:
	case KIND_URL:
		value->text = *(const char *const *)from;
		value->type = value->text ? VALUE_TEXT : VALUE_NULL;
		break;
	case KIND_LIST:
		value->list.items = ((const struct text_list *)from)->items;
		value->list.count = ((const struct text_list *)from)->count;
		value->type = value->list.count ? VALUE_LIST : VALUE_NULL;
		break;
	case KIND_RATE:
		value->real = *(const double *)from;
		value->type = value->real > 0 ? VALUE_REAL : VALUE_NULL;
		break;
	default:
		value->integer = *(const uint64_t *)from;
		/* neither given, nor a default, nor derived from others: there is none */
		bool none = !given && !row->initial && !value->integer;
		bool no_limit = row->kind == KIND_OPTIONAL_COUNT && value->integer == UINT64_MAX;
		value->type = none ? VALUE_NULL : no_limit ? VALUE_NO_LIMIT : VALUE_INTEGER;
	}
}

/* All that the program has, after defaults and derivations. */
size_t options_describe(const struct options *o, struct report_value values[OPTIONS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < option_table_rows && count < OPTIONS_MAX; i++)
		if (option_table[i].kind != KIND_HEADING && option_table[i].programs & o->program)
			describe(o, &option_table[i], o->given[i], &values[count++]);
	return count;
}
