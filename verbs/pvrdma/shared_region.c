/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "shared_region.h"

#include <errno.h>
#include <stddef.h>

#include "pvrdma_device.h"
#include "pvrdma_hca.h"
#include "queues/event_ring.h"

#define VENDOR_ID 0x15ad
#define PART_ID   0x0820
/* The firmware's version 0.1.0: three numbers of 16 bits. */
#define FW_VER          (UINT64_C(0) << 32 | 1 << 16 | 0)
#define LOCAL_ACK_DELAY 15 /* 4.096 us << 15 = 134 ms: a thread may wait that long for a core */

/* Bits of the kernel's device_cap_flags. */
#define CAP_BAD_PKEY_CNTR     (1u << 1)
#define CAP_BAD_QKEY_CNTR     (1u << 2)
#define CAP_CURR_QP_STATE_MOD (1u << 7)
#define CAP_PORT_ACTIVE_EVENT (1u << 10)
#define CAP_RC_RNR_NAK_GEN    (1u << 12)

/* EUI-64 of a MAC address, big endian: universal bit inverted, ff:fe in the middle (RFC 4291). */
static uint64_t guid_of(const uint8_t mac[6])
{
	const uint8_t eui[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	uint64_t guid;

	memcpy(&guid, eui, sizeof(guid));
	return guid;
}

static void fill_caps(const struct pvrdma *dev, struct pv_device_caps *caps)
{
	*caps = (struct pv_device_caps){
		.fw_ver = FW_VER,
		.node_guid = guid_of(dev->attr.mac),
		.sys_image_guid = guid_of(dev->attr.mac),
		.max_mr_size = PV_MAX_MR_LENGTH,
		.page_size_cap = PV_PAGE,
		.vendor_id = VENDOR_ID,
		.vendor_part_id = PART_ID,
		.hw_ver = 1,
		.max_qp = PV_MAX_QP,
		.max_qp_wr = URXE_MAX_WR,
		.device_cap_flags = CAP_BAD_PKEY_CNTR | CAP_BAD_QKEY_CNTR | CAP_CURR_QP_STATE_MOD |
				    CAP_PORT_ACTIVE_EVENT | CAP_RC_RNR_NAK_GEN,
		.max_sge = URXE_MAX_SGE,
		.max_sge_rd = URXE_MAX_SGE,
		.max_cq = PV_MAX_CQ,
		.max_cqe = PV_MAX_CQE,
		.max_mr = PV_MAX_MR,
		.max_pd = PV_MAX_PD,
		.max_qp_rd_atom = URXE_MAX_RD_ATOMIC,
		.max_res_rd_atom = PV_MAX_QP * URXE_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = URXE_MAX_RD_ATOMIC,
		.max_ah = PV_MAX_AH,
		.max_srq = PV_MAX_SRQ,
		.max_srq_wr = URXE_MAX_WR,
		.max_srq_sge = URXE_MAX_SGE,
		.max_uar = PVRDMA_UAR_PAGES,
		.gid_tbl_len = URXE_MAX_GIDS,
		.max_pkeys = 1,
		.local_ca_ack_delay = LOCAL_ACK_DELAY,
		.phys_port_cnt = PV_PORT,
		.mode = PV_MODE_ROCE,
		.atomic_ops = PV_ATOMIC_COMP_SWAP | PV_ATOMIC_FETCH_ADD,
		.bmme_flags = PV_BMME_LOCAL_INV | PV_BMME_REMOTE_INV | PV_BMME_FAST_REG,
		.gid_types = dev->attr.roce_v1 ? PV_GID_TYPE_ROCE_V1 : PV_GID_TYPE_ROCE_V2,
		.max_fast_reg_page_list_len = PV_MAX_FAST_REG,
	};
}

static int open_rings(struct pvrdma *dev, const struct pv_shared_region *region)
{
	int rc = pv_event_ring_open(dev, &dev->async, &region->async_ring_pages,
				    sizeof(struct pv_eqe));

	if (rc)
		return rc;
	rc = pv_event_ring_open(dev, &dev->cq_notify, &region->cq_ring_pages,
				sizeof(struct pv_cqne));
	if (rc)
		pv_event_ring_close(&dev->async);
	return rc;
}

int pv_shared_region_load(struct pvrdma *dev, uint64_t addr)
{
	struct pv_shared_region region;
	struct pv_device_caps caps;
	uint8_t *bytes = vnic_guest_memory_range(dev->attr.memory, addr, sizeof(region), true);
	int rc;

	if (!bytes)
		return -EFAULT;
	pv_copy_once(&region, bytes, sizeof(region));
	if (region.driver_version < PV_VERSION)
		return -EINVAL;
	rc = open_rings(dev, &region);
	if (rc)
		return rc;
	dev->slots = (struct pv_slots){
		.loaded = true,
		.request = region.cmd_slot_dma,
		.response = region.resp_slot_dma,
		.uar_pfn = region.uar_pfn64,
	};
	fill_caps(dev, &caps);
	pv_hca_limit(dev, &caps);
	memcpy(bytes + offsetof(struct pv_shared_region, caps), &caps, sizeof(caps));
	vnic_dirty_mark(vnic_guest_memory_log(dev->attr.memory),
			bytes + offsetof(struct pv_shared_region, caps), sizeof(caps));
	return 0;
}

void pv_shared_region_unload(struct pvrdma *dev)
{
	dev->slots = (struct pv_slots){0};
	pv_event_ring_close(&dev->async);
	pv_event_ring_close(&dev->cq_notify);
}
