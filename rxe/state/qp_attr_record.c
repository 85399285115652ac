/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* State and attributes of a QP, and the headers of its packets. */
#include <string.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "state/state_records.h"
#include "wire/packet_build.h"

static void attr_fields(struct state_stream *s, struct urxe_qp_attr *attr)
{
	state_u8_max(s, &attr->state, URXE_QPS_COUNT - 1);
	path_fields(s, &attr->path);
	state_require(s, attr->path.sgid_index < URXE_MAX_GIDS);
	state_u24s(s, &attr->rq_psn, &attr->sq_psn);
	state_u32(s, &attr->rate_limit);
	state_u8_max(s, &attr->path_mtu, URXE_MTU_4096);
	state_u8_max(s, &attr->max_dest_rd_atomic, URXE_MAX_RD_ATOMIC);
	state_u8(s, &attr->port);
	state_u32s(s, &attr->qkey, &attr->access);
	state_require(s, !(attr->access & ~URXE_ACCESS_ALL));
	state_u8_max(s, &attr->timeout, 31);
	state_u8_max(s, &attr->retry_cnt, 7);
	state_u8_max(s, &attr->rnr_retry, 7);
	state_u8_max(s, &attr->min_rnr_timer, 31);
	state_u8_max(s, &attr->max_rd_atomic, URXE_MAX_RD_ATOMIC);
	state_u16_max(s, &attr->pkey_index, URXE_MAX_PKEYS - 1);
	state_u24(s, &attr->dest_qpn);
}

static void mtu_field(struct state_stream *s, struct urxe_qp *qp)
{
	state_u16(s, &qp->mtu);
	state_require(s, qp->mtu >= 256 && qp->mtu <= 4096 && !(qp->mtu & (qp->mtu - 1)));
}

/* Restoring: the new device's MTU may be too small for the path MTU of the QP. A connection cannot
 * go on with a smaller path MTU. In the error state the path MTU stays: the QP sends only answers
 * that are due (qp_record.c), and the kept requests of the peer have offsets that depend on it. */
static void limit_mtu(struct state_stream *s, struct urxe_qp *qp)
{
	const uint32_t most = urxe_max_path_mtu(qp->dev->attr.mtu);

	if (!s->restoring || !state_ok(s) || qp->mtu <= most || qp->attr.state == URXE_QPS_ERR)
		return;
	if (qp->attr.state >= URXE_QPS_RTR && qp->header.len)
		state_fail(s, -EINVAL);
	else
		qp->mtu = (uint16_t)most;
}

/* --- Headers. */

static uint32_t l3_length(uint8_t net)
{
	switch (net) {
	case URXE_NET_ROCEV1: return IPV6_LEN;
	case URXE_NET_IPV4: return IPV4_LEN + UDP_LEN;
	default: return IPV6_LEN + UDP_LEN;
	}
}

static bool has_valid_lengths(const struct header_template *h)
{
	return (h->l3 == ETH_LEN || h->l3 == ETH_LEN + VLAN_LEN) &&
	       h->len == h->l3 + l3_length(h->net);
}

/* The stream has the bytes of the header, because the GID table may have changed after the path was
 * set. A QP that was never connected has no header. */
static void header_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct header_template *h = &qp->header;
	const struct urxe_dev *dev = qp->dev;

	state_u8_max(s, &h->len, sizeof(h->bytes));
	if (!h->len)
		return;
	state_u8(s, &h->l3);
	state_u8_max(s, &h->net, URXE_NET_IPV6);
	state_require(s, has_valid_lengths(h));
	state_bytes(s, h->bytes, h->len);
	if (!s->restoring || !state_ok(s))
		return;
	build_label_flow(qp); /* streams of older versions have no flow label */
	h->ipv4_sum = h->net == URXE_NET_IPV4 ? ipv4_sum(h->bytes + h->l3) : 0;
	h->omit_icrc = dev->attr.omit_local_icrc &&
		       !memcmp(h->bytes, dev->attr.mac, sizeof(dev->attr.mac));
}

/* Whether a QP of this type may be in this state; a connected one must have headers. */
static bool is_valid_state(const struct urxe_qp *qp)
{
	const uint8_t state = qp->attr.state;

	if (qp->type == URXE_QPT_UD)
		return !qp->header.len && !qp->attr.max_dest_rd_atomic;
	if (qp->type != URXE_QPT_RC && qp->attr.max_dest_rd_atomic)
		return false;
	if (qp->type == URXE_QPT_RC && state == URXE_QPS_SQE)
		return false;
	return state < URXE_QPS_RTR || state > URXE_QPS_SQE || qp->header.len;
}

void qp_attr_record(struct state_stream *s, struct urxe_qp *qp)
{
	state_begin(s, STATE_RECORD_QP_ATTR);
	attr_fields(s, &qp->attr);
	mtu_field(s, qp);
	header_fields(s, qp);
	state_require(s, is_valid_state(qp));
	limit_mtu(s, qp);
	state_end(s);
}
