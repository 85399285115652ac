/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver's receive filter: mode, groups, VLANs. The device copies each part when the driver's
 * command says so.
 */
#include <string.h>

#include "nic.h"
#include "shared.h"

#define TPID_HIGH 0x81 /* of 802.1Q's EtherType, 0x8100 */
#define TPID_LOW  0x00

void vnic_device_update_mode(struct vnic_device *dev)
{
	dev->filter.mode = vnic_load(&dev->shared->rx_filter.mode);
}

/* Copies the driver's table of multicast groups. False: the table does not lie in the driver's
 * memory, and the old one stays valid. */
bool vnic_device_update_groups(struct vnic_device *dev)
{
	struct vnic_device_filter *filter = &dev->filter;
	uint64_t addr = vnic_load(&dev->shared->rx_filter.multicast_addr);
	uint32_t bytes = vnic_load(&dev->shared->rx_filter.multicast_len);
	uint32_t count = bytes / sizeof(filter->groups[0]);

	if (!vnic_region_covers(dev, addr, bytes))
		return false;
	filter->group_count = count;
	if (count <= VNIC_FILTER_GROUPS)
		vnic_region_read(dev, addr, filter->groups[0], count * sizeof(filter->groups[0]));
	return true;
}

void vnic_device_update_vlans(struct vnic_device *dev)
{
	for (uint32_t i = 0; i < VMXNET3_VFT_SIZE; i++)
		dev->filter.vlan[i] = vnic_load(&dev->shared->rx_filter.vlan[i]);
}

static bool in_group(const struct vnic_device_filter *filter, const uint8_t mac[6])
{
	if (filter->group_count > VNIC_FILTER_GROUPS)
		return true;
	for (uint32_t i = 0; i < filter->group_count; i++)
		if (memcmp(filter->groups[i], mac, sizeof(filter->groups[i])) == 0)
			return true;
	return false;
}

static bool wants_group(const struct vnic_device *dev, const uint8_t mac[6])
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint32_t mode = dev->filter.mode;

	if (memcmp(mac, broadcast, sizeof(broadcast)) == 0)
		return mode & VMXNET3_RXM_BCAST;
	return mode & VMXNET3_RXM_ALL_MULTI ||
	       (mode & VMXNET3_RXM_MCAST && in_group(&dev->filter, mac));
}

static bool wants_station(const struct vnic_device *dev, const uint8_t mac[6])
{
	return dev->filter.mode & VMXNET3_RXM_UCAST &&
	       (dev->attr.shared_mac || memcmp(mac, dev->mac, sizeof(dev->mac)) == 0);
}

/* Whether the driver receives the frame's VLAN. A frame without a tag, or with a priority tag (ID
 * 0), is in no VLAN, and passes. */
static bool wants_vlan(const struct vnic_device *dev, const uint8_t *data, uint32_t len)
{
	uint32_t id;

	if (len < VNIC_ETH_HEADER + 4 || data[12] != TPID_HIGH || data[13] != TPID_LOW)
		return true;
	id = (data[14] & 0x0fu) << 8 | data[15];
	return id == 0 || dev->filter.vlan[id / 32] & 1u << id % 32;
}

bool vnic_device_wants(const struct vnic_device *dev, const uint8_t *data, uint32_t len)
{
	uint8_t mac[6];

	if (dev->filter.mode & VMXNET3_RXM_PROMISC)
		return true;
	memcpy(mac, data, sizeof(mac));
	return wants_vlan(dev, data, len) &&
	       (mac[0] & 1 ? wants_group(dev, mac) : wants_station(dev, mac));
}

bool vnic_device_wants_multicast(const struct vnic_device *dev)
{
	return dev->state == VNIC_DEVICE_ACTIVE &&
	       dev->filter.mode & (VMXNET3_RXM_MCAST | VMXNET3_RXM_ALL_MULTI | VMXNET3_RXM_PROMISC);
}

bool vnic_device_wants_broadcast(const struct vnic_device *dev)
{
	return dev->state == VNIC_DEVICE_ACTIVE &&
	       dev->filter.mode & (VMXNET3_RXM_BCAST | VMXNET3_RXM_PROMISC);
}
