/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "gid_vlan.h"

#include <string.h>

#define ETHERTYPE               12 /* offset in a frame */
#define VLAN_TAG                4
#define VLAN                    0x8100
#define VLAN_ID                 0xfff
#define VLAN_MAX                4094
#define ARP                     0x0806
#define ARP_LEN                 28
#define ARP_SENDER              14 /* offset of the sender's IPv4 address */
#define IPV6                    0x86dd
#define IPV6_LEN                40
#define IPV6_SOURCE             8
#define ICMPV6                  58
#define NEIGHBOUR_SOLICITATION  135
#define NEIGHBOUR_ADVERTISEMENT 136

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static bool read_arp(const uint8_t *arp, uint32_t len, struct urxe_gid *sender)
{
	if (len < ARP_LEN)
		return false;
	*sender = (struct urxe_gid){.raw = {[10] = 0xff, [11] = 0xff}};
	memcpy(sender->raw + 12, arp + ARP_SENDER, 4);
	return sender->raw[12]; /* 0: sender 0.0.0.0, an ARP probe (RFC 5227) */
}

/* False for link-local addresses, which interfaces of the machine in different VLANs may share, and
 * for the unspecified address, which begins with 0. */
static bool is_not_link_local(const struct urxe_gid *gid)
{
	return gid->raw[0] && (gid->raw[0] != 0xfe || (gid->raw[1] & 0xc0) != 0x80);
}

static bool read_neighbour(const uint8_t *ip, uint32_t len, struct urxe_gid *sender)
{
	if (len <= IPV6_LEN || ip[6] != ICMPV6 ||
	    (ip[IPV6_LEN] != NEIGHBOUR_SOLICITATION && ip[IPV6_LEN] != NEIGHBOUR_ADVERTISEMENT))
		return false;
	memcpy(sender->raw, ip + IPV6_SOURCE, sizeof(sender->raw));
	return is_not_link_local(sender);
}

/* Finds the sender's address and the VLAN. False: the frame names no address of its sender. */
static bool read_sender(const uint8_t *frame, uint32_t len, struct urxe_gid *sender, uint16_t *vlan)
{
	uint32_t at = ETHERTYPE;

	*vlan = 0;
	if (len >= at + VLAN_TAG + 2 && read16(frame + at) == VLAN) {
		*vlan = read16(frame + at + 2) & VLAN_ID;
		at += VLAN_TAG;
	}
	if (len < at + 2 || *vlan > VLAN_MAX)
		return false;
	len -= at + 2;
	switch (read16(frame + at)) {
	case ARP: return read_arp(frame + at + 2, len, sender);
	case IPV6: return read_neighbour(frame + at + 2, len, sender);
	default: return false;
	}
}

static bool is_same(const struct urxe_gid *a, const struct urxe_gid *b)
{
	return !memcmp(a->raw, b->raw, sizeof(a->raw));
}

static struct pv_address_vlan *find_address(struct pvrdma *dev, const struct urxe_gid *gid)
{
	for (uint32_t i = 0; i < PV_ADDRESS_VLANS; i++) {
		if (is_same(&dev->address_vlans[i].gid, gid))
			return &dev->address_vlans[i];
	}
	return NULL;
}

static bool is_address_of_gid(const struct pvrdma *dev, uint32_t index,
			      const struct urxe_gid *address)
{
	struct urxe_gid gid;
	bool v1;

	return urxe_gid_get(dev->engine, index, &gid, &v1) && is_same(&gid, address);
}

static bool is_bound(const struct pvrdma *dev, const struct urxe_gid *address)
{
	for (uint32_t i = 0; dev->active && i < URXE_MAX_GIDS; i++) {
		if (is_address_of_gid(dev, i, address))
			return true;
	}
	return false;
}

/* The entry for a new address: the oldest one whose address is not in the GID table. */
static struct pv_address_vlan *next_place(struct pvrdma *dev)
{
	struct pv_address_vlan *place;

	for (uint32_t i = 0; i < PV_ADDRESS_VLANS; i++) {
		place = &dev->address_vlans[dev->next_address_vlan++ % PV_ADDRESS_VLANS];
		if (!is_bound(dev, &place->gid))
			break;
	}
	return place;
}

static void note_vlan(struct pvrdma *dev, const struct urxe_gid *gid, uint16_t vlan)
{
	struct pv_address_vlan *address = find_address(dev, gid);

	if (!address)
		address = next_place(dev);
	*address = (struct pv_address_vlan){.gid = *gid, .vlan = vlan};
}

uint16_t pv_gid_vlan_bind(struct pvrdma *dev, const struct urxe_gid *gid)
{
	const struct pv_address_vlan *address = find_address(dev, gid);

	return address ? address->vlan : 0;
}

static bool is_connected_by(const struct pv_qp *qp, uint32_t index)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	if (qp->type != PV_QPT_RC)
		return false;
	urxe_qp_query(qp->qp, &attr, &init);
	return attr.state >= URXE_QPS_RTR && attr.state <= URXE_QPS_SQE &&
	       attr.path.sgid_index == index;
}

static bool has_connection(const struct pvrdma *dev, uint32_t index)
{
	const struct pv_qp *qp;

	TAILQ_FOREACH(qp, &dev->polled_qps, poll_link)
	{
		if (is_connected_by(qp, index))
			return true;
	}
	return false;
}

static void set_vlan(struct pvrdma *dev, const struct urxe_gid *address, uint16_t vlan)
{
	for (uint32_t i = 0; i < URXE_MAX_GIDS; i++) {
		if (is_address_of_gid(dev, i, address) && urxe_gid_vlan(dev->engine, i) != vlan &&
		    !has_connection(dev, i))
			urxe_gid_set_vlan(dev->engine, i, vlan);
	}
}

void pvrdma_nic_sent(struct pvrdma *dev, const uint8_t *frame, uint32_t len)
{
	struct urxe_gid sender;
	uint16_t vlan;

	if (!read_sender(frame, len, &sender, &vlan))
		return;
	note_vlan(dev, &sender, vlan);
	if (dev->active)
		set_vlan(dev, &sender, vlan);
}

void pv_gid_vlan_restore(struct pvrdma *dev)
{
	struct urxe_gid gid;
	bool v1;

	for (uint32_t i = 0; dev->active && i < URXE_MAX_GIDS; i++) {
		if (urxe_gid_get(dev->engine, i, &gid, &v1))
			note_vlan(dev, &gid, urxe_gid_vlan(dev->engine, i));
	}
}
