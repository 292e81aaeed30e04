/* signals: those that end the run, read by a thread of their own. Layer 4.
 *
 * Whoever takes them may be blocked in writing to somebody who does not read, as the reporter may:
 * the second signal still ends the process.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

/* What is read for the parent's end, in place of a signal's number. */
#define SIGNALS_ORPHAN 0

/* Blocks SIGINT, SIGTERM and, if it is not ignored from the start, as under nohup, SIGHUP in this
 * thread and those that it starts. Returns a descriptor from which the number of each that comes
 * can be read, as an int, and once SIGNALS_ORPHAN when ORPHAN_FD (-1: none) has become readable; in
 * the order in which they came. GRACE_S seconds after a signal that is not the first of these, the
 * process exits with EXIT_BY_SIGNAL and the number of the first (SIGHUP for the parent's end), if
 * it still runs. */
int signals_watch(int orphan_fd, unsigned grace_s);

/* Ends the watching, and closes the descriptor. */
void signals_end(void);

#endif
