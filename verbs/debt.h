/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine owes peers: acknowledgements of what a poll is given before they are sent
 * (progress.c). Whether a program is one that may be given it so, and how much may be owed, and for
 * how long.
 *
 * Who may be: a program that has come back from its last completions at once, so many times in a
 * row. It sends next, most likely, and leaves earlier so; one acknowledgement will do for several
 * polls.
 *
 * To a program that makes no call, the engine's thread owes those of a stream while it looks for
 * more of it without end: until so many frames have come, or none for a while. That costs a sender
 * time who waits for an acknowledgement after fewer; so where it was silence that ended the wait,
 * the next ones are sent at once, twice as many each time.
 *
 * Times are nanoseconds of one clock, none of them 0. Functions want the port's lock but where
 * they are marked; the hints that those read and write are atomic.
 */
#ifndef URXE_VERBS_DEBT_H
#define URXE_VERBS_DEBT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBT_PROMPT_NS    3000u /* back so soon, it is prompt */
#define DEBT_PROMPT_TIMES 8
#define DEBT_FRAMES       16    /* that may wait for their acknowledgements */
#define DEBT_NS           5000u /* for how long, where the program is heard of */
#define DEBT_SILENCE_NS   500u  /* without a frame, a stream has paused */
#define DEBT_DOUBT_MAX    255u  /* acknowledgements at once, after many that waited in vain */

struct debt {
	uint32_t frames;         /* that came since the engine was last asked for some */
	_Atomic uint32_t prompt; /* times in a row that the program came back at once */
	_Atomic uint64_t since;  /* when something was first put off; 0 = nothing is */
	uint32_t doubt;          /* what `at_once` was after the last silence */
	uint32_t at_once;        /* acknowledgements, before a stream's may wait again */
};

/* Without the lock: the program comes back from a completion that it found so long ago. */
void debt_returned(struct debt *debt, uint64_t away);
/*
 * It was given completions of its own requests only, so it waits for acknowledgements, and its peer
 * most likely does so, too: that one gains nothing by a message that comes before its
 * acknowledgement.
 */
void debt_acknowledged(struct debt *debt);
/* So many frames have come. */
void debt_received(struct debt *debt, uint32_t frames);
/* Whether a poll may be given what came, and its acknowledgement put off. */
bool debt_allowed(const struct debt *debt, uint64_t now);
/*
 * Whether acknowledgements of a stream may be put off; nothing else is due, and there was no frame
 * for so long.
 */
bool debt_of_stream(struct debt *debt, uint64_t silent);
/* That was done. */
void debt_incur(struct debt *debt, uint64_t now);
/* Whatever was due is sent. */
void debt_settle(struct debt *debt);
/* Without the lock: whether anything is owed; and for too long. */
bool debt_owed(const struct debt *debt);
bool debt_overdue(const struct debt *debt, uint64_t now);

#endif
