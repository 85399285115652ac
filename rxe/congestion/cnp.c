/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "congestion/cnp.h"

#include <rxe/opcode.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "wire/gid.h"
#include "wire/header_fields.h"
#include "wire/packet_build.h"
#include "wire/packet_parse.h"

/* DSCP 48 (CS6): the class in which NICs send CNPs, and which switches can prioritise. */
#define CNP_TRAFFIC_CLASS (48 << 2)
#define BTH_BECN          0x40

static bool is_ce_marked(const struct urxe_packet *p)
{
	return p->net != URXE_NET_ROCEV1 && (p->traffic_class & ECN_MASK) == ECN_CE;
}

static bool find_gid(const struct urxe_dev *dev, const struct urxe_packet *p, uint8_t *index)
{

	for (uint8_t i = 0; i < dev->n_gids; i++) {
		const struct gid_entry *entry = &dev->gids[i];

		if (entry->valid && !entry->v1 && entry->vlan == packet_vlan(p) &&
		    gid_equal(&entry->gid, &p->dgid)) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* The datagram's sender becomes the receiver of the CNP. False for multicast, which gets no CNP. */
static bool set_datagram_path(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct cnp *cnp = &qp->cnp;

	cnp->path = (struct urxe_path){.dgid = p->sgid};
	memcpy(cnp->path.dmac, p->smac, sizeof(cnp->path.dmac));
	cnp->dest_qpn = p->deth.src_qpn;
	return find_gid(qp->dev, p, &cnp->path.sgid_index);
}

static bool set_cnp_path(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (qp->type == URXE_QPT_UD)
		return set_datagram_path(qp, p);
	qp->cnp.path = qp->attr.path;
	qp->cnp.dest_qpn = qp->attr.dest_qpn;
	return true;
}

/* Uses up one of the CNPs that the device may send in an interval; false: none is left. */
static bool spend_cnp_budget(struct urxe_dev *dev)
{
	struct cnp_budget *budget = &dev->cnp;

	if (dev->now - budget->since >= dev->attr.cnp_interval_ns)
		*budget = (struct cnp_budget){.since = dev->now};
	if (budget->spent == CNP_MAX_PER_INTERVAL) {
		dev_count(dev, URXE_EVENT_CNP_WITHHELD);
		return false;
	}
	budget->spent++;
	return true;
}

void cnp_mark(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct urxe_dev *dev = qp->dev;
	struct cnp *cnp = &qp->cnp;

	if (!is_ce_marked(p))
		return;
	qp_count(qp, URXE_EVENT_ECN_MARKED);
	if (dev->attr.congestion == URXE_CONGESTION_NONE || dev->now < cnp->next ||
	    URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP)
		return;
	if (!set_cnp_path(qp, p) || !spend_cnp_budget(dev))
		return;
	cnp->next = dev->now + dev->attr.cnp_interval_ns;
	cnp->path.traffic_class = CNP_TRAFFIC_CLASS;
	qp->cnp_due = true;
	qp_schedule(qp);
}

/* Sets the fields of A17.9.2, and UDP source port 0 as NICs do. */
static void put_fields(struct build *b)
{
	put16(b->bth - UDP_LEN, 0);
	b->bth[1] = 0;
	b->bth[4] = BTH_BECN;
	memset(b->payload, 0, CNP_LEN);
}

bool cnp_output(struct urxe_qp *qp, struct urxe_frame *frame)
{
	struct build_bth bth = {
		.opcode = URXE_SERVICE_CNP | URXE_OP_CNP,
		.pkey = URXE_DEFAULT_PKEY, /* as NICs do, whatever the partition */
		.dest_qpn = qp->cnp.dest_qpn,
	};
	struct header_template header;
	struct build b;

	qp->cnp_due = false;
	if (!build_template(&header, qp->dev, &qp->cnp.path, qp->qpn, qp->cnp.dest_qpn))
		return false;
	build_start(&b, frame, &header, &bth);
	put_fields(&b);
	build_finish(&b, qp, CNP_LEN);
	qp_count(qp, URXE_EVENT_CNP_SENT);
	return true;
}
