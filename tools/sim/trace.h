/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes the frames that hosts send as text lines, or as a capture, for urxe sim. */
#ifndef URXE_SIM_TRACE_H
#define URXE_SIM_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct netdev;

#define TRACE_ALL UINT32_MAX

struct trace {
	FILE *text;          /* NULL = none */
	struct netdev *pcap; /* pcap port to write to; NULL = none */
	uint32_t host[2];    /* only frames between these hosts, and from them to groups;
				TRACE_ALL = all frames */
};

/* Writes a frame that host `from` sends at time `now`, ns, unless `host` excludes it. */
void trace_frame(struct trace *trace, uint64_t now, uint32_t from, const uint8_t *data,
		 uint32_t len);

#endif
