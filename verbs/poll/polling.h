/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which thread runs the engine: the state machine of docs/locking.md with its interrupts, and the
 * polls of the program, which drive it.
 *
 * An empty poll runs the engine in the caller and gives the program the poll grant: for a
 * millisecond or longer the interrupts stay masked and the engine thread sleeps, so that a program
 * that polls has the processor for itself. A program that polls no more loses the grant, and the
 * engine thread takes over. A poll of a CQ that is armed for an event gives back the grant: the
 * program sleeps next. Functions need the lock of the adapter, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_POLL_POLLING_H
#define URXE_VERBS_POLL_POLLING_H

#include <stdbool.h>
#include <stdint.h>

#include "poll/delayed_ack.h"
#include "poll/poll_detect.h"
#include "poll/poll_state.h"

struct uverbs_file;

/* Length of the poll grant, in ns, from the last poll of an empty CQ. A long grant
 * (polling_grant_is_long) lasts for engine_thread.look instead (poll/engine_wake.h): 1 to 8 ms. */
#define POLL_GRANT_NS 1000000u

struct polling {
	enum poll_state state;
	bool irq_on; /* vNIC, inbox and direct uplink raise interrupts */
	/* The end of the poll grant, clock_now(). 0 in all states but POLL_PROGRAM. Also read
	 * without adapter.lock. */
	_Atomic uint64_t grant_until;
	/* Nanoseconds from the last renewal of the grant to grant_until. Also read without
	 * adapter.lock. */
	_Atomic uint64_t grant_ns;
	/* Number of polls that found completions while the adapter has an HCA. Used without
	 * adapter.lock, so threads may lose counts. */
	_Atomic uint32_t found_polls;
	uint32_t grants;                /* number of poll grants and renewals so far */
	uint32_t hca_looks;             /* empty polls while the HCA executes all queue pairs; every
					   16th runs the engine, the others only engine_poll_hca */
	uint64_t heard_at;              /* when the adapter last received frames */
	uint64_t busy_from;             /* the earliest time of the next busy poll (busy_poll.c) */
	uint64_t pause;                 /* ns from the last busy poll to busy_from */
	struct poll_detect detect;      /* tells whether the program polls again soon */
	struct delayed_ack delayed_ack; /* tells whether an ACK may wait for the program's reply */
};

/* The polls of the adapter. Under adapter.lock, except where the members say otherwise. */
extern struct polling adapter_polling;

/*
 * Moves the state machine by an event, and masks or unmasks the interrupts. True: it unmasked them,
 * but frames had arrived or transmit buffers had become free before, for which no interrupt comes.
 * The state is then POLL_RUNNING, and the caller must run the engine.
 */
bool polling_event(enum poll_event event);

/*
 * Whether poll grants last until the engine thread's next look. True while the HCA executes all
 * queue pairs, and gets their receive requests at once: then packets of peers do not wait for the
 * engine. In an emulated machine a message takes longer than the usual grant, so that each message
 * would need a new grant.
 */
bool polling_grant_is_long(void);
/* Lets the poll grant end POLL_GRANT_NS after `now` at the latest. */
void polling_shorten_grant(uint64_t now);

/*
 * Call it when the program makes a verbs call; adapter.lock need not be held. Returns the
 * nanoseconds since the program took completions; 0: it has taken none since its last verbs call.
 */
uint64_t polling_entered(uint64_t now);
/* Call it when the program posts requests: notes whether it has replied at once to its last message
 * (poll/delayed_ack.h). `away` is the value that polling_entered has returned. */
void polling_posted(uint64_t away);
/*
 * Call it when the program has polled the CQ with that handle, and found it empty: runs the engine,
 * and renews the poll grant. True: a second poll may find completions. False: a second poll is
 * useless, because the CQ is still empty or the engine did not run. The engine does not run while
 * another thread has adapter.lock, or while the adapter has neither daemon, direct uplink nor HCA.
 * The function never waits; adapter.lock must not be held. *now is the time. If the engine has rung
 * the vNIC's doorbell, *now becomes the time after the run: the daemon may have taken this thread's
 * processor.
 */
bool polling_empty(const struct uverbs_file *file, uint32_t handle, uint64_t *now);
/*
 * Call it when a poll of the program has found completions. Gives back the poll grant if the
 * program will not poll again soon. While the adapter has an HCA, every 16th call passes the HCA's
 * completions to the engine: the program may post requests that complete at once, so that none of
 * its polls finds the CQ empty. adapter.lock must not be held.
 */
void polling_found(uint64_t now);

#endif
