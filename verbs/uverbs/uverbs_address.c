/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uverbs/uverbs_address.h"

#include <errno.h>
#include <string.h>

#include <rxe/service_level.h>

#include "adapter/adapter.h"
#include "process/log.h"
#include "requests/daemon_requests.h"

int address_path(const struct ib_uverbs_ah_attr *attr, struct urxe_path *path, int *hop_error)
{
	const struct ib_uverbs_global_route *grh = &attr->grh;
	struct vnic_next_hop hop = {0};
	int rc;

	*hop_error = 0;
	if (!attr->is_global || attr->port_num != 1)
		return -EINVAL;
	rc = port_check_source(grh->sgid_index, grh->dgid);
	if (rc)
		return rc;
	*path = (struct urxe_path){
		.sgid_index = grh->sgid_index,
		.traffic_class = grh->traffic_class,
		.hop_limit = grh->hop_limit,
		.sl = sl_priority(attr->sl),
		.flow_label = grh->flow_label & 0xfffff,
	};
	memcpy(path->dgid.raw, grh->dgid, sizeof(path->dgid.raw));
	rc = adapter_resolve_next_hop(grh->sgid_index, grh->dgid, &hop);
	if (rc == -ENETUNREACH || rc == -EHOSTUNREACH) {
		log_info("no way to a destination address: %s", strerror(-rc));
		*hop_error = rc;
		return 0;
	}
	if (rc)
		return rc;
	memcpy(path->dmac, hop.mac, sizeof(path->dmac));
	/*
	 * The hop limit of the kernel's route replaces the program's, as in the kernel: programs
	 * that were written for one subnet request a hop limit of 1.
	 */
	if (hop.hop_limit)
		path->hop_limit = hop.hop_limit;
	return 0;
}

void address_from_dest(struct ib_uverbs_ah_attr *attr, const struct ib_uverbs_qp_dest *dest)
{
	*attr = (struct ib_uverbs_ah_attr){
		.grh = {.flow_label = dest->flow_label,
			.sgid_index = dest->sgid_index,
			.hop_limit = dest->hop_limit,
			.traffic_class = dest->traffic_class},
		.sl = dest->sl,
		.is_global = dest->is_global,
		.port_num = dest->port_num,
	};
	memcpy(attr->grh.dgid, dest->dgid, sizeof(attr->grh.dgid));
}

void address_to_dest(struct ib_uverbs_qp_dest *dest, const struct urxe_path *path)
{
	*dest = (struct ib_uverbs_qp_dest){
		.flow_label = path->flow_label,
		.sgid_index = path->sgid_index,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.sl = path->sl,
		.is_global = 1,
		.port_num = 1,
	};
	memcpy(dest->dgid, path->dgid.raw, sizeof(dest->dgid));
}
