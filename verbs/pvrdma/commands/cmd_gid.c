/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver's commands CREATE_BIND and DESTROY_BIND: the GID table follows the guest's addresses.
 */
#include <errno.h>

#include "commands/pvrdma_command.h"
#include "gid_vlan.h"
#include "pvrdma_hca.h"

#define VLAN_MAX 4094

/*
 * Returns the VLAN for a GID that the driver binds; 0: none. If the driver names no VLAN
 * (PV_NO_VLAN), as Linux' driver always does, returns the one in which the machine last used the
 * address.
 */
static uint16_t vlan_of(struct pvrdma *dev, const struct urxe_gid *gid, uint32_t vlan)
{
	return vlan == PV_NO_VLAN ? pv_gid_vlan_bind(dev, gid) : (uint16_t)vlan;
}

int pv_cmd_create_bind(struct pvrdma *dev, const union pv_request *request,
		       union pv_response *response)
{
	const struct pv_cmd_create_bind *bind = &request->create_bind;
	const uint8_t type = dev->attr.roce_v1 ? PV_GID_TYPE_ROCE_V1 : PV_GID_TYPE_ROCE_V2;
	struct urxe_gid gid;
	int rc;

	(void)response;
	if (bind->index >= URXE_MAX_GIDS || bind->gid_type != type ||
	    (bind->vlan != PV_NO_VLAN && bind->vlan > VLAN_MAX))
		return -EINVAL;
	memcpy(gid.raw, bind->new_gid, sizeof(gid.raw));
	rc = urxe_gid_set(dev->engine, bind->index, &gid, dev->attr.roce_v1);
	if (rc)
		return rc;
	dev->gids |= 1u << bind->index;
	pv_hca_set_gid(dev, bind->index);
	return urxe_gid_set_vlan(dev->engine, bind->index, vlan_of(dev, &gid, bind->vlan));
}

int pv_cmd_destroy_bind(struct pvrdma *dev, const union pv_request *request,
			union pv_response *response)
{
	const uint32_t index = request->destroy_bind.index;
	int rc;

	(void)response;
	if (index >= URXE_MAX_GIDS || !(dev->gids & 1u << index))
		return -EINVAL;
	dev->gids &= ~(1u << index);
	rc = urxe_gid_set(dev->engine, index, NULL, false);
	pv_hca_set_gid(dev, index);
	return rc;
}
