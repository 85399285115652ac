/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands on DPDK's telemetry socket, for the daemon. DPDK's rte_telemetry answers them in a
 * thread of its own. An answer is one flat list: of numbers, or of names with numbers or texts.
 */
#ifndef URXE_NETDEV_TELEMETRY_H
#define URXE_NETDEV_TELEMETRY_H

#include <stdbool.h>
#include <stdint.h>

#define NETDEV_TELEMETRY_MAX 256 /* entries of an answer; further ones are left out */

/* An answer under construction. */
struct netdev_telemetry;

/* Adds a number to the answer. name NULL: it is an element of a list of numbers. Names consist of
 * letters, digits, '_' and '/'. */
void netdev_telemetry_number(struct netdev_telemetry *answer, const char *name, uint64_t value);
/* Adds a text to the answer, unless it is longer than 127 bytes (RTE_TEL_MAX_STRING_LEN). Both
 * functions ignore what exceeds NETDEV_TELEMETRY_MAX entries. */
void netdev_telemetry_text(struct netdev_telemetry *answer, const char *name, const char *value);

struct netdev_telemetry_command {
	const char *path; /* "/urxe/..." */
	const char *help;
	bool list; /* the answer is a list of numbers; else of names */
	/*
	 * Runs in the telemetry thread. `parameter`: the text behind the path's comma, or "". 0, or
	 * a negative errno value for no answer.
	 */
	int (*answer)(const char *parameter, struct netdev_telemetry *answer);
};

/*
 * Registers n commands, once, after netdev_dpdk_start; DPDK keeps the array's address. 0, or a
 * negative errno value.
 */
int netdev_telemetry_register(const struct netdev_telemetry_command *commands, uint32_t n);

#endif
