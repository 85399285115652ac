/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/switch.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include <rxe/packet.h>

#include "urxed/switch/deliver.h"

/* Port numbers: the daemon's is 0; then come uplinks and VMs, then processes by their first block
 * of QPNs. */
#define FIRST_UPLINK  1u
#define FIRST_PROCESS (FIRST_UPLINK + SWITCH_SLOTS)

/* After a failed introduction of a process, the switch tries no other for it during this time,
 * because each attempt costs several system calls. */
#define INTRODUCE_AGAIN_NS 100000000u

static void init_uplink_port(struct vswitch *sw, uint32_t index)
{
	struct switch_port *port = &sw->uplink_ports[index];

	port->kind = sw->uplinks[index].kind == UPLINK_VM ? SWITCH_VM : SWITCH_UPLINK;
	*(port->kind == SWITCH_VM ? &sw->vm_mask : &sw->wire_mask) |= 1u << index;
	port->number = FIRST_UPLINK + index;
	port->uplink = &sw->uplinks[index];
	snprintf(port->name, sizeof(port->name), "%s", port->uplink->spec);
}

int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks)
{
	uint32_t i;
	int rc;

	memset(sw, 0, sizeof(*sw));
	sw->host = host;
	sw->neigh = neigh;
	sw->uplinks = uplinks;
	sw->n_uplinks = n_uplinks;
	sw->retry_at = UINT64_MAX;
	TAILQ_INIT(&sw->turns);
	sw->leases.added = &sw->added;
	sw->self = (struct switch_port){.kind = SWITCH_URXED, .name = "urxed"};
	for (i = 0; i < n_uplinks; i++)
		init_uplink_port(sw, i);
	rc = remote_qp_acl_open(&sw->remotes);
	if (!rc)
		rc = fdb_open(&sw->fdb);
	if (rc)
		switch_fini(sw);
	return rc;
}

void switch_fini(struct vswitch *sw)
{
	remote_qp_acl_close(&sw->remotes);
	qpn_table_close(&sw->added);
	fdb_close(&sw->fdb);
}

void switch_add_vm_port(struct vswitch *sw, uint32_t index)
{
	init_uplink_port(sw, index);
	if (sw->n_uplinks <= index)
		sw->n_uplinks = index + 1;
}

void switch_remove_vm_port(struct vswitch *sw, uint32_t index)
{
	struct switch_port *port = &sw->uplink_ports[index];

	switch_count_lost(port);
	switch_stats_add(&sw->left, &port->stats);
	sw->vm_mask &= ~(1u << index);
	sw->displaced &= ~(1u << index);
	fdb_forget_port(&sw->fdb, index);
	*port = (struct switch_port){0};
	while (sw->n_uplinks && !sw->uplink_ports[sw->n_uplinks - 1].uplink)
		sw->n_uplinks--;
}

bool switch_is_host_mac(const struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN], uint16_t vlan)
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (sw->uplink_ports[i].uplink && ether_same(mac, sw->uplinks[i].mac))
			return true;
	return ether_same(mac, sw->host->mac) || host_has_vlan_mac(sw->host, mac, vlan);
}

/* Whether `name` is the port's number, or its specification up to a comma or the end. */
static bool port_has_name(const struct switch_port *port, const char *name)
{
	const char *spec = port->uplink->spec;
	size_t len = strlen(name);
	char number[16];

	snprintf(number, sizeof(number), "%u", port->number);
	return !strcmp(name, number) ||
	       (!strncmp(spec, name, len) && (!spec[len] || spec[len] == ','));
}

int switch_pin(struct vswitch *sw, const char *text, char error[SWITCH_ERROR])
{
	struct fdb_key key;
	const char *name;
	uint32_t i = 0;
	int rc;

	if (fdb_parse(text, &key, &name)) {
		snprintf(error, SWITCH_ERROR, "fdb %s is not MAC=PORT or MAC@VLAN=PORT", text);
		return -EINVAL;
	}
	while (i < sw->n_uplinks && !port_has_name(&sw->uplink_ports[i], name))
		i++;
	if (i == sw->n_uplinks) {
		snprintf(error, SWITCH_ERROR, "fdb %s: no uplink is called %s", text, name);
		return -EINVAL;
	}
	i = bond_port_of(&sw->bond, i);
	rc = switch_is_host_mac(sw, key.mac, key.vlan) ? -EEXIST : fdb_pin(&sw->fdb, &key, i);
	if (rc)
		snprintf(error, SWITCH_ERROR, "fdb %s: %s", text,
			 rc == -EEXIST ? "the MAC is another port's or the host's"
				       : "the port's share of the table is full");
	return rc;
}

int switch_lease(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn)
{
	return *qpn ? lease_take_block(&sw->leases, port, *qpn)
		    : lease_take(&sw->leases, port, port->remotes.user, now, qpn);
}

