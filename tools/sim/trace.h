/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What hosts send: as lines for people, and as a capture for Wireshark and urxe replay. */
#ifndef URXE_SIM_TRACE_H
#define URXE_SIM_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct netdev;

#define TRACE_ALL UINT32_MAX

struct trace {
	FILE *text;          /* NULL = none */
	struct netdev *pcap; /* NULL = none; a port that writes */
	uint32_t host[2];    /* only what goes between these two; TRACE_ALL = everything */
};

void trace_frame(struct trace *trace, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len);

#endif
