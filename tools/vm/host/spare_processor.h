/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the host has a processor for each thread that wants to run, so that the device process
 * may look for work without a pause. On a busy host a process that never sleeps would take
 * processor time from the program whose message it waits for.
 */
#ifndef URXE_VM_SPARE_PROCESSOR_H
#define URXE_VM_SPARE_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

struct spare_processor {
	int loadavg;          /* descriptor of /proc/loadavg; -1: never spare */
	uint32_t processors;  /* that this process may use */
	uint64_t answered_at; /* time of the last answer, ns */
	bool spare;           /* the last answer */
};

void spare_processor_open(struct spare_processor *s);
void spare_processor_close(struct spare_processor *s);

/*
 * Whether the host has a processor to spare; the answer is at most 1 ms old. A new answer costs a
 * system call. The calling thread counts as one of those that want to run.
 */
bool spare_processor_exists(struct spare_processor *s, uint64_t now);

/* The number of runnable threads in a line of /proc/loadavg, proc(5); 0: the line has none. */
uint32_t spare_processor_runnable(const char *line);

#endif
