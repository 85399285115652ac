/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delayed acknowledgements: may the ACK of a received message wait for the program's reply? If the
 * program has replied at once so far, the ACK can leave with the reply, by the direct uplink in one
 * system call (engine/tx.h). To send the ACK alone would delay the program by about a third of the
 * time that a message of 2 B takes to another host. By the switch, ACK and reply together cost one
 * wake-up of the daemon.
 *
 * If the program does not reply, its peer waits for the ACK until the program's next poll, or until
 * the poll grant ends. So an ACK is kept only after many replies in a row, DELAYED_ACK_FIRST. If
 * the last kept ACK had to wait for the end of a grant, DELAYED_ACK_LATE replies are required. For
 * polling.c and attach/engine_thread.c, with adapter.lock.
 */
#ifndef URXE_VERBS_POLL_DELAYED_ACK_H
#define URXE_VERBS_POLL_DELAYED_ACK_H

#include <stdbool.h>
#include <stdint.h>

/* A program that posts within this time after it took completions has replied at once. */
#define DELAYED_ACK_REPLY_NS 10000u
/*
 * Number of replies at once in a row that the program must have posted before an ACK is kept.
 * DELAYED_ACK_LATE: after a kept ACK had to wait until the poll grant ended.
 */
#define DELAYED_ACK_FIRST 16u
#define DELAYED_ACK_LATE  1024u

struct delayed_ack {
	uint32_t wanted; /* number of replies at once that are still required to keep an ACK */
};

/*
 * Call it when the program posts requests: counts a reply at once, or begins the count anew.
 * `away`: nanoseconds since the program took completions; 0: it has taken none since its last verbs
 * call.
 */
static inline void delayed_ack_posted(struct delayed_ack *ack, uint64_t away)
{
	if (away > DELAYED_ACK_REPLY_NS)
		ack->wanted = DELAYED_ACK_FIRST;
	else if (away && ack->wanted)
		ack->wanted--;
}

/*
 * Call it when an ACK was kept, but the program posted no reply: begins the count anew. `late`: the
 * program did not poll either, so the ACK waited until the poll grant ended.
 */
static inline void delayed_ack_missed(struct delayed_ack *ack, bool late)
{
	ack->wanted = late ? DELAYED_ACK_LATE : DELAYED_ACK_FIRST;
}

/* Whether an ACK may wait, because the program is expected to reply at once. */
static inline bool delayed_ack_allowed(const struct delayed_ack *ack)
{
	return !ack->wanted;
}

#endif
