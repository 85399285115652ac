/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What passed the cable: as lines for people, and as a capture for Wireshark and urxe replay. */
#ifndef URXE_TEST_TRACE_H
#define URXE_TEST_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct trace {
	FILE *text; /* NULL = none */
	FILE *pcap; /* NULL = none; its header is written by trace_pcap_open */
};

/* NULL, with errno set, where the file cannot be made. */
FILE *trace_pcap_open(const char *path);
/* Does nothing where trace is NULL. */
void trace_frame(struct trace *trace, uint64_t now, unsigned from, const uint8_t *data,
		 uint32_t len);

#endif
