/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The uplinks and virtual machines of a daemon. */
#ifndef URXE_URXED_UPLINK_UPLINK_SET_H
#define URXE_URXED_UPLINK_UPLINK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"
#include "urxed/uplink/uplink.h"

struct uplink_set {
	uint32_t n;
	struct uplink at[SWITCH_UPLINKS];
};

/*
 * Opens one for each of n specs, at most SWITCH_UPLINKS, which stay where they are, as the
 * fault does. On error `error` has one sentence, and uplink_set_close is still to be called.
 */
int uplink_set_open(struct uplink_set *all, const char *const *specs, uint32_t n,
		    const struct uplink_impair *fault, char error[UPLINK_ERROR]);
void uplink_set_close(struct uplink_set *all);

/*
 * Whether all carry `mtu` bytes now, 0 = the least that RoCE needs; if one carries less later,
 * clients hear of it. -EMSGSIZE: `error` says which does not.
 */
int uplink_set_check_mtu(const struct uplink_set *all, uint16_t mtu, char error[UPLINK_ERROR]);
/* Who is behind a VM's NIC hears by the uplinks what is for it. On error `error` has one sentence.
 */
int uplink_set_hear_all(struct uplink_set *all, char error[UPLINK_ERROR]);
/* Also those that are watched already; their events have no data. On error `error` has a sentence.
 */
int uplink_set_watch(const struct uplink_set *all, int epoll_fd, char error[UPLINK_ERROR]);
/* uplink_log_pages, or uplink_log_impairments, for each. */
void uplink_set_log_pages(const struct uplink_set *all);
void uplink_set_log_impairments(const struct uplink_set *all);

#endif
