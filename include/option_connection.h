/* option_connection: where to connect or listen, as whom, and how protected. Layer 4, for
 * option_check.c alone. */
#ifndef OPTION_CONNECTION_H
#define OPTION_CONNECTION_H

#include "options.h"

/* Works out the peer, the credentials, SASL and TLS, and fills in o->peer, o->security and what
 * options say about them. Ends the process with one line and EXIT_USAGE where options contradict
 * each other, and where a file of theirs is of no use. */
void option_connection_check(struct options *o);

#endif
