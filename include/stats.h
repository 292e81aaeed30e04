/* stats: what one reactor's thread counts. Layer 2.
 *
 * Counters only grow. The thread that owns them copies them at a moment of its choosing (a cut);
 * what happened in a period is the difference of two cuts, so periods add up to the whole exactly.
 */
#ifndef STATS_H
#define STATS_H

#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* What a thread's time is spent on. Wall time is split between them without rest. */
enum time_cause {
	TIME_BUSY,       /* not waiting */
	TIME_CREDIT,     /* waiting: the peer has granted no credit */
	TIME_SESSION,    /* waiting: the peer's session window is closed */
	TIME_SOCKET,     /* waiting: the kernel's buffer is full */
	TIME_SETTLEMENT, /* waiting for the peer to settle what was sent */
	TIME_PACING,     /* waiting because the options say so */
	TIME_IDLE,       /* waiting with nothing to do */
	TIME_CAUSES,
};

/* "busy", "credit" ... */
const char *time_cause_name(enum time_cause cause);

/* Durations in ns that are counted in histograms; a run has those that its options ask for. */
enum timing {
	TIMING_LATENCY,     /* precv: stamp to arrival; psend: send to settled */
	TIMING_STALL,       /* psend: length of the spells without credit */
	TIMING_SEND_DELAY,  /* psend: from when a message was due until it was sent */
	TIMING_ROUND_TRIP,  /* psend: from sending a message, or when it was due, to its answer */
	TIMING_BATCH_FIRST, /* psend: from a batch's first message to its first settlement */
	TIMING_BATCH_LAST,  /* psend: the same, to its last */
	TIMING_BATCH_TICKS, /* the same as the last one, in ticks of the TSC instead of ns */
	TIMINGS,
};
#define TIMING_BIT(TIMING) (1u << (TIMING))
#define TIMINGS_ALL        (TIMING_BIT(TIMINGS) - 1)

/* Nothing but uint64_t, so that sums and differences are loops. */
struct counters {
	uint64_t messages;      /* sent by psend, received by precv (duplicates ignored are not) */
	uint64_t content_bytes; /* of their bodies, without AMQP's headers */

	/* psend: outcomes; sent = the first five + unsettled */
	uint64_t accepted, rejected, released, modified;
	uint64_t no_outcome; /* settled by the peer without saying how */
	uint64_t resent;     /* once more, after their link was lost; they count as sent once */
	uint64_t call_ns;    /* time in send calls: delivery, send and, if pre-settled, settle */

	/* psend: open loop */
	uint64_t due;           /* messages that the schedule has asked for */
	uint64_t late;          /* sent more than SCHEDULE_LATE_NS after they were due */
	uint64_t slots_skipped; /* given up, as they were missed */
	uint64_t paced_ns;      /* time that the schedule has run */

	/* round trips */
	uint64_t answered, unmatched;   /* psend: answers, and those to nothing that it has asked */
	uint64_t answers, unanswerable; /* precv: answers sent, and messages that cannot have one */

	/* precv: accounting */
	uint64_t skipped, reordered, duplicated; /* as in sequence.h; lost = skipped - reordered */
	uint64_t redelivered;                    /* so the header says */
	uint64_t aborted;                        /* deliveries that the sender gave up */
	uint64_t no_sequence, no_timestamp;      /* messages without a readable sn, ts */
	uint64_t corrupted;                      /* bodies that --check-content found wrong */

	/* credit */
	uint64_t blocked;               /* psend: times it had a message and no credit */
	uint64_t stalls, stalled_ns;    /* psend: spells without credit and their length */
	uint64_t grants, granted;       /* precv: calls, and messages granted by them */
	uint64_t frames_in, frames_out; /* AMQP frames, as the transport counts them */

	/* connections that were lost */
	uint64_t reconnects;      /* links attached again */
	uint64_t disconnected_ns; /* from a loss to that, while measuring */

	/* the process; the clock of the report may have stopped before these were read */
	uint64_t cpu_user_ns, cpu_system_ns;
	uint64_t cpu_span_ns; /* time in which that was used */
	uint64_t switches_voluntary, switches_involuntary;

	uint64_t polls, spun_ns;    /* --busy-poll: looks at descriptors that found nothing */
	uint64_t tsc_ticks, tsc_ns; /* --tsc: the same time by two clocks */

	uint64_t time_ns[TIME_CAUSES];
};

struct stats {
	struct counters n;
	unsigned timings_used;             /* TIMING_BIT()s; the others are not looked at */
	struct histogram timings[TIMINGS]; /* by enum timing */
	uint32_t credit_lowest; /* precv: fewest credits the sender had, since the last cut;
				   UINT32_MAX if it was never looked at */
	uint64_t unsettled;     /* psend: now */
	uint64_t just_due;      /* psend: not sent, and due for SCHEDULE_LATE_NS at most */
};

/* Empties S, which has these TIMING_BIT()s from now on; so must all that it is added to. */
void stats_reset(struct stats *s, unsigned timings);

/* All of FROM but the timings that it does not have: these are left as they are in TO. */
void stats_copy(struct stats *to, const struct stats *from);

/* Counts VALUE, in the timing's unit, if the run has that timing. */
static inline void stats_time(struct stats *s, enum timing timing, int64_t value)
{
	if (s->timings_used & TIMING_BIT(timing))
		histogram_record(&s->timings[timing], value);
}

/* Starts a new period: what cannot be subtracted begins anew. */
void stats_cut(struct stats *s);

/* SUM += PART, of another time or place. */
void counters_add(struct counters *sum, const struct counters *part);
void stats_add(struct stats *sum, const struct stats *part);

/* PERIOD = LATER - EARLIER, two copies of the same stats. PERIOD may be LATER. */
void stats_subtract(struct stats *period, const struct stats *later, const struct stats *earlier);

/* Reads the process's CPU time and context switches into the counters. */
void stats_sample_cpu(struct counters *n);

/* The process's memory in bytes; 0 if the kernel does not say. One thread only. */
struct memory {
	uint64_t rss_bytes;
	uint64_t rss_peak_bytes;
};
struct memory memory_sample(void);

#endif
