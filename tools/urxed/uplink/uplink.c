/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/kernel/iface_claim.h"

/* In the index for host_make_mac, distinguishes the MAC of a bond's probes from the port's. */
#define PROBE_MAC 0x80000000u

/* Sets u->kernel, and u->ifname to the interface that the specification names; "" if none. */
static void set_ifname(struct uplink *u)
{
	const char *name = strchr(u->spec, ':');

	u->kernel = !strncmp(u->spec, "af_packet:", 10) || port_is_xdp(u->spec);
	if (name && (u->kernel || !strncmp(u->spec, "tap:", 4)))
		snprintf(u->ifname, sizeof(u->ifname), "%.*s", (int)strcspn(name + 1, ","),
			 name + 1);
}

static int add_impairments(struct uplink *u, const struct uplink_impair *impair,
			   char error[UPLINK_ERROR])
{
	int rc;

	if (!impair->asked)
		return 0;
	rc = netdev_impair_open(u->port, &impair->tx, impair->both_ways ? &impair->rx : NULL,
				&u->port);
	if (rc)
		snprintf(error, UPLINK_ERROR, "no memory for the impairments of %s", u->spec);
	u->impaired = !rc;
	return rc;
}

/* Returns an index for the uplink's MAC (host_make_mac) that does not depend on the uplink's
 * position among the uplinks. It is not 0, which is the index of the host's own MAC. */
static uint32_t mac_index(const char *spec)
{
	uint32_t n = 0;

	while (*spec)
		n = n * 31 + (uint8_t)*spec++;
	return n | 1;
}

enum uplink_kind uplink_kind_of(const char *spec)
{
	return strncmp(spec, "qemu:", 5) && strncmp(spec, "vhost:", 6) ? UPLINK_WIRE : UPLINK_VM;
}

static bool names_vhost_driver(const char *name)
{
	return !strncmp(name, "net_vhost", 9) || !strncmp(name, "eth_vhost", 9);
}

/*
 * Refuses a dpdk: specification of a vhost device with -EINVAL. DPDK's vhost library dies of
 * malformed messages, so urxed must not load it into its own process. The specification may be the
 * device's name alone, or bus=vdev,name=NAME.
 */
static int refuse_vhost_device(const char *spec, char error[UPLINK_ERROR])
{
	const char *name = strstr(spec, "name=");

	if (strncmp(spec, "dpdk:", 5) ||
	    !(names_vhost_driver(spec + 5) || (name && names_vhost_driver(name + 5))))
		return 0;
	snprintf(error, UPLINK_ERROR,
		 "%s: a virtual machine could crash urxed by it: use vhost:PATH[,connect], which "
		 "has a process of its own",
		 spec);
	return -EINVAL;
}

static int open_port(struct uplink *u, char error[UPLINK_ERROR])
{
	int rc;

	if (strncmp(u->spec, "vhost:", 6))
		return refuse_vhost_device(u->spec, error) ?: port_open(u->spec, &u->port, error);
	rc = vhost_process_start(&u->vhost, u->spec, HOST_MTU, error);
	u->is_vhost = !rc;
	u->port = rc ? NULL : u->vhost.port;
	return rc;
}

bool uplink_is_xdp(const struct uplink *u)
{
	return port_is_xdp(u->spec);
}

bool uplink_has_lost_interface(const struct uplink *u)
{
	return iface_watch_has_gone(&u->watch);
}

/*
 * Binds UDP port 4791 of the interface (roce_port_guard.h). Also returns 0 if the port is taken and
 * an RDMA device of the kernel is on the interface: then rdma_rxe may have the port on all
 * interfaces, and the kernel sends no ICMP errors. Returns -EADDRINUSE if another program or
 * another uplink of this daemon has the port, or if the uplink's XDP program would take packets of
 * an rdma_rxe that is on this interface or one below or above it. Also returns other errors of
 * roce_port_guard_open.
 */
static int guard_port(struct uplink *u, char error[UPLINK_ERROR])
{
	int rc = roce_port_guard_open(&u->port_guard, u->ifname, error);

	return rc == -EADDRINUSE && u->hca &&
			       hca_monitor_has_interface(u->hca, u->ifname, uplink_is_xdp(u))
		       ? 0
		       : rc;
}

