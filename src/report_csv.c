/* The format for spreadsheets. */
#include "report_columns.h"

#include <math.h>

static void csv_start(FILE *out, const struct report_run *run)
{
	if (!run->header)
		return;
	fputs("event", out);
	for (const struct report_column *c = report_columns; c->name; c++)
		if (report_has(run, c))
			fprintf(out, ",%s", c->name);
	fputc('\n', out);
}

static void csv_cell(FILE *out, double value)
{
	if (isnan(value))
		fputc(',', out);
	else
		fprintf(out, ",%.15g", value);
}

static void csv_interval(FILE *out, const struct report_run *run, const struct report_period *p)
{
	fputs("interval", out);
	for (const struct report_column *c = report_columns; c->name; c++)
		if (report_has(run, c))
			csv_cell(out, c->value(p));
	fputc('\n', out);
}

static void csv_summary(FILE *out, const struct report_run *run, const struct report_summary *s)
{
	fputs("summary", out);
	for (const struct report_column *c = report_columns; c->name; c++)
		if (report_has(run, c))
			csv_cell(out, report_total(c, s));
	fputc('\n', out);
}

const struct report_format report_csv = {
	.name = "csv", .start = csv_start, .interval = csv_interval, .summary = csv_summary};
