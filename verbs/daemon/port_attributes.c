/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/port_attributes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "adapter/adapter.h"
#include "daemon/adapter_hca.h"
#include "daemon/uplink_qpns.h"
#include "objects/uverbs_file.h"
#include "process/log.h"

static int set_gid(uint32_t index, const struct vnic_attach_gid *entry)
{
	struct urxe_gid gid;
	int rc;

	if (!entry->valid)
		return urxe_gid_set(adapter.dev, index, NULL, false);
	memcpy(gid.raw, entry->raw, sizeof(gid.raw));
	rc = urxe_gid_set(adapter.dev, index, &gid, entry->v1);
	return rc ? rc : urxe_gid_set_vlan(adapter.dev, index, entry->vlan);
}

/* Whether both entries are the same to the engine. The interface index does not count: only the HCA
 * uses it (adapter_hca_set_gids). */
static bool is_same_gid(const struct vnic_attach_gid *a, const struct vnic_attach_gid *b)
{
	return !memcmp(a, b, offsetof(struct vnic_attach_gid, ifindex));
}

static bool are_same_gids(const struct vnic_attach_gid *now, const struct vnic_attach_gid *before)
{
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		if (!is_same_gid(&now[i], &before[i]))
			return false;
	return true;
}

/* Sets the entries of the engine's GID table that have changed, and leaves the others as they are.
 * 0 or a negative errno value. */
static int set_gids(const struct vnic_attach_gid *now, const struct vnic_attach_gid *before)
{
	int rc = 0;

	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS && !rc; i++)
		if (!is_same_gid(&now[i], &before[i]))
			rc = set_gid(i, &now[i]);
	return rc;
}

static int set_port(const struct vnic_attach_port *now, const struct vnic_attach_port *before)
{
	int rc = urxe_link_mtu_set(adapter.dev, now->link_mtu);

	return rc ? rc : set_gids(now->gids, before->gids);
}

static void send_port_event(enum ibv_event_type event)
{
	struct uverbs_file *file;

	LIST_FOREACH(file, &adapter.files, link)
	uverbs_file_event(file, 1, event);
}

/*
 * A queue pair whose source GID has left the table keeps that GID, as with the kernel's drivers: no
 * host answers its packets, and it fails by its own timeouts.
 */
void port_changed(const struct vnic_attach_port *now)
{
	const struct vnic_attach_port before = adapter.welcome.port;
	int rc = set_port(now, &before);

	if (rc)
		log_error("cannot apply urxed's change of the port: %s", strerror(-rc));
	adapter.welcome.port = *now;
	adapter_hca_set_state();
	if (memcmp(now->gids, before.gids, sizeof(before.gids)))
		adapter_hca_set_gids();
	if (!are_same_gids(now->gids, before.gids)) {
		/* Tells the daemon anew which QPs have peers on other hosts: a GID that was this
		 * host's may be another host's now, or the reverse. */
		uplink_qpns_update();
		send_port_event(IBV_EVENT_GID_CHANGE);
	}
	if (now->up != before.up)
		send_port_event(now->up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

bool port_has_gid(const uint8_t raw[16])
{
	const struct vnic_attach_gid *gids = adapter.welcome.port.gids;

	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		if (gids[i].valid && !memcmp(gids[i].raw, raw, sizeof(gids[i].raw)))
			return true;
	return false;
}

/* Passes the P_Keys in adapter.welcome to the engine. 0, or -EBUSY: the engine has kept an old
 * entry that a QP uses, and has set the others. */
static int set_pkeys(void)
{
	int rc = 0;

	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		if (urxe_pkey_set(adapter.dev, i, adapter.welcome.pkeys[i]))
			rc = -EBUSY;
	return rc;
}

void port_pkeys_changed(const uint16_t *before)
{
	if (!memcmp(adapter.welcome.pkeys, before, sizeof(adapter.welcome.pkeys)))
		return;
	if (set_pkeys())
		log_warning("queue pairs keep a P_Key that the new urxed does not have");
	adapter_hca_set_pkeys();
	send_port_event(IBV_EVENT_PKEY_CHANGE);
}

int port_set_attributes(void)
{
	static const struct vnic_attach_port none;
	int rc = set_pkeys();

	return rc ? rc : set_port(&adapter.welcome.port, &none);
}
