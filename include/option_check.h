/* option_check: what options mean together. Layer 4, for options.c alone. */
#ifndef OPTION_CHECK_H
#define OPTION_CHECK_H

#include "options.h"

/* Fills in what depends on other options, and ends the process with one line and EXIT_USAGE where
 * they contradict each other. */
void option_check(struct options *o);

#endif
