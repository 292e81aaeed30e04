/* signals: those that end the run, read by a thread of their own. Layer 4.
 *
 * Whoever takes them may be blocked in writing to somebody who does not read, as the reporter may:
 * the second signal still ends the process.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

/* Blocks SIGINT, SIGTERM and, if it is not ignored from the start, as under nohup, SIGHUP in this
 * thread and those that it starts. Returns a descriptor from which the number of each that comes
 * can be read, as an int. GRACE_S seconds after the second, the process exits with EXIT_BY_SIGNAL
 * and the number of the first, if it still runs. */
int signals_watch(unsigned grace_s);

#endif
