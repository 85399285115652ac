/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/qp1/gsi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/switch/classify.h"

#define PD        1
#define BUFFER    512 /* bytes; more than GRH and MAD, to notice messages that are too long */
#define SENDS     64
#define FRAME     (HOST_MTU_LEAST + ETHER_HDR_LEN + ETHER_VLAN_LEN)
#define NEXT_V1   0x1b /* GRH's NxtHdr (IBA 8.3.7): no UDP header follows */
#define HOP_LIMIT 64

/* --- The engine */

static bool store_completion(void *ctx, const struct urxe_wc *wc)
{
	struct gsi *g = ctx;

	if (wc->opcode == URXE_WC_RECV && g->n_done < GSI_RECVS)
		g->done[g->n_done++] = *wc;
	return true;
}

static void ignore_comp_event(void *ctx)
{
	(void)ctx;
}

static void ignore_async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	(void)dev_ctx;
	(void)event;
	(void)obj_ctx;
}

static const struct urxe_ops engine_ops = {.complete = store_completion,
					   .comp_event = ignore_comp_event,
					   .refill = ignore_comp_event,
					   .async_event = ignore_async_event};

static int post_recv(struct gsi *g, uint64_t i)
{
	const struct urxe_seg seg = {
		.addr = i * BUFFER, .length = BUFFER, .lkey = urxe_mr_key(g->mr)};
	const struct urxe_recv_wr wr = {.wr_id = i, .n_segs = 1, .segs = &seg};

	return urxe_post_recv(urxe_qp_rq(g->qp), &wr);
}

static int register_buffers(struct gsi *g)
{
	const struct urxe_extent extent = {g->buffers, GSI_RECVS * BUFFER};
	const struct urxe_mr_attr attr = {.pd = PD,
					  .access = URXE_ACCESS_LOCAL_WRITE,
					  .length = extent.length,
					  .extents = &extent,
					  .n_extents = 1};

	return urxe_mr_reg(g->dev, &attr, &g->mr);
}

static int create_qp(struct gsi *g)
{
	const struct urxe_qp_init init = {.type = URXE_QPT_UD,
					  .pd = PD,
					  .qpn = URXE_QPN_GSI,
					  .send_cq = g->cq,
					  .recv_cq = g->cq,
					  .cap = {.max_send_wr = SENDS,
						  .max_recv_wr = GSI_RECVS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline = CM_MAD_LEN}};

	return urxe_qp_create(g->dev, &init, &g->qp);
}

static int bring_up_qp(struct gsi *g)
{
	struct urxe_qp_attr attr = {.state = URXE_QPS_INIT, .port = 1, .qkey = CM_QKEY};
	int rc = urxe_qp_modify(g->qp, 0, &attr,
				URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY);

	attr.state = URXE_QPS_RTR;
	if (!rc)
		rc = urxe_qp_modify(g->qp, 0, &attr, URXE_QP_STATE);
	attr.state = URXE_QPS_RTS;
	if (!rc)
		rc = urxe_qp_modify(g->qp, 0, &attr, URXE_QP_STATE | URXE_QP_SQ_PSN);
	for (uint64_t i = 0; i < GSI_RECVS && !rc; i++)
		rc = post_recv(g, i);
	return rc;
}

static void set_pkeys(struct gsi *g)
{
	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		urxe_pkey_set(g->dev, i, g->host->pkeys[i]);
}

int gsi_open(struct gsi *g, const struct host *host, struct neigh *neigh, const struct gsi_ops *ops,
	     void *ctx)
{
	struct urxe_dev_attr attr = {.ctx = g,
				     .ops = &engine_ops,
				     .mtu = HOST_MTU_LEAST,
				     .qpn_first = URXE_QPN_GSI,
				     .qpn_count = 1};
	int rc;

	memset(g, 0, sizeof(*g));
	fair_queue_init(&g->received);
	fair_queue_init(&g->unresolved);
	fair_queue_init(&g->outgoing);
	g->host = host;
	g->neigh = neigh;
	g->ops = ops;
	g->ctx = ctx;
	memcpy(attr.mac, host->mac, sizeof(attr.mac));
	g->buffers = calloc(GSI_RECVS, BUFFER);
	rc = g->buffers ? urxe_dev_create(&attr, &g->dev) : -ENOMEM;
	if (!rc)
		rc = urxe_cq_create(g->dev, g, &g->cq);
	if (!rc)
		rc = register_buffers(g);
	if (!rc)
		rc = create_qp(g);
	if (!rc)
		rc = bring_up_qp(g);
	if (rc) {
		gsi_close(g);
		return rc;
	}
	set_pkeys(g);
	gsi_host_changed(g);
	return 0;
}

void gsi_close(struct gsi *g)
{
	gsi_send_close(g);
	if (g->dev)
		urxe_dev_destroy(g->dev);
	free(g->buffers);
	memset(g, 0, sizeof(*g));
}

void gsi_host_changed(struct gsi *g)
{
	struct vnic_attach_port port;
	struct urxe_gid gid;

	host_fill_port(g->host, &port);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++) {
		memcpy(gid.raw, port.gids[i].raw, sizeof(gid.raw));
		urxe_gid_set(g->dev, i, port.gids[i].valid ? &gid : NULL, port.gids[i].v1);
		if (port.gids[i].valid)
			urxe_gid_set_vlan(g->dev, i, port.gids[i].vlan);
	}
}

/* --- Receiving */

/*
 * Reads addresses, traffic class and hop limit of a received MAD from its GRH into the path back to
 * its sender. For an IPv4 packet, the last 20 of the GRH's 40 bytes are the IPv4 header (IBA annex
 * A17).
 */
