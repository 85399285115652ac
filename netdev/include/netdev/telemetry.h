/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of DPDK's telemetry socket, which rte_telemetry serves in a thread of its own.
 *
 * An answer is one flat list, of numbers, or of names with numbers or texts.
 */
#ifndef URXE_NETDEV_TELEMETRY_H
#define URXE_NETDEV_TELEMETRY_H

#include <stdbool.h>
#include <stdint.h>

#define NETDEV_TELEMETRY_MAX 256 /* entries of an answer; more are left out */

/* An answer that is being made. */
struct netdev_telemetry;

/* With name NULL an element of a list of numbers. Names are letters, digits, '_' and '/'. */
void netdev_telemetry_number(struct netdev_telemetry *answer, const char *name, uint64_t value);
/* At most 127 bytes; longer text is left out. */
void netdev_telemetry_text(struct netdev_telemetry *answer, const char *name, const char *value);

struct netdev_telemetry_command {
	const char *path; /* "/urxe/..." */
	const char *help;
	bool list; /* of numbers, else of names */
	/*
	 * Runs in telemetry's thread; `parameter` is what follows the path's comma, "" where
	 * nothing does. 0, or a negative errno value: there is no answer.
	 */
	int (*answer)(const char *parameter, struct netdev_telemetry *answer);
};

/*
 * Registers n commands, once, after netdev_dpdk_start; the array stays where it is. 0 or a
 * negative errno value.
 */
int netdev_telemetry_register(const struct netdev_telemetry_command *commands, uint32_t n);

#endif
