/* report_columns: the columns of the formats that are tables. Layer 2.
 *
 * Text for people and CSV for spreadsheets are made from one list of them.
 */
#ifndef REPORT_COLUMNS_H
#define REPORT_COLUMNS_H

#include "report.h"

enum side { SIDE_SENDER = 1, SIDE_RECEIVER = 2, SIDE_BOTH = 3 };

struct report_column {
	const char *name;    /* in CSV, with the unit */
	const char *heading; /* in text; NULL: not there */
	int width, decimals; /* in text */
	double divisor;      /* CSV's unit / DIVISOR = text's unit */
	enum side side;
	double (*value)(const struct report_period *p); /* NAN: there is none */
	unsigned needs; /* TIMING_BIT()s without which it is not in text; 0: it always is */
};

/* The last one has no name. */
extern const struct report_column report_columns[];

/* Whether the program of that run has the column. */
bool report_has(const struct report_run *run, const struct report_column *column);

/* The column's value for a whole run: rates are not those of the summary's period, but from the
 * first to the last message. NAN: there is none. */
double report_total(const struct report_column *column, const struct report_summary *s);

#endif
