/* parent: whether the driver that started us is still there. Layer 4.
 *
 * The driver holds the other side of a descriptor of ours. When that is closed, by its end or its
 * death, nobody is left who could send a signal or read what we write.
 */
#ifndef PARENT_H
#define PARENT_H

/* Watches descriptor FD from a thread of its own, which may outlive the run: the caller itself may
 * be blocked in writing to a parent that is gone. Returns a descriptor that is readable once the
 * other side has been closed; from then on there are GRACE_S seconds for an end in order, before
 * SIGALRM ends the process. */
int parent_watch(int fd, unsigned grace_s);

#endif
