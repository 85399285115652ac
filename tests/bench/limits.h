/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe's figures stand beside, each measured between two pinned processors. */
#ifndef URXE_BENCH_LIMITS_H
#define URXE_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "two.h"

/*
 * Memory of a message of `size` bytes that has been written to, as perftest has it: whole pages.
 * The caller frees it.
 */
uint8_t *limit_buffer(size_t size);

/* Times, one way, in seconds. `size` is of a message in bytes where it means anything. */
double limit_bounce(const struct bench_cpus *cpus, size_t size);
double limit_ring(const struct bench_cpus *cpus, size_t size);
double limit_tcp(const struct bench_cpus *cpus, size_t size);
double limit_wakeup(const struct bench_cpus *cpus, size_t size);
double limit_wakeup_silent(const struct bench_cpus *cpus, size_t size);
double limit_mlock(const struct bench_cpus *cpus, size_t size);
double limit_vm_write(const struct bench_cpus *cpus, size_t size);

/* Bytes per second. */
double limit_memcpy(const struct bench_cpus *cpus, size_t size);
double limit_copy_crc(const struct bench_cpus *cpus, size_t size);
double limit_pass_crc(const struct bench_cpus *cpus, size_t size);
double limit_vm_read(const struct bench_cpus *cpus, size_t size);

/* Messages per second over so many queue pairs. */
double limit_lines(const struct bench_cpus *cpus, size_t count);

/* Messages of one line per second. */
double limit_stream(const struct bench_cpus *cpus, size_t size);

/* What share of a processor both take for a message every so many microseconds. */
double limit_paced(const struct bench_cpus *cpus, size_t microseconds);

#endif
