/* option_message: what the options about psend's messages mean together. Layer 4, for
 * option_check.c alone. */
#ifndef OPTION_MESSAGE_H
#define OPTION_MESSAGE_H

#include "options.h"

/* Fills in what depends on other options, and ends the process with one line and EXIT_USAGE where
 * they contradict each other. */
void option_message_check(struct options *o);

#endif
