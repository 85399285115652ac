/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When the device process of a virtual machine rests: whether its main loop looks for work again,
 * pauses or sleeps (rest_next, for vm.c), and how long the reply to a poll of the guest waits
 * (poll_hold, for pvrdma_function.c, which also tells which doorbells the guest rings). All times
 * are as now_ns().
 *
 * The main loop's state after a look, by the state before:
 *
 *            ASLEEP (was woken)  RUNNING                          BUSY
 * work       RUNNING             RUNNING                          RUNNING
 * no work    ASLEEP              BUSY if the last sleep lasted    BUSY for 50 us, then ASLEEP
 *                                100 us at most, else ASLEEP
 *
 * Here a look with work of PVRDMA counts as one without work while doorbells are in memory.
 *
 * A busy poll that found nothing delays the next one, by 250 us at first and then by twice as much
 * each time, up to 128 ms: the virtual machine wants the processor, too. In the state ASLEEP:
 *
 * - Doorbells in memory cause no event. The process looks at them each 20 us after work, and after
 *   an idle time t each t/64, at most each 50 ms. So it finds a request at most t/64 late, and an
 *   idle machine costs up to 0.1 % of a processor. With a processor to spare
 *   (host/spare_processor.h), looks follow each other without a pause until 200 us after work.
 * - A trapped doorbell exits to QEMU, which sends a message, and stops the virtual processor until
 *   the reply. A sleep of the process would delay the reply. So after two doorbells within
 *   REST_DOORBELL_NS the process yields the processor instead, if one is spare.
 * - Else the process sleeps.
 */
#ifndef URXE_VM_REST_H
#define URXE_VM_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "vm/host/spare_processor.h"

/* --- Trapped doorbells */

/* Longest time between two doorbells after which the process yields, and how long it does so after
 * the second one; ns. */
#define REST_DOORBELL_NS 200000u

struct rest_doorbells {
	uint64_t rung_at; /* time of the last doorbell, ns; 0 = none yet */
	bool quick;       /* less than REST_DOORBELL_NS passed between the last two doorbells */
};

/* QEMU's message of a doorbell has arrived at time `now`. */
void rest_rung(struct rest_doorbells *doorbells, uint64_t now);

/*
 * Polls of empty CQs whose replies wait for a completion. A program that polls without a pause
 * rings a doorbell each time, which stops its virtual processor until the device process replies. A
 * delayed reply leaves the processor to the peer whose message the program waits for.
 *
 * A poll waits for POLL_HOLD_NS at most, and only if it follows the reply to the last one within
 * POLL_HOLD_SPIN_NS, without a completion or another doorbell in between. The path through QEMU
 * takes most of POLL_HOLD_SPIN_NS, so the polls of a program that works a little between them wait,
 * too. While a poll waits, its virtual processor takes no interrupt, and later messages of the
 * function wait.
 */
#define POLL_HOLD_NS      100000u
#define POLL_HOLD_SPIN_NS 100000u

struct poll_hold {
	uint64_t replied_at;  /* time of the reply to the last poll, ns */
	uint64_t completions; /* of the device, at that time */
	uint64_t until;       /* end of the wait, ns; 0 = no poll waits */
};

/* The guest has polled an empty CQ; `completions` is the number of the device's completions. */
void poll_hold_polled(struct poll_hold *hold, uint64_t now, uint64_t completions);
/* The guest has rung another doorbell: it does more than poll, so its next poll does not wait. */
void poll_hold_end_series(struct poll_hold *hold);
/* Whether a poll still waits. False: none does, and the caller replies to the last one now. */
bool poll_hold_waits(struct poll_hold *hold, uint64_t now, uint64_t completions);

/* --- The main loop */

struct rest {
	enum rest_state { REST_ASLEEP, REST_RUNNING, REST_BUSY } state;
	uint64_t slept_at, woke_at; /* begin and end of the last sleep, ns */
	uint64_t busy_since;        /* begin of the busy poll, ns */
	uint64_t pause; /* from the last busy poll to the next, ns; 0: the last one found work */
	uint64_t busy_after; /* end of that time, ns */
	uint64_t worked_at;  /* time of the last look at doorbells in memory that found work, ns */
	uint32_t spins;      /* number of looks without a pause so far */
	struct spare_processor spare;
};

/* What the look has found. */
struct rest_look {
	bool work;      /* work of any kind */
	bool rdma_work; /* work of PVRDMA */
	bool mapped;    /* the machine runs, and its doorbells are in memory */
	/* Trapped doorbells; NULL: the machine is paused. */
	const struct rest_doorbells *doorbells;
};

enum rest_kind {
	REST_LOOK,   /* look for work, not for events */
	REST_EVENTS, /* look for events first */
	REST_YIELD,  /* yield the processor, then look for events */
	REST_PAUSE,  /* wait for events for a time, and call rest_woke */
	/* Ask urxed and peers for wake-ups, look at doorbells in memory by rest_between_looks until
	 * one of them or an event has come, and call rest_woke. */
	REST_DOORBELL,
	REST_SLEEP /* wait for events until the next deadline, and call rest_woke */
};

/* The next step after a look at time `now`. REST_PAUSE: *pause is the time, ns. */
enum rest_kind rest_next(struct rest *r, uint64_t now, const struct rest_look *look,
			 uint64_t *pause);
/* Call it after a wait from `slept_at` to `now`. */
void rest_woke(struct rest *r, uint64_t slept_at, uint64_t now);
/*
 * The ns until the next look at doorbells in memory, after a look at time `now`; work: it found
 * some. `spare`: looks may follow each other without a pause.
 */
uint64_t rest_between_looks(struct rest *r, uint64_t now, bool work, bool spare);

#endif
