/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/input.h"

#include <string.h>

#include <rxe/opcode.h>

#include "congestion/cnp.h"
#include "congestion/pacing.h"
#include "device/announcement.h"
#include "objects/device.h"
#include "objects/multicast.h"
#include "objects/pkey.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "requester/completer.h"
#include "requester/retransmit.h"
#include "responder/psn_gap.h"
#include "responder/responder.h"
#include "wire/gid.h"
#include "wire/gso_run.h"
#include "wire/packet_parse.h"

#define SMAC_AT 6 /* offset of the source MAC in a frame */

static enum urxe_drop check_address(const struct urxe_dev *dev, const struct urxe_packet *p)
{
	enum urxe_drop drop = URXE_DROP_BAD_DGID;

	for (uint32_t i = 0; i < dev->n_gids; i++) {
		const struct gid_entry *entry = &dev->gids[i];

		if (!entry->valid || !gid_equal(&entry->gid, &p->dgid))
			continue;
		if (entry->vlan == packet_vlan(p))
			return URXE_DROP_NONE;
		drop = URXE_DROP_BAD_VLAN;
	}
	return drop;
}

/* Whether the packet has one of the device's own addresses as its source. If it comes from another
 * host, it is forged (RFC 1812, 5.3.7), and would pass for a packet of a process on this host. */
static bool has_own_source(const struct urxe_dev *dev, const struct urxe_packet *p)
{
	for (uint32_t i = 0; i < dev->n_gids; i++) {
		const struct gid_entry *entry = &dev->gids[i];

		if (entry->valid && entry->vlan == packet_vlan(p) &&
		    gid_equal(&entry->gid, &p->sgid))
			return true;
	}
	return false;
}

/* Refuses a frame from the wire that has an address of this device as its source. */
static enum urxe_drop check_source(const struct urxe_dev *dev, const struct urxe_frame *frame,
				   const struct urxe_packet *p)
{
	if (!frame->from_wire)
		return URXE_DROP_NONE;
	return !memcmp(frame->data + SMAC_AT, dev->attr.mac, sizeof(dev->attr.mac)) ||
			       has_own_source(dev, p)
		       ? URXE_DROP_OWN_SOURCE
		       : URXE_DROP_NONE;
}

/* Returns why a connection drops the packet (IBA 9.6.1.2.3), or URXE_DROP_NONE: a connection
 * accepts only packets of its peer, on its own path. */
static enum urxe_drop check_path(const struct urxe_qp *qp, const struct urxe_packet *p)
{
	const struct gid_entry *own = &qp->dev->gids[qp->attr.path.sgid_index];

	if (p->net != qp->header.net || !gid_equal(&p->sgid, &qp->attr.path.dgid) ||
	    !gid_equal(&p->dgid, &own->gid))
		return URXE_DROP_BAD_SGID;
	return packet_vlan(p) == own->vlan ? URXE_DROP_NONE : URXE_DROP_BAD_VLAN;
}

static bool is_receiving_state(const struct urxe_qp *qp, uint32_t flags)
{
	uint8_t state = qp->attr.state;

	if (flags & URXE_OPF_RESPONSE)
		return state == URXE_QPS_RTS || state == URXE_QPS_SQD;
	return state >= URXE_QPS_RTR && state <= URXE_QPS_SQE;
}

static bool is_service_of(const struct urxe_qp *qp, uint8_t opcode)
{
	switch (URXE_OPCODE_SERVICE(opcode)) {
	case URXE_SERVICE_RC: return qp->type == URXE_QPT_RC;
	case URXE_SERVICE_UC: return qp->type == URXE_QPT_UC;
	case URXE_SERVICE_UD: return qp->type == URXE_QPT_UD;
	default: return URXE_OPCODE_SERVICE(opcode) == URXE_SERVICE_CNP;
	}
}

