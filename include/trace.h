/* trace: what the library prints by itself. Layer 3.
 *
 * Some of its warnings go to stderr whether they are wanted or not, where all that we say has its
 * form. They are printed only if the user has set one of the library's variables, PN_LOG or
 * PN_TRACE_..., and then without a password.
 */
#ifndef TRACE_H
#define TRACE_H

/* For all transports made from now on; before there are threads. */
void trace_start(void);

#endif
