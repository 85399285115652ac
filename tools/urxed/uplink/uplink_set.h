/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The uplinks of a daemon and its ports for virtual machines. daemon_start.c opens and closes the
 * uplinks, daemon_run.c serves them. Functions with a parameter `error` return 0, or a negative
 * errno value and a sentence in `error`.
 */
#ifndef URXE_URXED_UPLINK_UPLINK_SET_H
#define URXE_URXED_UPLINK_UPLINK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch.h"
#include "urxed/uplink/uplink.h"

struct uplink_set {
	uint32_t n; /* slots up to the last one in use, as n_uplinks of the switch */
	struct uplink at[SWITCH_SLOTS];
};

/*
 * Opens a port for each of n specs, at most SWITCH_UPLINKS. The caller keeps specs, impair and hca,
 * and calls uplink_set_close also after an error.
 */
int uplink_set_open(struct uplink_set *all, const char *const *specs, uint32_t n,
		    const struct uplink_impair *impair, const struct hca_monitor *hca,
		    char error[UPLINK_ERROR]);
/* Makes all uplinks of the set, except virtual machines, members of a bond. They then receive
 * frames for the host, whose MAC is `mac`. */
int uplink_set_bond(struct uplink_set *all, const uint8_t mac[ETHER_MAC_LEN],
		    char error[UPLINK_ERROR]);
/* Checks that at least two of the n specifications name uplinks to an Ethernet, as a bond needs.
 * Returns 0, or -EINVAL and a sentence in `error`. */
int uplink_set_check_bond(const char *const *specs, uint32_t n, char error[UPLINK_ERROR]);
/* Returns the index of the uplink that gets the addresses of --address: after uplink_set_bond the
 * first member of the bond, else the first uplink. HOST_NO_UPLINK: there is none. */
int uplink_set_address_port(const struct uplink_set *all);
/* Whether frames to this host's addresses and groups on `uplink` may come through uplink i: i is
 * the same uplink, or both are members of the bond. Both indices are below all->n. */
static inline bool uplink_set_is_path(const struct uplink_set *all, uint32_t uplink, uint32_t i)
{
	return i == uplink || (all->at[uplink].bonded && all->at[i].bonded);
}
void uplink_set_close(struct uplink_set *all);

/*
 * Checks that the present MTU of each uplink is at least `mtu` bytes, or, if mtu is 0, the least
 * that RoCE needs. Returns 0, or -EMSGSIZE and a sentence in `error` that names an uplink with a
 * smaller MTU. If an MTU changes later, the daemon tells programs.
 */
int uplink_set_check_mtu(const struct uplink_set *all, uint16_t mtu, char error[UPLINK_ERROR]);
/* Makes the uplinks receive frames for virtual machines. */
int uplink_set_hear_all(struct uplink_set *all, char error[UPLINK_ERROR]);
/*
 * Makes the uplink of an address, or all members if it is in a bond, receive frames of the
 * address's VLAN, because a device of dpdk: may filter VLANs (a NIC of the kernel lets pass the
 * VLANs for which the kernel has an interface), and of the multicast MAC to which other stations
 * send neighbour solicitations of an IPv6 address.
 */
int uplink_set_hear_address(struct uplink_set *all, const struct host_address *a,
			    char error[UPLINK_ERROR]);
/* Makes the uplinks receive all multicast frames; logs which of them cannot. */
void uplink_set_hear_multicast(const struct uplink_set *all);
/*
 * Adds the ports' descriptors to the epoll set, unless they are in it. Their events have no data
 * (NULL), because they only wake the daemon. Events of the processes of vhost: ports have `all` as
 * data; uplink_set_event handles them.
 */
int uplink_set_watch(struct uplink_set *all, int epoll_fd, char error[UPLINK_ERROR]);
void uplink_set_event(struct uplink_set *all, uint64_t now);
/* Handles expired timers of vhost: ports; returns the time of the next one in ns. */
uint64_t uplink_set_tick(struct uplink_set *all, uint64_t now);
/* Closes each tap: uplink for good whose interface the kernel has removed, alone or with its
 * network namespace. Returns whether there was one. */
bool uplink_set_close_lost_taps(struct uplink_set *all);
/* Logs which MTU the bond has if its members' MTUs differ and one is below `limit`, the greatest
 * MTU that the host can have. */
void uplink_set_log_bond_mtu(const struct uplink_set *all, uint32_t limit);
/* These call uplink_log_pages, or uplink_log_impairments, for each uplink of the set. */
void uplink_set_log_pages(const struct uplink_set *all);
void uplink_set_log_impairments(const struct uplink_set *all);

#endif