/*
 * Claims the kernel's interface for this uplink alone. But the daemon of a nested `urxe run` shares
 * it with the outer daemon, whose device is the inner daemon's HCA. Returns 0, -EADDRINUSE if the
 * interface is taken, or another error of roce_port_guard_open or iface_claim_open.
 */
static int take_interface(struct uplink *u, char error[UPLINK_ERROR])
{
	const int rc = guard_port(u, error);

	if (rc || getenv("URXE_OUTER_DIR"))
		return rc;
	u->claim = iface_claim_open(u->ifname, error);
	return u->claim < 0 ? u->claim : 0;
}

/*
 * Opens the port of the uplink. Claims a kernel interface first, because the opening takes some 10
 * ms, which would be wasted if another program has the interface. If both fail, and the claim for
 * another reason, `error` gets the sentence of the port's error, which tells more.
 */
static int open_guarded(struct uplink *u, char error[UPLINK_ERROR])
{
	const int guarded = u->kernel ? take_interface(u, error) : 0;
	char refusal[UPLINK_ERROR];
	int watched = 0, rc;

	if (guarded == -EADDRINUSE)
		return guarded;
	/* Before the port opens, so that the watch also notices if the interface goes meanwhile. */
	if (u->kernel)
		watched = iface_watch_open(&u->watch, u->ifname);
	rc = open_port(u, refusal);
	if (rc)
		snprintf(error, UPLINK_ERROR, "%s", refusal);
	else if (watched)
		snprintf(error, UPLINK_ERROR, "%s cannot be watched: %s", u->ifname,
			 strerror(-watched));
	return rc ?: watched ?: guarded;
}

int uplink_open(struct uplink *u, const char *spec, const struct uplink_impair *impair,
		const struct hca_monitor *hca, char error[UPLINK_ERROR])
{
	int rc;

	*u = (struct uplink){.spec = spec,
			     .kind = uplink_kind_of(spec),
			     .impair = impair,
			     .hca = hca,
			     .claim = -1};
	roce_port_guard_init(&u->port_guard);
	iface_watch_init(&u->watch);
	set_ifname(u);
	rc = open_guarded(u, error);
	if (rc) {
		uplink_close(u);
		return rc;
	}
	if (!netdev_mac(u->port, u->mac))
		host_make_mac(u->mac, mac_index(spec));
	host_make_mac(u->probe_mac, mac_index(spec) ^ PROBE_MAC);
	u->mtu = u->mtu_max = (uint16_t)netdev_mtu(u->port);
	u->up = true;
	rc = uplink_make_queue(u);
	if (rc)
		snprintf(error, UPLINK_ERROR, "no memory for the queue of %s", spec);
	if (!rc)
		rc = add_impairments(u, impair, error);
	if (rc)
		uplink_close(u);
	return rc;
}

void uplink_log_pages(const struct uplink *u)
{
	const uint64_t size = u->port ? netdev_page_size(u->port) : 0;

	if (size > (uint64_t)sysconf(_SC_PAGESIZE))
		log_line("%s: packet buffers in huge pages of %llu KiB", u->spec,
			 (unsigned long long)size >> 10);
	else if (size)
		log_line("%s: packet buffers in ordinary pages: not enough huge ones are free",
			 u->spec);
}

int uplink_hear_all(struct uplink *u, char error[UPLINK_ERROR])
{
	int rc = u->port ? netdev_set_promiscuous(u->port, true) : 0;

	u->hears_all = !rc;
	u->hears_some = rc;
	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot receive frames for virtual machines: %s",
			 u->spec, strerror(-rc));
	return rc;
}

int uplink_hear_own(struct uplink *u, char error[UPLINK_ERROR])
{
	int rc;

	if (u->n_heard_macs && !u->kernel)
		return 0;
	rc = u->port ? netdev_set_promiscuous(u->port, false) : 0;
	u->hears_some = rc;
	if (rc) {
		snprintf(error, UPLINK_ERROR,
			 "%s cannot stop receiving frames of other stations: %s", u->spec,
			 strerror(-rc));
		return rc;
	}
	u->hears_all = false;
	if (u->port)
		u->generation++;
	return 0;
}

static int add_mac(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR])
{
	int rc = netdev_add_mac(u->port, mac);

	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot receive frames to another MAC: %s",
			 u->spec, strerror(-rc));
	return rc;
}