static void read_grh(const uint8_t *grh, struct cm_path *path, bool *v1)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *ip = grh + URXE_GRH_LEN - IPV4_HDR_LEN;
	bool v6 = grh[0] >> 4 == 6;

	*v1 = v6 && grh[6] == NEXT_V1;
	path->traffic_class = v6 ? (uint8_t)(grh[0] << 4 | grh[1] >> 4) : ip[1];
	path->hop_limit = v6 ? grh[7] : ip[8];
	if (v6) {
		memcpy(path->dgid, grh + 8, 16);
		memcpy(path->sgid, grh + 24, 16);
		return;
	}
	memcpy(path->dgid, mapped, sizeof(mapped));
	memcpy(path->sgid, mapped, sizeof(mapped));
	memcpy(path->dgid + sizeof(mapped), ip + 12, 4);
	memcpy(path->sgid + sizeof(mapped), ip + 16, 4);
}

/* Makes the path back to the sender of a frame that came from that VLAN. Returns -EADDRNOTAVAIL if
 * the host no longer has the address to which the frame was sent. */
static int make_reply_path(const struct gsi *g, const uint8_t *grh, const struct urxe_wc *wc,
			   uint16_t vlan, struct cm_path *path)
{
	const struct host_address *own;
	bool v1;

	*path = (struct cm_path){.pkey = g->host->pkeys[wc->pkey_index], .sl = wc->sl};
	read_grh(grh, path, &v1);
	own = host_find_in_vlan(g->host, path->sgid, vlan);
	if (!own)
		own = host_find_address(g->host, path->sgid);
	if (!own)
		return -EADDRNOTAVAIL;
	path->hop_limit = HOP_LIMIT;
	path->sgid_index = (uint8_t)(own - g->host->addresses + (v1 ? HOST_ADDRESSES : 0));
	return 0;
}

/* Returns true if the frame is from this host, or from a station whose MAC address resolution has
 * confirmed. */
static bool is_known_sender(const struct gsi *g, uint64_t now, const struct frame_class *s)
{
	if (ether_same(s->smac, g->host->mac))
		return host_find_address(g->host, s->sip);
	return neigh_knows(g->neigh, now, s->sip, s->vlan, s->smac);
}

static void deliver_mad(struct gsi *g, uint64_t now, const struct urxe_wc *wc,
			const struct frame_class *s)
{
	uint8_t *buffer = g->buffers + wc->wr_id * BUFFER;
	struct cm_path path;

	if (wc->status || wc->byte_len != URXE_GRH_LEN + CM_MAD_LEN)
		g->drops[GSI_DROP_LENGTH]++;
	else if (make_reply_path(g, buffer, wc, s->vlan, &path))
		g->drops[GSI_DROP_NO_ADDRESS]++;
	else {
		path.has_mac = true;
		memcpy(path.mac, s->smac, sizeof(path.mac));
		path.known = is_known_sender(g, now, s);
		path.local = ether_same(s->smac, g->host->mac);
		g->ops->input(g->ctx, now, &path, buffer + URXE_GRH_LEN);
	}
	post_recv(g, wc->wr_id);
}

/* --- The queues */

void gsi_input(struct gsi *g, uint64_t now, const uint8_t *frame, uint32_t len)
{
	uint8_t key[FAIR_QUEUE_KEY] = {0};
	struct frame_class s;
	bool known;

	classify_frame(&s, frame, len);
	if (s.kind != FRAME_ROCE || len > FAIR_QUEUE_ROOM) {
		g->drops[GSI_DROP_LENGTH]++;
		return;
	}
	known = is_known_sender(g, now, &s);
	/* A sender that uses a known address with another MAC gets a flow of its own. */
	memcpy(key, s.sip, sizeof(s.sip));
	key[sizeof(s.sip)] = known;
	if (!fair_queue_put(&g->received, key, known, frame, len))
		g->drops[GSI_DROP_FLOOD]++;
}

static void receive_frame(struct gsi *g, uint64_t now, uint8_t *frame, uint32_t len)
{
	const struct urxe_frame f = {.data = frame, .len = len, .room = len};
	struct frame_class s;

	g->n_done = 0;
	urxe_input(g->dev, now, &f, 1);
	classify_frame(&s, frame, len);
	for (uint32_t i = 0; i < g->n_done; i++)
		deliver_mad(g, now, &g->done[i], &s);
}

static bool send_frames(struct gsi *g, uint64_t now)
{
	uint8_t data[GSI_BURST][FRAME];
	struct urxe_frame frames[GSI_BURST];
	uint32_t i, n;

	for (i = 0; i < GSI_BURST; i++)
		frames[i] = (struct urxe_frame){.data = data[i], .room = FRAME};
	n = urxe_output(g->dev, now, frames, GSI_BURST);
	for (i = 0; i < n; i++)
		g->ops->send(g->ctx, frames[i].data, frames[i].len);
	return n > 0;
}

static void send_outgoing(struct gsi *g, uint64_t now)
{
	while (g->outgoing.n && g->ops->has_room(g->ctx) && gsi_post_outgoing(g))
		while (send_frames(g, now))
			;
}

void gsi_run(struct gsi *g, uint64_t now)
{
	uint8_t frame[FAIR_QUEUE_ROOM] __attribute__((aligned(8)));
	uint32_t len, n = 0;

	/* Repeats, because ops->send passes frames to this host to gsi_input, which adds them to
	 * `received`. */
	do {
		while ((len = fair_queue_take(&g->received, frame))) {
			receive_frame(g, now, frame, len);
			if (++n % GSI_BURST == 0)
				send_outgoing(g, now);
		}
		send_outgoing(g, now);
	} while (g->received.n);
}