static enum urxe_drop check_qp(const struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (!is_service_of(qp, p->opcode))
		return URXE_DROP_BAD_SERVICE;
	if (qp->offloaded)
		return URXE_DROP_OFFLOADED;
	if (!is_receiving_state(qp, urxe_opcodes[p->opcode].flags))
		return URXE_DROP_BAD_STATE;
	return pkey_admits(qp, p) ? URXE_DROP_NONE : URXE_DROP_BAD_PKEY;
}

static enum urxe_drop check_cnp(const struct urxe_packet *p)
{
	bool cnp = URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP;

	return cnp && !p->becn ? URXE_DROP_BAD_CNP : URXE_DROP_NONE;
}

/* Returns why the packet is dropped, by its headers alone (IBA 9.6.1), or URXE_DROP_NONE. Sets *out
 * as soon as the QP is known. */
static enum urxe_drop check_headers(struct urxe_dev *dev, const struct urxe_packet *p,
				    struct urxe_qp **out)
{
	struct urxe_qp *qp;
	enum urxe_drop drop;

	drop = check_address(dev, p);
	if (drop)
		return drop;
	qp = idmap_find(&dev->qps, p->dest_qpn);
	if (!qp)
		return URXE_DROP_BAD_QPN;
	*out = qp;
	drop = check_qp(qp, p);
	if (!drop && qp->type != URXE_QPT_UD)
		drop = check_path(qp, p);
	return drop ? drop : check_cnp(p);
}

static bool is_multicast(const struct urxe_packet *p)
{
	return p->dest_qpn == URXE_QPN_MULTICAST || gid_is_multicast(&p->dgid);
}

static bool is_own_vlan(const struct urxe_dev *dev, const struct urxe_packet *p)
{
	for (uint32_t i = 0; i < dev->n_gids; i++) {
		if (dev->gids[i].valid && dev->gids[i].vlan == packet_vlan(p))
			return true;
	}
	return false;
}

/* Returns why a multicast packet is dropped (IBA 10.5.2), or URXE_DROP_NONE: it needs both a
 * multicast address and the multicast QPN, and the service UD. */
static enum urxe_drop check_multicast(const struct urxe_dev *dev, const struct urxe_packet *p)
{
	if (p->dest_qpn != URXE_QPN_MULTICAST || !gid_is_multicast(&p->dgid))
		return URXE_DROP_BAD_MULTICAST;
	if (!is_own_vlan(dev, p))
		return URXE_DROP_BAD_VLAN;
	return URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_UD ? URXE_DROP_NONE
								 : URXE_DROP_BAD_SERVICE;
}

static void cnp_received(struct urxe_qp *qp)
{
	qp_count(qp, URXE_EVENT_CNP_RCVD);
	pace_notified(qp);
}

static bool has_repeated(const struct requester *req)
{
	return req->probes || req->timed_out;
}

/* Handles a response. If it answers only a repetition, packets were lost: the peer's own requests,
 * which it sent before this answer, are lost, too, if they have not arrived. Then the responder
 * asks for them, because the peer's timeout may be far away. */
static void response_received(struct urxe_qp *qp, const struct urxe_packet *p)
{
	const uint32_t una = qp->req.una;
	bool shows_loss;

	if (!has_repeated(&qp->req)) {
		comp_packet(qp, p);
		return;
	}
	/* If the responder has executed nothing of the peer, the peer may have sent no requests. */
	shows_loss = qp->resp.psn != qp->attr.rq_psn && retransmit_is_answer_to_repetition(qp);
	comp_packet(qp, p);
	if (shows_loss && qp->req.una != una && qp->attr.state != URXE_QPS_ERR)
		psn_gap_suspect(qp, 0);
}

static void dispatch_packet(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP)
		cnp_received(qp);
	else if (urxe_opcodes[p->opcode].flags & URXE_OPF_RESPONSE)
		response_received(qp, p);
	else
		resp_packet(qp, p);
}

/* Returns why the packet is dropped, or URXE_DROP_NONE. *out becomes the QP; it stays NULL for
 * multicast and for unknown QPs. */