int uplink_hear_mac(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR])
{
	memcpy(u->heard_macs[u->n_heard_macs++], mac, ETHER_MAC_LEN);
	return add_mac(u, mac, error);
}

int uplink_hear_group(struct uplink *u, const uint8_t mac[ETHER_MAC_LEN], char error[UPLINK_ERROR])
{
	int rc = u->port ? netdev_add_group(u->port, mac) : 0;

	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot receive multicast frames: %s", u->spec,
			 strerror(-rc));
	return rc;
}

int uplink_hear_vlan(struct uplink *u, uint16_t vlan, char error[UPLINK_ERROR])
{
	int rc = u->port ? netdev_add_vlan(u->port, vlan) : 0;

	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot receive VLAN %u: %s", u->spec, vlan,
			 strerror(-rc));
	return rc;
}

/* Restores, after the port was opened again, the settings that the daemon has made so far, and the
 * number of lost frames that the switch still has to count. */
static void restore_settings(struct uplink *u, const struct uplink *before)
{
	u->spec = before->spec;
	memcpy(u->probe_mac, before->probe_mac, sizeof(u->probe_mac));
	u->generation = before->generation;
	u->bonded = before->bonded;
	u->lost = before->lost + before->queued;
	u->hears_all = before->hears_all;
	u->n_heard_macs = before->n_heard_macs;
	memcpy(u->heard_macs, before->heard_macs, sizeof(u->heard_macs));
}

/* Also restores the members that the daemon reads while the port is closed: the first uplink has
 * the bond's MAC, and an HCA may be on the interface. */
static void restore_port(struct uplink *u, const struct uplink *before)
{
	memcpy(u->ifname, before->ifname, sizeof(u->ifname));
	u->hears_all = before->hears_all;
	u->mtu = before->mtu;
	memcpy(u->mac, before->mac, sizeof(u->mac));
}

static int hear_again(struct uplink *u, char error[UPLINK_ERROR])
{
	int rc = u->hears_all ? uplink_hear_all(u, error) : 0;

	for (uint32_t i = 0; i < u->n_heard_macs && !rc; i++)
		rc = add_mac(u, u->heard_macs[i], error);
	return rc;
}

int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR])
{
	const struct uplink before = *u;
	char spec[sizeof("af_packet:") + HOST_NDEV_LEN];
	int rc;

	/* The interface may have been renamed, and then `spec` has its old name. */
	snprintf(spec, sizeof(spec), "af_packet:%s", u->ifname);
	uplink_close(u);
	rc = uplink_open(u, u->kernel && !uplink_is_xdp(u) ? spec : u->spec, u->impair, u->hca,
			 error);
	restore_settings(u, &before);
	if (!rc)
		rc = hear_again(u, error);
	if (!rc) {
		u->generation++;
		uplink_log_pages(u);
		return 0;
	}
	/* Without all settings the port would miss frames for the host, so it is closed.
	 * kernel_sync tries again. */
	uplink_close(u);
	restore_port(u, &before);
	return rc;
}

void uplink_close(struct uplink *u)
{
	roce_port_guard_close(&u->port_guard);
	if (u->claim >= 0)
		close(u->claim);
	u->claim = -1;
	iface_watch_close(&u->watch);
	if (u->is_vhost)
		vhost_process_stop(&u->vhost);
	u->is_vhost = false;
	if (u->port)
		netdev_close(u->port);
	u->port = NULL;
	if (u->kernel)
		set_ifname(u);
	uplink_free_queue(u);
	u->impaired = false;
}

void uplink_close_lost(struct uplink *u)
{
	if (u->port)
		log_line("interface %s has gone", u->ifname);
	uplink_close(u);
	u->up = false;
}

static void log_impairments(const struct uplink *u, const char *way,
			    const struct netdev_impair_counters *counters)
{
#define LOG(member, text)                                                 \
	if (counters->member)                                             \
		log_line("%s, faults %s: " #member " %llu", u->spec, way, \
			 (unsigned long long)counters->member);
	NETDEV_IMPAIR_COUNTER_LIST(LOG)
#undef LOG
}

void uplink_log_impairments(const struct uplink *u)
{
	struct netdev_impair_counters tx, rx;

	if (!u->impaired)
		return;
	netdev_impair_counters(u->port, &tx, &rx);
	log_impairments(u, "out", &tx);
	log_impairments(u, "in", &rx);
}
