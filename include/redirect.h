/* redirect: where a peer sends us to instead. Layer 3. */
#ifndef REDIRECT_H
#define REDIRECT_H

#include <proton/condition.h>
#include <stddef.h>

/* Writes PREFIX "to HOST:PORT/ADDRESS" into SIZE bytes, as far as the CONDITION of a redirect says
 * and there is room; in one line. */
void redirect_describe(pn_condition_t *condition, char *text, size_t size, const char *prefix);

#endif
