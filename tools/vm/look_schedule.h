/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When the device process looks at doorbells in memory, of which nothing tells it. Looks are 20 us
 * apart after work. Without work the pauses grow to 1/64 of the time since then, so a request that
 * follows a pause of the guest is at most that much later than the pause was long. 50 ms at most:
 * an idle machine costs up to 0.1 % of a processor. With a processor to spare, looks follow each
 * other without a pause until 200 us after the last work.
 */
#ifndef URXE_VM_LOOK_SCHEDULE_H
#define URXE_VM_LOOK_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define LOOK_BUSY_NS      200000u
#define LOOK_PAUSE_MIN_NS 20000u
#define LOOK_PAUSE_MAX_NS 50000000u
#define LOOK_SHARE        64u

struct look_schedule {
	uint64_t worked_at; /* time of the last look that found work, ns */
};

/* After a look at `now`: ns until the next one; spare: no other thread waits for the processor. */
uint64_t look_schedule_looked(struct look_schedule *schedule, uint64_t now, bool work, bool spare);

#endif
