/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is registered with urxe0. A peer process of the same user writes to it, reads it and
 * sends to it. In a run without urxe memset stores the same bytes. Each function exits on failure;
 * one thread calls them, except for region_register.
 */
#ifndef URXE_TEST_MEMORY_REGION_H
#define URXE_TEST_MEMORY_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_mr;

struct region {
	uint8_t *bytes;
	size_t size;       /* a multiple of the page size */
	struct ibv_mr *mr; /* NULL in a run without urxe */
};

/* Connects to the peer process. with_urxe false: the functions below use no verbs. */
void region_start(bool with_urxe);
void region_stop(void);

/* The lowest free descriptor before the device was opened. */
int region_first_number(void);
/* Descriptors that the program has opened since: two of the device, the socket to the peer,
 * and channels. */
int region_descriptors(void);

/* Opens a completion channel, which is one descriptor of the program, until the program ends. */
void region_open_channel(void);

/* Maps private anonymous memory between two inaccessible pages, and registers it. */
struct region region_map(size_t size);
/* Maps without registering; the address is a multiple of `size`, or of 2 MiB if that is less. */
uint8_t *region_reserve(size_t size);
struct region region_register(uint8_t *bytes, size_t size);
/* As region_register, with IBV_ACCESS_ON_DEMAND. */
struct region region_register_on_demand(uint8_t *bytes, size_t size);
void region_deregister(struct region *region);
/* Deregisters the region, and removes its mapping. */
void region_unmap(struct region *region);

/*
 * The peer WRITEs the pattern of `seed` over the region, READs it, and SENDs its first 64 KiB once
 * more: each byte is then `seed` plus the number of its page.
 */
void region_fill(struct region *region, uint8_t seed);
/* WRITEs the region, at most 1 MiB, to the peer. In a run without urxe the program reads it. */
void region_write_to_peer(const struct region *region);
/* Whether the memory holds the pattern of `seed`. Async-signal-safe. */
bool region_holds(const uint8_t *bytes, size_t size, uint8_t seed);
/* "yes" or "no", for say(). */
const char *region_says(const struct region *region, uint8_t seed);

/* Polls the completion queue, which is empty, once. Any thread. */
void region_poll(void);

#endif
