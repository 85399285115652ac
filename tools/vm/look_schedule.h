/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When the device process looks at mapped doorbells, whose writes cause no event. After work it
 * looks each 20 us. After an idle time t it looks each t/64, at most each 50 ms, so it finds a
 * request after an idle time t at most t/64 late. An idle machine costs up to 0.1 % of a processor.
 * With a processor to spare, looks follow each other without a pause until 200 us after the last
 * work.
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

/*
 * Call it after a look at time `now`; work: the look found some. Returns the ns until the next
 * look. spare: the host has a processor to spare (spare_processor.h).
 */
uint64_t look_schedule_looked(struct look_schedule *schedule, uint64_t now, bool work, bool spare);

#endif
