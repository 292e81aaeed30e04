/* units: numbers as people type them. Layer 0.
 *
 * A number is decimal digits, optionally with a fraction, followed by at most one unit. Anything
 * left over, a sign, an unknown unit, a value that is not a whole number of the smallest unit, or
 * one that does not fit 63 bits, is refused.
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* All return NULL and set *VALUE, or return what is wrong (a constant text) and leave it alone. */
const char *units_parse_count(const char *text, uint64_t *value);      /* k m g: powers of 1000 */
const char *units_parse_bytes(const char *text, uint64_t *value);      /* k M G, Ki Mi Gi */
const char *units_parse_duration(const char *text, uint64_t *value);   /* to ns: ns us ms s min h;
									  no unit: seconds */
const char *units_parse_number(const char *text, uint64_t *value);     /* digits only */
const char *units_parse_rate(const char *text, double *value_per_s);   /* a positive decimal */
const char *units_parse_percentile(const char *text, double *percent); /* 0 < percent <= 100 */

#endif
