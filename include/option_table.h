/* option_table: one row for each option of psend and precv. Layer 4, for options.c and those that
 * check for it. */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include "options.h"

enum option_kind {
	KIND_HEADING,        /* a group's title in --help */
	KIND_FLAG,           /* bool, takes no argument */
	KIND_YES_NO,         /* bool */
	KIND_COUNT,          /* uint64_t, k m g */
	KIND_BYTES,          /* uint64_t, k M G Ki Mi Gi */
	KIND_DURATION,       /* uint64_t, ns */
	KIND_NUMBER,         /* uint64_t, without units */
	KIND_RATE,           /* double, per second */
	KIND_CHOICE,         /* unsigned, an index into choices */
	KIND_TEXT,           /* const char *, not empty */
	KIND_URL,            /* const char *, a copy: a password is taken out of argv */
	KIND_LIST,           /* struct text_list, grows each time the option is given */
	KIND_OPTIONAL_COUNT, /* uint64_t; UINT64_MAX if the option came without an argument */
};

#define KEY_LONG_ONLY 0

struct option_row {
	const char *name;
	const char *alias;     /* another name, or NULL */
	char key;              /* its letter, or KEY_LONG_ONLY */
	enum program programs; /* which have it */
	enum option_kind kind;
	size_t field;         /* offset in struct options */
	const char *argument; /* what --help calls its argument */
	const char *unit;     /* of a KIND_NUMBER, as in "_ms"; NULL: none */
	const char *initial;  /* the default as one would type it, NULL: zero */
	const char *shown;    /* the default as --help shows it, NULL: as `initial` */
	uint64_t min, max;    /* of numbers, both allowed; max 0: no limit */
	const char *help;
	const char *const *choices; /* ends with NULL */
};

extern const struct option_row option_table[];
extern const size_t option_table_rows;

/* Whether the option of this name was on the command line. */
bool option_given(const struct options *o, const char *name);

#endif
