/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limits to compare urxe's figures with, each measured between two pinned CPUs. */
#ifndef URXE_BENCH_LIMITS_H
#define URXE_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/two.h"

/* `size` bytes of populated memory in whole pages, as in perftest. The caller frees it. */
uint8_t *limit_buffer(size_t size);

/* Times in seconds, one way. `size` is a message's length in bytes; some functions ignore it. */
double limit_bounce(const struct bench_cpus *cpus, size_t size);
double limit_ring(const struct bench_cpus *cpus, size_t size);
double limit_tcp(const struct bench_cpus *cpus, size_t size);
double limit_wakeup(const struct bench_cpus *cpus, size_t size);
double limit_wakeup_silent(const struct bench_cpus *cpus, size_t size);
/* From a program by two daemons to another program, on two CPUs. */
double limit_relay(const struct bench_cpus *cpus, size_t size);
double limit_relay_apart(const struct bench_cpus *cpus, size_t size);
double limit_mlock(const struct bench_cpus *cpus, size_t size);
double limit_vm_write(const struct bench_cpus *cpus, size_t size);

/* Bytes per second. */
double limit_memcpy(const struct bench_cpus *cpus, size_t size);
double limit_copy_crc(const struct bench_cpus *cpus, size_t size);
double limit_pass_crc(const struct bench_cpus *cpus, size_t size);
double limit_vm_read(const struct bench_cpus *cpus, size_t size);

/* Messages per second over `count` queue pairs. */
double limit_lines(const struct bench_cpus *cpus, size_t count);

/* Messages of one cache line per second. */
double limit_stream(const struct bench_cpus *cpus, size_t size);

/* The share of a processor that both processes use for one message every `microseconds`. */
double limit_paced(const struct bench_cpus *cpus, size_t microseconds);

#endif
