/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The driver's commands QUERY_PORT, QUERY_PKEY, CREATE_BIND and DESTROY_BIND: the GID table follows
 * the guest's addresses.
 */
#include <errno.h>

#include "commands/pvrdma_command.h"
#include "gid_vlan.h"
#include "pvrdma_hca.h"
#include "pvrdma_port.h"

#define PORT_DOWN   1
#define PORT_ACTIVE 4
/* PortPhysicalState (IBA 14.2.5.6) */
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5

#define PORT_CM_SUP        (1u << 16)
#define PORT_IP_BASED_GIDS (1u << 26)

/* 4X SDR: 10 Gb/s, the speed of the machine's vmxnet3. */
#define WIDTH_4X  2
#define SPEED_SDR 1

#define VLAN_MAX 4094

/* Returns n, but at most UINT16_MAX: the violation counters of a port have 16 bits, and stay at
 * their maximum (IBA 14.2.5.6). */
static uint32_t clamp_violations(uint64_t n)
{
	return n < UINT16_MAX ? (uint32_t)n : UINT16_MAX;
}

/* Returns the value of enum urxe_mtu for the longest path MTU of at most so many bytes. */
static uint32_t mtu_code(uint32_t bytes)
{
	uint32_t code = URXE_MTU_256;

	while (code < URXE_MTU_4096 && 256u << code <= bytes)
		code++;
	return code;
}

int pv_cmd_query_port(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response)
{
	const struct urxe_counters *counters = urxe_dev_counters(dev->engine);
	const bool up = pv_port_is_up(dev);

	if (request->query_port.port_num != PV_PORT)
		return -EINVAL;
	response->query_port.attrs = (struct pv_port_attr){
		.state = up ? PORT_ACTIVE : PORT_DOWN,
		.max_mtu = URXE_MTU_4096,
		.active_mtu = mtu_code(pv_port_path_mtu(dev)),
		.gid_tbl_len = URXE_MAX_GIDS,
		.port_cap_flags = PORT_CM_SUP | PORT_IP_BASED_GIDS,
		.max_msg_sz = URXE_MAX_MSG,
		.bad_pkey_cntr = clamp_violations(counters->drop[URXE_DROP_BAD_PKEY]),
		.qkey_viol_cntr = clamp_violations(counters->drop[URXE_DROP_BAD_QKEY]),
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_SDR,
		.phys_state = up ? PHYS_LINK_UP : PHYS_DISABLED,
	};
	return 0;
}

int pv_cmd_query_pkey(struct pvrdma *dev, const union pv_request *request,
		      union pv_response *response)
{
	(void)dev;
	if (request->query_pkey.port_num != PV_PORT || request->query_pkey.index)
		return -EINVAL;
	response->query_pkey.pkey = URXE_DEFAULT_PKEY;
	return 0;
}

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
