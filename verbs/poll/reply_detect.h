/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Will a program that takes a received message post a reply at once? Then the ACK of the message
 * can leave with the reply, by the direct uplink in one system call (engine/tx.h). To send the ACK
 * alone would delay the program by about a third of the time that a message of 2 B takes to another
 * host. By the switch, both cost one wake-up of the daemon.
 *
 * If the program does not reply, its peer waits for the ACK until the program's next poll, or until
 * the poll grant ends. So an ACK is kept only after many replies in a row, REPLY_DETECT_FIRST. If
 * the last kept ACK had to wait for the end of a grant, REPLY_DETECT_LATE replies are required. For
 * polling.c, with adapter.lock.
 */
#ifndef URXE_VERBS_POLL_REPLY_DETECT_H
#define URXE_VERBS_POLL_REPLY_DETECT_H

#include <stdbool.h>
#include <stdint.h>

/* A program that posts in this time after it took completions has replied at once. */
#define REPLY_DETECT_NS 10000u
/*
 * Replies at once in a row that are required before an ACK is kept: normally; and after a kept ACK
 * had to wait until the poll grant ended.
 */
#define REPLY_DETECT_FIRST 16u
#define REPLY_DETECT_LATE  1024u

struct reply_detect {
	uint32_t wanted; /* replies at once that must still come in a row before an ACK is kept */
};

/*
 * Call it when the program posts requests. `away`: nanoseconds since the program polled
 * completions; 0: it has polled none since its last verbs call.
 */
static inline void reply_detect_posted(struct reply_detect *detect, uint64_t away)
{
	if (away > REPLY_DETECT_NS)
		detect->wanted = REPLY_DETECT_FIRST;
	else if (away && detect->wanted)
		detect->wanted--;
}

/*
 * Call it when an ACK was kept, but the program posted no reply. `late`: the program did not poll
 * either, so the ACK waited until the poll grant ended.
 */
static inline void reply_detect_missed(struct reply_detect *detect, bool late)
{
	detect->wanted = late ? REPLY_DETECT_LATE : REPLY_DETECT_FIRST;
}

/* Whether the program is expected to reply at once, so that an ACK may be kept for its reply. */
static inline bool reply_detect_expected(const struct reply_detect *detect)
{
	return !detect->wanted;
}

#endif
