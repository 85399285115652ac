/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The uplinks and virtual machines of a daemon. */
#ifndef URXE_URXED_UPLINK_UPLINK_SET_H
#define URXE_URXED_UPLINK_UPLINK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"
#include "urxed/uplink/uplink.h"

struct uplinks {
	uint32_t n;
	struct uplink at[SWITCH_UPLINKS];
};

/*
 * Opens one for each of n specs, at most SWITCH_UPLINKS, which stay where they are, as the
 * fault does. On error `why` has one sentence, and uplinks_close is still to be called.
 */
int uplinks_open(struct uplinks *all, const char *const *specs, uint32_t n,
		 const struct fault *fault, char why[UPLINK_WHY]);
void uplinks_close(struct uplinks *all);

/*
 * Whether all carry `mtu` bytes now, 0 = the least that RoCE needs; if one carries less later,
 * clients hear of it. -EMSGSIZE: `why` says which does not.
 */
int uplinks_check_mtu(const struct uplinks *all, uint16_t mtu, char why[UPLINK_WHY]);
/* Who is behind a VM's NIC hears by the uplinks what is for it. On error `why` has one sentence. */
int uplinks_hear_all(struct uplinks *all, char why[UPLINK_WHY]);
/* Also those that are watched already; their events have no data. On error `why` has a sentence. */
int uplinks_watch(const struct uplinks *all, int epoll_fd, char why[UPLINK_WHY]);
/* uplink_log_pages, or uplink_log_faults, for each. */
void uplinks_log_pages(const struct uplinks *all);
void uplinks_log_faults(const struct uplinks *all);

#endif
