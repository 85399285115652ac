/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A switch of two or more processes and perhaps an uplink of netdev_mem, and the frames and drops
 * that a test sees there. */
#ifndef URXE_TEST_SWITCH_LAN_H
#define URXE_TEST_SWITCH_LAN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "craft.h"
#include "lan.h"

#define THEIRS 2   /* last byte of another host's address */
#define DEPTH  512 /* of the uplink */

static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 9};

static struct lan *w;
static struct switch_stats before; /* when drops_seen was called */

static inline int setup_with(uint32_t processes, uint32_t stations)
{
	static const char *const spec = "mem", *const address = "10.0.0.1/24";
	const struct lan_attr attr = {.n_processes = processes,
				      .n_stations = stations,
				      .first_vm = stations,
				      .specs = &spec,
				      .depth = DEPTH,
				      .addresses = &address,
				      .n_addresses = 1};

	w = lan_open(&attr);
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	memset(&before, 0, sizeof(before));
	return setup_with(2, 1);
}

static inline int setup_alone(void **state)
{
	(void)state;
	memset(&before, 0, sizeof(before));
	return setup_with(2, 0);
}

static inline int setup_crowd(void **state)
{
	(void)state;
	memset(&before, 0, sizeof(before));
	return setup_with(LAN_PROCESSES, 0);
}

static inline int teardown(void **state)
{
	(void)state;
	lan_check_sums(w);
	lan_close(w);
	return 0;
}

static inline void make(uint8_t f[LAN_LEN], const uint8_t *dmac, const uint8_t *smac, uint32_t qpn,
			uint32_t mark)
{
	struct urxe_packet p = lan_datagram(dmac, qpn, w->qpn[0]);

	memcpy(p.smac, smac, 6);
	if (!ether_same(smac, lan_macs[0]))
		p.sgid = craft_gid(URXE_NET_IPV4, THEIRS);
	lan_frame(f, &p, mark);
}

static inline bool post(uint32_t from, const uint8_t *dmac, uint32_t qpn, uint32_t mark)
{
	const struct urxe_packet p = lan_datagram(dmac, qpn, w->qpn[from]);
	uint8_t f[LAN_LEN];

	lan_frame(f, &p, mark);
	return lan_post(w, from, f, LAN_LEN);
}

static inline uint64_t dropped(enum switch_drop which)
{
	struct switch_stats all;

	switch_totals(&w->sw, &all);
	return all.drops[which];
}

/* Expects n drops for one reason since drops_seen, and no others. */
static inline void drops(enum switch_drop which, uint64_t n)
{
	struct switch_stats all;
	uint32_t i;

	switch_totals(&w->sw, &all);
	for (i = 0; i < SWITCH_DROP_COUNT; i++)
		if (all.drops[i] - before.drops[i] != (i == which ? n : 0))
			fail_msg("%s: %llu", switch_drop_name(i), (unsigned long long)all.drops[i]);
	lan_check_sums(w);
}

static inline void drops_seen(void)
{
	switch_totals(&w->sw, &before);
}

#endif
