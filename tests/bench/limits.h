/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe's figures stand beside, each measured between two pinned processors. */
#ifndef URXE_BENCH_LIMITS_H
#define URXE_BENCH_LIMITS_H

#include <stddef.h>
#include <sys/types.h>

/* The processors, of the caller's affinity mask: the program runs on the first. */
struct limits_cpus {
	int own, other;
};

/* Seconds, CLOCK_MONOTONIC. */
double limits_now(void);
/* The calling thread; ends the program where that is not possible. */
void limits_pin(int cpu);
/* A child on the other processor that runs `body`, until limits_end or that of this program. */
pid_t limits_child(const struct limits_cpus *cpus, void (*body)(void *argument), void *argument);
void limits_end(pid_t child);

/* Times, one way, in seconds. `size` is of a message in bytes where it means anything. */
double limit_bounce(const struct limits_cpus *cpus, size_t size);
double limit_ring(const struct limits_cpus *cpus, size_t size);
double limit_tcp(const struct limits_cpus *cpus, size_t size);
double limit_wakeup(const struct limits_cpus *cpus, size_t size);
double limit_vm_write(const struct limits_cpus *cpus, size_t size);

/* Bytes per second. */
double limit_memcpy(const struct limits_cpus *cpus, size_t size);
double limit_copy_crc(const struct limits_cpus *cpus, size_t size);
double limit_vm_read(const struct limits_cpus *cpus, size_t size);

#endif
