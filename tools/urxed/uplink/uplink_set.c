/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/uplink_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/epoll_watch.h"
#include "urxed/hostnet/nd_frame.h"

int uplink_set_open(struct uplink_set *all, const char *const *specs, uint32_t n,
		    const struct uplink_impair *impair, const struct hca_monitor *hca,
		    char error[UPLINK_ERROR])
{
	int rc;

	all->n = 0;
	if (impair->asked && !n) {
		snprintf(error, UPLINK_ERROR, "--fault needs an uplink");
		return -EINVAL;
	}
	for (; all->n < n; all->n++) {
		rc = uplink_open(&all->at[all->n], specs[all->n], impair, hca, error);
		if (rc)
			return rc;
	}
	return 0;
}

int uplink_set_check_bond(const char *const *specs, uint32_t n, char error[UPLINK_ERROR])
{
	uint32_t wires = 0;

	for (uint32_t i = 0; i < n; i++)
		wires += uplink_kind_of(specs[i]) == UPLINK_WIRE;
	if (wires >= 2)
		return 0;
	snprintf(error, UPLINK_ERROR,
		 "--bond needs at least two uplinks to an Ethernet, but has %u%s", wires,
		 wires < n ? "; virtual machines do not count" : "");
	return -EINVAL;
}

static int join_bond(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR])
{
	u->bonded = true;
	return uplink_hear_mac(u, mac, error) ?: uplink_hear_mac(u, u->probe_mac, error);
}

void uplink_set_log_bond_mtu(const struct uplink_set *all, uint32_t limit)
{
	const struct uplink *least = NULL, *most = NULL;

	for (uint32_t i = 0; i < all->n; i++) {
		const struct uplink *u = &all->at[i];

		if (!u->bonded)
			continue;
		least = !least || u->mtu < least->mtu ? u : least;
		most = !most || u->mtu > most->mtu ? u : most;
	}
	if (least && least->mtu < most->mtu && least->mtu < limit)
		log_line("bond: the MTU is %u, that of %s; %s has %u", least->mtu, least->spec,
			 most->spec, most->mtu);
}

int uplink_set_bond(struct uplink_set *all, const uint8_t mac[ETHER_MAC_LEN],
		    char error[UPLINK_ERROR])
{
	int rc = 0;

	for (uint32_t i = 0; i < all->n && !rc; i++)
		if (all->at[i].kind == UPLINK_WIRE)
			rc = join_bond(&all->at[i], mac, error);
	return rc;
}

void uplink_set_close(struct uplink_set *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_close(&all->at[i]);
	all->n = 0;
}

int uplink_set_check_mtu(const struct uplink_set *all, uint16_t mtu, char error[UPLINK_ERROR])
{
	uint32_t i, wanted = mtu ? mtu : HOST_MTU_LEAST;

	for (i = 0; i < all->n; i++) {
		if (all->at[i].mtu >= wanted)
			continue;
		snprintf(error, UPLINK_ERROR, "%s carries %u bytes, less than %s %u",
			 all->at[i].spec, all->at[i].mtu, mtu ? "the mtu of" : "RoCE's minimum of",
			 wanted);
		return -EMSGSIZE;
	}
	return 0;
}

int uplink_set_address_port(const struct uplink_set *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->at[i].bonded)
			return (int)i;
	return all->n ? 0 : HOST_NO_UPLINK;
}

static int hear_address(struct uplink *u, const struct host_address *a, char error[UPLINK_ERROR])
{
	uint8_t mac[ETHER_MAC_LEN];
	int rc = a->vlan ? uplink_hear_vlan(u, a->vlan, error) : 0;

	if (rc || ip_is_v4(a->ip))
		return rc;
	nd_group_mac(a->ip, mac);
	return uplink_hear_group(u, mac, error);
}

int uplink_set_hear_address(struct uplink_set *all, const struct host_address *a,
			    char error[UPLINK_ERROR])
{
	int rc = 0;

	for (uint32_t i = 0; i < all->n && !rc; i++)
		if (uplink_set_is_path(all, (uint32_t)a->uplink, i))
			rc = hear_address(&all->at[i], a, error);
	return rc;
}

void uplink_set_hear_multicast(const struct uplink_set *all)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct uplink *u = &all->at[i];
		int rc = u->port ? netdev_set_allmulticast(u->port) : 0;

		if (rc)
			log_line("%s receives no frames to the multicast groups of programs: %s",
				 u->spec, strerror(-rc));
	}
}

int uplink_set_hear_all(struct uplink_set *all, char error[UPLINK_ERROR])
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < all->n && !rc; i++)
		rc = uplink_hear_all(&all->at[i], error);
	return rc;
}

int uplink_set_watch(struct uplink_set *all, int epoll_fd, char error[UPLINK_ERROR])
{
	uint32_t i;
	int fd, rc;

	for (i = 0; i < all->n; i++) {
		fd = all->at[i].port ? netdev_wait_fd(all->at[i].port) : -1;
		rc = fd < 0 ? 0 : epoll_watch_add(epoll_fd, fd, NULL, error);
		if ((!rc || rc == -EEXIST) && all->at[i].is_vhost)
			rc = vhost_process_watch(&all->at[i].vhost, epoll_fd, all, error);
		if (rc && rc != -EEXIST)
			return rc;
	}
	return 0;
}

void uplink_set_event(struct uplink_set *all, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->at[i].is_vhost)
			vhost_process_event(&all->at[i].vhost, now);
}

uint64_t uplink_set_tick(struct uplink_set *all, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < all->n; i++)
		if (all->at[i].is_vhost)
			next = earlier(next, vhost_process_tick(&all->at[i].vhost, now));
	return next;
}

bool uplink_set_close_lost_taps(struct uplink_set *all)
{
	bool found = false;

	for (uint32_t i = 0; i < all->n; i++) {
		struct uplink *u = &all->at[i];

		if (!u->port || !u->ifname[0] || u->kernel || netdev_is_up(u->port))
			continue;
		uplink_close_lost(u);
		found = true;
	}
	return found;
}

void uplink_set_log_pages(const struct uplink_set *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_log_pages(&all->at[i]);
}

void uplink_set_log_impairments(const struct uplink_set *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_log_impairments(&all->at[i]);
}