static enum urxe_drop check_packet(struct urxe_dev *dev, const struct urxe_packet *p,
				   struct urxe_qp **out)
{
	return is_multicast(p) ? check_multicast(dev, p) : check_headers(dev, p, out);
}

/* Gives the packet the frame's payload reference. Only a SEND of RC may have a reference. */
static enum urxe_drop add_reference(const struct urxe_frame *frame, const struct urxe_qp *qp,
				    struct urxe_packet *p)
{
	if (!qp || qp->type != URXE_QPT_RC || !(urxe_opcodes[p->opcode].flags & URXE_OPF_SEND) ||
	    p->payload_len || frame->reference.length > URXE_REFERENCE_MAX)
		return URXE_DROP_BAD_LENGTH;
	p->reference = &frame->reference;
	p->payload_len = frame->reference.length;
	return URXE_DROP_NONE;
}

static void deliver_multicast(struct urxe_qp *qp, const struct urxe_packet *p)
{
	enum urxe_drop drop = check_qp(qp, p);

	if (drop)
		qp_drop(qp, drop);
	else
		resp_packet(qp, p);
}

/* Delivers a datagram from the network to all members of its group. */
static void input_multicast(struct urxe_dev *dev, const struct urxe_packet *p)
{
	struct mcast_group *group = mcast_find_group(dev, &p->dgid);
	struct mcast_member *member;

	if (!group) {
		dev_drop(dev, URXE_DROP_NO_GROUP);
		return;
	}
	LIST_FOREACH(member, &group->members, group_link)
	deliver_multicast(member->qp, p);
}

/* Notes whether the newest ACK or READ request has the mark of a peer that can receive UDP GSO
 * packets. It can by its packet sockets, but not while the daemon's switch passes its frames. */
static void notice_gso(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (p->opcode == (URXE_SERVICE_RC | URXE_OP_ACKNOWLEDGE) ||
	    p->opcode == (URXE_SERVICE_RC | URXE_OP_READ_REQUEST))
		qp->peer_gso = gso_is_marked(p);
}

void input_frame(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	struct urxe_qp *qp = NULL;
	struct urxe_packet p;
	enum urxe_drop drop;

	drop = urxe_packet_parse(&p, frame->data, frame->len);
	if (drop == URXE_DROP_NOT_ROCE && announcement_input(dev, frame))
		return;
	if (!drop && !frame->without_icrc && !urxe_packet_icrc_ok(&p))
		drop = URXE_DROP_BAD_ICRC;
	if (!drop)
		drop = check_source(dev, frame, &p);
	if (!drop)
		drop = check_packet(dev, &p, &qp);
	if (!drop && frame->reference.length)
		drop = add_reference(frame, qp, &p);
	if (drop && qp) {
		qp_drop(qp, drop);
	} else if (drop) {
		dev_drop(dev, drop);
	} else if (qp) {
		qp_count(qp, URXE_EVENT_RX_PACKETS);
		qp_count_bytes(qp, URXE_EVENT_RX_BYTES, frame->len + frame->reference.length);
		cnp_mark(qp, &p);
		notice_gso(qp, &p);
		dispatch_packet(qp, &p);
	} else {
		dev_count(dev, URXE_EVENT_RX_PACKETS);
		dev->counters.event[URXE_EVENT_RX_BYTES] += frame->len;
		input_multicast(dev, &p);
	}
}

void mcast_loopback(struct urxe_qp *from, const struct urxe_frame *frame)
{
	struct mcast_group *group;
	struct mcast_member *member;
	struct urxe_packet p;

	if (urxe_packet_parse(&p, frame->data, frame->len))
		return;
	group = mcast_find_group(from->dev, &p.dgid);
	if (!group)
		return;
	LIST_FOREACH(member, &group->members, group_link)
	{
		if (member->qp == from && from->block_self_mcast) {
			qp_drop(from, URXE_DROP_OWN_MULTICAST);
			continue;
		}
		qp_count(from, URXE_EVENT_MCAST_LOOPBACK);
		deliver_multicast(member->qp, &p);
	}
}
