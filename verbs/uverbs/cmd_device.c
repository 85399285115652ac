/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* GET_CONTEXT, QUERY_DEVICE, QUERY_PORT. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <hca/hca.h>
#include <infiniband/verbs.h>

#include "adapter/adapter.h"
#include "uverbs/device_max.h"
#include "uverbs/ucontext.h"
#include "uverbs/uverbs_command.h"

/* PortPhysicalState (IBA 14.2.5.6) */
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5

/* librxe prints the version as three numbers of 16 bits. */
#define FW_VER ((uint64_t)0 << 32 | 1 << 16 | 0)

static int set_async_channel(const struct command *c, struct comp_channel *channel, int fd)
{
	const struct ib_uverbs_get_context_resp reply = {
		.async_fd = (uint32_t)fd,
		.num_comp_vectors = MAX_COMP_VECTORS,
	};
	int rc = c->file->live && !adapter.dead ? 0 : -EIO;

	if (!rc)
		rc = c->file->async ? -EINVAL : command_reply(c, &reply, sizeof(reply));
	if (rc)
		return rc;
	c->file->async = channel;
	comp_channel_use(channel);
	return 0;
}

int cmd_get_context(const struct command *c)
{
	struct comp_channel *channel;
	int fd, rc;

	rc = comp_channel_create(sizeof(struct ib_uverbs_async_event_desc), true, NULL, &channel,
				 &fd);
	if (rc) {
		uverbs_log_open_error(rc);
		return rc;
	}
	adapter_lock();
	rc = set_async_channel(c, channel, fd);
	adapter_unlock();
	if (rc)
		close(fd);
	return rc;
}

/* Fills in the part of the response that QUERY_DEVICE and EX_QUERY_DEVICE share. Sets
 * IBV_DEVICE_MEM_MGT_EXTENSIONS, although programs can post only two of these extensions: SEND with
 * Invalidate and Local Invalidate. */
static void fill_device(struct ib_uverbs_query_device_resp *reply)
{
	const uint32_t windows = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	const uint32_t *objects = device_max_objects;
	struct hca_limits max;

	device_max(&max);
	*reply = (struct ib_uverbs_query_device_resp){
		.fw_ver = FW_VER,
		.max_mr_size = max.max_mr_size,
		.page_size_cap = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1),
		.vendor_id = 0xffffff, /* the value without an IEEE OUI, as in the kernel's rxe */
		.max_qp = objects[OBJECT_QP],
		.max_qp_wr = max.max_qp_wr,
		.device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SRQ_RESIZE | windows | IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = max.max_sge,
		.max_sge_rd = max.max_sge,
		.max_cq = objects[OBJECT_CQ],
		.max_cqe = max.max_cqe,
		.max_mr = objects[OBJECT_MR],
		.max_mw = objects[OBJECT_MW],
		.max_pd = objects[OBJECT_PD],
		.max_qp_rd_atom = max.max_rd_atomic,
		.max_res_rd_atom = objects[OBJECT_QP] * max.max_rd_atomic,
		.max_qp_init_rd_atom = max.max_init_rd_atomic,
		.atomic_cap = max.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
		.max_ah = objects[OBJECT_AH],
		.max_srq = objects[OBJECT_SRQ],
		.max_srq_wr = max.max_srq_wr,
		.max_srq_sge = max.max_srq_sge,
		.max_mcast_grp = URXE_MAX_MCAST_GROUPS,
		.max_mcast_qp_attach = URXE_MAX_MCAST_QPS,
		.max_total_mcast_qp_attach = URXE_MAX_MCAST_GROUPS * URXE_MAX_MCAST_QPS,
		.max_pkeys = URXE_MAX_PKEYS,
		.local_ca_ack_delay = LOCAL_ACK_DELAY,
		.phys_port_cnt = 1,
	};
	/* Only the engine has memory windows: with an HCA the device does not support them. */
	if (adapter.hca.hca) {
		reply->device_cap_flags &= ~windows;
		reply->max_mw = 0;
	}
	adapter_guid((uint8_t *)&reply->node_guid);
	reply->sys_image_guid = reply->node_guid;
}

int cmd_query_device(const struct command *c)
{
	struct ib_uverbs_query_device_resp reply;

	fill_device(&reply);
	return command_reply(c, &reply, sizeof(reply));
}

#define ODP_DATAGRAM (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_WRITE    (ODP_DATAGRAM | IBV_ODP_SUPPORT_WRITE)

static const struct ib_uverbs_odp_caps odp_caps = {
	.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps =
		{
			.rc_odp_caps = ODP_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC,
			.uc_odp_caps = ODP_WRITE,
			.ud_odp_caps = ODP_DATAGRAM,
		},
};

int cmd_query_device_ex(const struct command *c)
{
	const struct ib_uverbs_ex_query_device *request = c->request;
	struct ib_uverbs_ex_query_device_resp reply = {0};

	if (request->comp_mask || request->reserved)
		return -EINVAL;
	fill_device(&reply.base);
	reply.device_cap_flags_ex = reply.base.device_cap_flags;
	if (!adapter.hca.hca) {
		reply.device_cap_flags_ex |= CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
		reply.odp_caps = odp_caps;
	}
	reply.response_length = c->out_size < sizeof(reply) ? c->out_size : sizeof(reply);
	return command_reply(c, &reply, sizeof(reply));
}

/* Limits a counter of P_Key or Q_Key violations to the 16 bits of PortInfo: it stays at its maximum
 * (IBA 14.2.5.6). */
static uint32_t clamp_violations(uint64_t n)
{
	return n < UINT16_MAX ? (uint32_t)n : UINT16_MAX;
}

int cmd_query_port(const struct command *c)
{
	const struct ib_uverbs_query_port *request = c->request;
	struct ib_uverbs_query_port_resp reply;
	const struct urxe_counters *counters;
	struct hca_limits max;

	if (request->port_num != 1)
		return -EINVAL;
	counters = urxe_dev_counters(adapter.dev);
	if (adapter.hca.hca)
		hca_read_mtu(adapter.hca.hca);
	device_max(&max);
	reply = (struct ib_uverbs_query_port_resp){
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = URXE_MAX_MSG,
		.gid_tbl_len = URXE_MAX_GIDS,
		.pkey_tbl_len = URXE_MAX_PKEYS,
		.bad_pkey_cntr = clamp_violations(counters->drop[URXE_DROP_BAD_PKEY]),
		.qkey_viol_cntr = clamp_violations(counters->drop[URXE_DROP_BAD_QKEY]),
		.state = adapter.welcome.port.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = (uint8_t)(port_mtu() < max.mtu ? port_mtu() : max.mtu),
		.max_vl_num = 1,
		.active_width = adapter.welcome.port.active_width,
		.active_speed = adapter.welcome.port.active_speed,
		.phys_state = adapter.welcome.port.up ? PHYS_LINK_UP : PHYS_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	return command_reply(c, &reply, sizeof(reply));
}