int switch_join(struct vswitch *sw, struct switch_port *port, uint64_t now, uint32_t *qpn)
{
	int rc = switch_lease(sw, port, now, qpn);

	if (rc)
		return rc;
	port->kind = SWITCH_PROCESS;
	port->remotes.process = lease_block(*qpn);
	port->added = (struct qpn_holder){.owner = port, .process = port->remotes.process};
	port->number = FIRST_PROCESS + (*qpn >> LEASE_SHIFT);
	port->next = sw->ports;
	sw->ports = port;
	TAILQ_INSERT_TAIL(&sw->turns, port, turn);
	return 0;
}

void switch_introduce(struct vswitch *sw, struct switch_port *from, struct switch_port *to,
		      uint32_t qpn)
{
	uint32_t block = lease_block(qpn);
	uint64_t *word = &from->introduction_settled[block / 64], bit = UINT64_C(1) << block % 64;
	int rc;

	if (!sw->introduce || from->kind != SWITCH_PROCESS || *word & bit ||
	    sw->now < from->introduce_at)
		return;
	/*
	 * No process leases the block, so QPNs of several processes may be in it, and one bit for
	 * the block is not enough. Processes request introductions to such QPNs themselves
	 * (VNIC_ATTACH_INTRODUCE).
	 */
	if (!sw->leases.owner[block])
		return;
	rc = sw->introduce(from, to, qpn);
	if (!rc || rc == -EPERM)
		*word |= bit;
	else if (rc != -EAGAIN && rc != -ENOENT)
		from->introduce_at = sw->now + INTRODUCE_AGAIN_NS;
}

/* Forgets which processes were introduced to the owner of the block, because the next owner needs
 * introductions of its own. */
static void forget_introductions(struct vswitch *sw, uint32_t block)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		port->introduction_settled[block / 64] &= ~(UINT64_C(1) << block % 64);
}

void switch_leave(struct vswitch *sw, struct switch_port *port)
{
	struct switch_port **link;
	uint32_t block;

	for (block = 0; block < LEASE_BLOCKS; block++)
		if (sw->leases.owner[block] == port)
			forget_introductions(sw, block);
	qpn_table_remove_some(&sw->added, &port->added, UINT32_MAX);
	lease_drop(&sw->leases, port);
	remote_qp_acl_remove_all(&sw->remotes, &port->remotes);
	for (link = &sw->ports; *link; link = &(*link)->next) {
		if (*link == port) {
			*link = port->next;
			TAILQ_REMOVE(&sw->turns, port, turn);
			switch_stats_add(&sw->left, &port->stats);
			return;
		}
	}
}

int switch_add_qpn(struct vswitch *sw, struct switch_port *port, uint32_t qpn, uint32_t flags)
{
	if (qpn >= 1u << 24)
		return -EINVAL;
	return lease_may_add(&sw->leases, port, qpn)
		       ? qpn_table_add(&sw->added, &port->added, qpn, flags)
		       : -EEXIST;
}

static struct remote_qp_key remote_qp_key(const uint8_t gid[16], uint32_t qpn)
{
	struct remote_qp_key key = {.qpn = qpn};

	memcpy(key.gid, gid, sizeof(key.gid));
	return key;
}

int switch_add_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
		      const uint8_t gid[16], uint32_t qpn)
{
	const struct remote_qp_key key = remote_qp_key(gid, qpn);

	/* QP0, QP1 and multicast QPNs have no connections. */
	if (qpn <= URXE_QPN_GSI || qpn >= URXE_QPN_MULTICAST)
		return -EINVAL;
	if (local >= 1u << 24 || lease_owner(&sw->leases, local) != port)
		return -EACCES;
	return remote_qp_acl_add(&sw->remotes, &port->remotes, local, &key);
}

int switch_remove_remote(struct vswitch *sw, struct switch_port *port, uint32_t local,
			 const uint8_t gid[16], uint32_t qpn)
{
	const struct remote_qp_key key = remote_qp_key(gid, qpn);

	if (local >= 1u << 24)
		return -ENOENT;
	return remote_qp_acl_remove(&sw->remotes, &port->remotes, local, &key);
}

const struct switch_port *switch_next_port(const struct vswitch *sw, const struct switch_port *port)
{
	uint32_t uplink = 0;

	if (!port)
		return &sw->self;
	if (port->kind == SWITCH_PROCESS)
		return port->next;
	if (port->kind != SWITCH_URXED)
		uplink = (uint32_t)(port - sw->uplink_ports) + 1;
	while (uplink < sw->n_uplinks && !sw->uplink_ports[uplink].uplink)
		uplink++;
	return uplink < sw->n_uplinks ? &sw->uplink_ports[uplink] : sw->ports;
}

void switch_totals(const struct vswitch *sw, struct switch_stats *sums)
{
	const struct switch_port *port = NULL;

	*sums = sw->left;
	while ((port = switch_next_port(sw, port)))
		switch_stats_add(sums, &port->stats);
}
