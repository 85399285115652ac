/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The states of polling and sleeping of a process's engine, and their transitions, as
 * docs/locking.md shows them. For polling.c, which carries the actions out.
 */
#ifndef URXE_VERBS_POLL_POLL_STATE_H
#define URXE_VERBS_POLL_POLL_STATE_H

enum poll_state {
	POLL_ASLEEP,       /* the engine thread sleeps until an interrupt or a deadline */
	POLL_RUNNING,      /* a thread, mostly the engine thread, empties the rings */
	POLL_BUSY,         /* the engine thread looks for frames without sleeping */
	POLL_PROGRAM,      /* a thread of the program polls; the engine thread sleeps meanwhile */
	POLL_DISCONNECTED, /* there is neither a daemon nor a direct uplink, or the device is dead
			    */
	POLL_STATES
};

enum poll_event {
	POLL_EMPTY,    /* a thread of the program has polled an empty CQ */
	POLL_PAUSE,    /* the program will not poll soon, or waits for an event next */
	POLL_FRAMES,   /* frames came before the interrupt was unmasked */
	POLL_WAKE,     /* the engine thread wakes up; in POLL_PROGRAM: the grant has ended */
	POLL_DRAINED,  /* the rings are empty */
	POLL_STREAM,   /* the rings are empty, and the next frames will come soon */
	POLL_LOST,     /* the daemon has ended and there is no direct uplink, or the device died */
	POLL_ATTACHED, /* the adapter has a daemon again */
	POLL_EVENTS
};

enum poll_action { POLL_NOTHING, POLL_MASK, POLL_UNMASK };

struct poll_step {
	enum poll_state next;
	/* What to do with the interrupts of vNIC, inbox and direct uplink after the change. */
	enum poll_action action;
};

/* The step that the event causes in the state; an event without effect gives the same state. */
struct poll_step poll_step(enum poll_state state, enum poll_event event);

#endif
