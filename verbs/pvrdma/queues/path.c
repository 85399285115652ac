/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/path.h"

#include <rxe/service_level.h>

/*
 * struct pvrdma_av: port_pd is port << 24 | handle of the PD; sl_tclass_flowlabel is traffic class
 * << 20 | flow label. Driver and provider store no service level in the upper four bits.
 */
#define AV_PORT_SHIFT   24
#define AV_PD_MASK      0xffffffu
#define AV_SL_SHIFT     28
#define AV_TCLASS_SHIFT 20
#define FLOW_LABEL_MASK 0xfffffu

#define AH_FLAG_GRH 1 /* enum ibv_ah_attr.is_global */

static bool is_gid(const struct pvrdma *dev, uint8_t index)
{
	return index < URXE_MAX_GIDS && dev->gids & 1u << index;
}

/*
 * Returns the traffic class of an address vector's flow word; 0 if a long flow label has
 * overwritten it. The provider does not cut a program's flow label to 20 bits, and UCX's has 32.
 * Such a label sets some of the upper four bits, which are 0 otherwise.
 */
static uint8_t traffic_class_of_av(uint32_t flow)
{
	return flow >> AV_SL_SHIFT ? 0 : (uint8_t)(flow >> AV_TCLASS_SHIFT);
}

bool pv_path_of_av(const struct pvrdma *dev, const struct pv_pd *pd, const struct pvrdma_av *av,
		   struct urxe_path *path)
{
	const uint32_t flow = av->sl_tclass_flowlabel;

	if (av->port_pd >> AV_PORT_SHIFT != PV_PORT ||
	    (av->port_pd & AV_PD_MASK) != pd->object.handle || !is_gid(dev, av->gid_index))
		return false;
	*path = (struct urxe_path){
		.sgid_index = av->gid_index,
		.traffic_class = traffic_class_of_av(flow),
		.hop_limit = av->hop_limit,
		.flow_label = flow & FLOW_LABEL_MASK,
	};
	memcpy(path->dgid.raw, av->dgid, sizeof(path->dgid.raw));
	memcpy(path->dmac, av->dmac, sizeof(path->dmac));
	return true;
}

bool pv_path_of_attr(const struct pvrdma *dev, const struct pv_ah_attr *attr,
		     struct urxe_path *path)
{
	if (!(attr->ah_flags & AH_FLAG_GRH) || !is_gid(dev, attr->sgid_index))
		return false;
	*path = (struct urxe_path){
		.sgid_index = attr->sgid_index,
		.traffic_class = attr->traffic_class,
		.hop_limit = attr->hop_limit,
		.sl = sl_priority(attr->sl),
		.flow_label = attr->flow_label & FLOW_LABEL_MASK,
	};
	memcpy(path->dgid.raw, attr->dgid, sizeof(path->dgid.raw));
	memcpy(path->dmac, attr->dmac, sizeof(path->dmac));
	return true;
}

void pv_path_to_attr(const struct urxe_path *path, struct pv_ah_attr *attr)
{
	*attr = (struct pv_ah_attr){
		.flow_label = path->flow_label,
		.sgid_index = path->sgid_index,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.sl = path->sl,
		.ah_flags = AH_FLAG_GRH,
		.port_num = PV_PORT,
	};
	memcpy(attr->dgid, path->dgid.raw, sizeof(attr->dgid));
	memcpy(attr->dmac, path->dmac, sizeof(attr->dmac));
}
