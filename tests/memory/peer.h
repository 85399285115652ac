/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The second process of the same user, whose RDMA requests change and read the program's regions.
 * Each function exits on failure.
 */
#ifndef URXE_TEST_MEMORY_PEER_H
#define URXE_TEST_MEMORY_PEER_H

#include <stdint.h>

#include "endpoint.h"

#define PEER_SEND 65536u

/* Starts the peer and connects to it. */
void peer_start(struct endpoint *ep);
void peer_stop(struct endpoint *ep);

/* The peer WRITEs the pattern of `seed` (region.h) to the memory, and READs and compares it. */
void peer_write(uint64_t addr, uint32_t rkey, uint64_t size, uint8_t seed);
/* The peer SENDs the first `size` bytes of the pattern; a receive is posted. */
void peer_send(uint32_t size, uint8_t seed);

#endif
