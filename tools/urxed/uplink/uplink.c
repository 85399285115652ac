/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"

/* The interface that a spec names, "" where it names none. */
static void set_ifname(struct uplink *u)
{
	const char *name = strchr(u->spec, ':');

	u->kernel = !strncmp(u->spec, "af_packet:", 10) || port_is_xdp(u->spec);
	if (name && (u->kernel || !strncmp(u->spec, "tap:", 4)))
		snprintf(u->ifname, sizeof(u->ifname), "%.*s", (int)strcspn(name + 1, ","),
			 name + 1);
}

static int spoil(struct uplink *u, const struct uplink_impair *fault, char error[UPLINK_ERROR])
{
	int rc;

	if (!fault->asked)
		return 0;
	rc = netdev_fault_open(u->port, &fault->tx, fault->both_ways ? &fault->rx : NULL, &u->port);
	if (rc)
		snprintf(error, UPLINK_ERROR, "no memory for the faults of %s", u->spec);
	u->spoiled = !rc;
	return rc;
}

/* Of a specification, wherever among the uplinks it stands; 0 is the host's own. */
static uint32_t number(const char *spec)
{
	uint32_t n = 0;

	while (*spec)
		n = n * 31 + (uint8_t)*spec++;
	return n | 1;
}

static enum uplink_kind kind_of(const char *spec)
{
	return strncmp(spec, "qemu:", 5) && strncmp(spec, "vhost:", 6) ? UPLINK_WIRE : UPLINK_VM;
}

bool uplink_is_xdp(const struct uplink *u)
{
	return port_is_xdp(u->spec);
}

int uplink_open(struct uplink *u, const char *spec, const struct uplink_impair *fault,
		char error[UPLINK_ERROR])
{
	int rc;

	*u = (struct uplink){.spec = spec, .kind = kind_of(spec), .fault = fault};
	roce_port_guard_init(&u->hold);
	set_ifname(u);
	rc = port_open(spec, &u->port, error);
	if (rc)
		return rc;
	if (!netdev_mac(u->port, u->mac))
		host_make_mac(u->mac, number(spec));
	u->mtu = u->mtu_max = (uint16_t)netdev_mtu(u->port);
	u->up = true;
	u->stride = ETHER_HDR_LEN + ETHER_VLAN_LEN + u->mtu;
	u->room = calloc(UPLINK_QUEUE, u->stride);
	if (!u->room) {
		snprintf(error, UPLINK_ERROR, "no memory for the queue of %s", spec);
		rc = -ENOMEM;
	}
	if (!rc && u->kernel)
		rc = roce_port_guard_open(&u->hold, u->ifname, error);
	if (!rc)
		rc = spoil(u, fault, error);
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
	int rc = netdev_hear_all(u->port);

	u->hears_all = !rc;
	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot hear for virtual machines: %s", u->spec,
			 strerror(-rc));
	return rc;
}

int uplink_hear_vlan(struct uplink *u, uint16_t vlan, char error[UPLINK_ERROR])
{
	int rc = netdev_hear_vlan(u->port, vlan);

	if (rc)
		snprintf(error, UPLINK_ERROR, "%s cannot hear VLAN %u: %s", u->spec, vlan,
			 strerror(-rc));
	return rc;
}

int uplink_reopen(struct uplink *u, char error[UPLINK_ERROR])
{
	const bool hears_all = u->hears_all;
	const uint16_t mtu = u->mtu;
	int rc;

	uplink_close(u);
	rc = uplink_open(u, u->spec, u->fault, error);
	if (rc)
		u->mtu = mtu;
	if (!rc)
		uplink_log_pages(u);
	if (!rc && hears_all)
		rc = uplink_hear_all(u, error);
	/* For another try. */
	u->hears_all = hears_all;
	return rc;
}

void uplink_close(struct uplink *u)
{
	roce_port_guard_close(&u->hold);
	if (u->port)
		netdev_close(u->port);
	u->port = NULL;
	free(u->room);
	u->room = NULL;
	u->queued = 0;
	u->spoiled = false;
}

static void log_faults(const struct uplink *u, const char *way,
		       const struct netdev_fault_counters *counters)
{
#define LOG(member, text)                                                 \
	if (counters->member)                                             \
		log_line("%s, faults %s: " #member " %llu", u->spec, way, \
			 (unsigned long long)counters->member);
	NETDEV_FAULT_COUNTER_LIST(LOG)
#undef LOG
}

void uplink_log_impairments(const struct uplink *u)
{
	struct netdev_fault_counters tx, rx;

	if (!u->spoiled)
		return;
	netdev_fault_counters(u->port, &tx, &rx);
	log_faults(u, "out", &tx);
	log_faults(u, "in", &rx);
}
