/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which thread runs the engine: the state machine of docs/locking.md with its interrupts, and the
 * polls of the program, which drive it.
 *
 * An empty poll runs the engine in the caller and gives the program the poll grant: for a
 * millisecond the interrupts stay masked and the engine thread sleeps, so that a program that polls
 * has the processor for itself. A program that polls no more loses the grant, and the engine thread
 * takes over. A poll of a CQ that is armed for an event gives back the grant: the program sleeps
 * next. Functions need the lock of the adapter, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_POLL_POLLING_H
#define URXE_VERBS_POLL_POLLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "poll/poll_detect.h"
#include "poll/poll_state.h"
#include "poll/reply_detect.h"

struct uverbs_file;

/* Nanoseconds for which a poll of an empty CQ keeps the engine thread asleep. */
#define POLL_GRANT_NS 1000000u

struct polling {
	enum poll_state state;
	bool irq_on; /* vNIC and inbox raise interrupts */
	/* Also read without adapter.lock. 0 in all states but POLL_PROGRAM. */
	_Atomic uint64_t grant_until;
	uint32_t grants;           /* number of poll grants that the program has got */
	uint64_t heard_at;         /* when the adapter last received frames */
	uint64_t busy_from;        /* time of the next busy poll at the earliest (busy_poll.c) */
	uint64_t pause;            /* ns from the last busy poll to busy_from */
	struct poll_detect detect; /* does the program poll again soon? */
	struct reply_detect reply; /* does it reply to each message at once? */
};

/* The polls of the adapter. Under adapter.lock, except where the members say otherwise. */
extern struct polling adapter_polling;

/*
 * Moves the state machine by an event. True: the move unmasks the interrupts, but frames had
 * arrived or transmit buffers had become free before, for which no interrupt comes. The state is
 * then POLL_RUNNING, and the caller must run the engine.
 */
bool polling_event(enum poll_event event);

/*
 * adapter.lock must not be held: the program makes a verbs call. Returns the nanoseconds since it
 * took completions; 0: it has taken none since its last call.
 */
uint64_t polling_entered(uint64_t now);
/* The program posts requests; `away` is what polling_entered has returned. */
void polling_posted(uint64_t away);
/*
 * adapter.lock must not be held: the program has polled the CQ with that handle, which was empty.
 * False: a second poll would find nothing new.
 */
bool polling_empty(const struct uverbs_file *file, uint32_t handle, uint64_t now);
/* adapter.lock must not be held: the program has polled completions. */
void polling_found(uint64_t now);

#endif
