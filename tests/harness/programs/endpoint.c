/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "endpoint.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

/* Longer than the last retry of a request takes with the default timeout. */
#define COMPLETION_SECONDS 120

/* The addresses and keys that the sides exchange over TCP. */
struct introduction {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = NULL;
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "cannot open device %s", name);
	ibv_free_device_list(list);
	return context;
}

static void create_srq(struct endpoint *ep)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = ENDPOINT_DEPTH, .max_sge = 2}};

	ep->srq = ibv_create_srq(ep->pd, &init);
	if (!ep->srq)
		err(1, "ibv_create_srq");
}

static void create_objects(struct endpoint *ep, const struct endpoint_attr *attr)
{
	uint64_t size = attr->size + ENDPOINT_GRH;
	struct ibv_qp_init_attr init = {
		.qp_type = attr->type,
		.cap = {.max_send_wr = ENDPOINT_DEPTH,
			.max_recv_wr = ENDPOINT_DEPTH,
			.max_send_sge = ENDPOINT_SGES,
			.max_recv_sge = 2,
			.max_inline_data = ENDPOINT_INLINE},
	};

	ep->pd = ibv_alloc_pd(ep->context);
	if (!ep->pd)
		err(1, "ibv_alloc_pd");
	ep->memory = aligned_alloc(4096, (size + 4095) & ~4095ull);
	if (!ep->memory)
		err(1, "memory");
	ep->mr = ibv_reg_mr(ep->pd, ep->memory, size,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				    IBV_ACCESS_MW_BIND);
	if (!ep->mr)
		err(1, "ibv_reg_mr");
	ep->channel = attr->events ? ibv_create_comp_channel(ep->context) : NULL;
	if (attr->events && !ep->channel)
		err(1, "ibv_create_comp_channel");
	ep->cq = ibv_create_cq(ep->context, 2 * ENDPOINT_DEPTH, NULL, ep->channel, 0);
	if (!ep->cq)
		err(1, "ibv_create_cq");
	if (attr->srq)
		create_srq(ep);
	init.srq = ep->srq;
	init.send_cq = init.recv_cq = ep->cq;
	ep->qp = ibv_create_qp(ep->pd, &init);
	if (!ep->qp)
		err(1, "ibv_create_qp");
}

static void modify(struct endpoint *ep, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(ep->qp, attr, mask);
	if (errno)
		err(1, "ibv_modify_qp to state %d", attr->qp_state);
}

static void to_init(struct endpoint *ep, const struct endpoint_attr *attr)
{
	bool datagrams = attr->type == IBV_QPT_UD;
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = ENDPOINT_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (attr->type == IBV_QPT_RC)
		init.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	modify(ep, &init,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* The attributes that RC requires and UC does not. */
#define RTR_OF_RC (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_OF_RC (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static void to_ready(struct endpoint *ep, const struct endpoint_attr *attr,
		     const struct introduction *self, const struct introduction *peer)
{
	bool reliable = attr->type == IBV_QPT_RC;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = attr->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, /* 0.64 ms */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = attr->gid_index,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		/* 1 s: on a busy machine the peer may not run for a second. */
		.timeout = attr->timeout ? attr->timeout : 18,
		.retry_cnt = 7,
		.rnr_retry = 7, /* for ever */
		.sq_psn = self->psn,
		.max_rd_atomic = 4,
	};
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (attr->type == IBV_QPT_UD) {
		connected = 0;
		ep->ah = ibv_create_ah(ep->pd, &rtr.ah_attr);
		if (!ep->ah)
			err(1, "ibv_create_ah");
	}
	modify(ep, &rtr, IBV_QP_STATE | connected | (reliable ? RTR_OF_RC : 0));
	modify(ep, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? RTS_OF_RC : 0));
}

/* A packet before the peer is in RTR is lost, and the retries may run out on a busy machine. */
static void await_peer(int fd)
{
	char ready = 1;

	exchange_send(fd, &ready, sizeof(ready));
	exchange_recv(fd, &ready, sizeof(ready));
}

void endpoint_open(struct endpoint *ep, const struct endpoint_attr *attr, int fd)
{
	struct introduction self = {0}, peer;

	ep->context = open_device(attr->device);
	create_objects(ep, attr);
	if (ibv_query_gid(ep->context, 1, attr->gid_index, &self.gid))
		errx(1, "no GID at index %u", attr->gid_index);
	self.addr = (uintptr_t)ep->memory;
	self.rkey = ep->mr->rkey;
	self.qpn = ep->qp->qp_num;
	/* Close to the end of the 24 bits, so that the PSN wraps in every run. */
	self.psn = 0xffff00 + (self.qpn & 0x7f);
	to_init(ep, attr);
	exchange_send(fd, &self, sizeof(self));
	exchange_recv(fd, &peer, sizeof(peer));
	to_ready(ep, attr, &self, &peer);
	await_peer(fd);
	ep->remote_addr = peer.addr;
	ep->rkey = peer.rkey;
	ep->remote_qpn = peer.qpn;
}

void endpoint_close(struct endpoint *ep)
{
	if (ibv_destroy_qp(ep->qp) || ibv_destroy_cq(ep->cq) ||
	    (ep->srq && ibv_destroy_srq(ep->srq)) || (ep->ah && ibv_destroy_ah(ep->ah)) ||
	    (ep->channel && ibv_destroy_comp_channel(ep->channel)) || ibv_dereg_mr(ep->mr) ||
	    ibv_dealloc_pd(ep->pd) || ibv_close_device(ep->context))
		errx(1, "cannot destroy an object");
	free(ep->memory);
}

void endpoint_post_recv(struct endpoint *ep, uint64_t wr_id, uint32_t at, uint32_t size)
{
	uint8_t *grh = ep->memory + ep->mr->length - ENDPOINT_GRH;
	struct ibv_sge sges[] = {
		{(uintptr_t)grh, ENDPOINT_GRH, ep->mr->lkey},
		{(uintptr_t)ep->memory + at, size, ep->mr->lkey},
	};
	bool datagram = ep->qp->qp_type == IBV_QPT_UD;
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = sges + !datagram,
					 .num_sge = datagram + (size > 0),
				 };

	errno = ep->srq ? ibv_post_srq_recv(ep->srq, &wr, &bad) : ibv_post_recv(ep->qp, &wr, &bad);
	if (errno)
		err(1, "cannot post a receive");
}

void endpoint_post_send(struct endpoint *ep)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	errno = ibv_post_send(ep->qp, &wr, &bad);
	if (errno)
		err(1, "cannot post a send");
}

void endpoint_await_event(struct endpoint *ep)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(ep->channel, &cq, &context))
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

struct ibv_wc endpoint_completion(struct endpoint *ep)
{
	time_t end = time(NULL) + COMPLETION_SECONDS;
	struct ibv_wc wc;
	bool armed = false;
	int n;

	while (!(n = ibv_poll_cq(ep->cq, 1, &wc))) {
		if (time(NULL) > end)
			errx(1, "no completion in %d s", COMPLETION_SECONDS);
		if (!ep->channel)
			continue;
		/* A completion may come between the poll and the arming: poll once more. */
		if (armed)
			endpoint_await_event(ep);
		else if (ibv_req_notify_cq(ep->cq, 0))
			errx(1, "ibv_req_notify_cq");
		armed = !armed;
	}
	if (n < 0)
		errx(1, "ibv_poll_cq");
	return wc;
}

struct ibv_wc endpoint_success(struct endpoint *ep)
{
	struct ibv_wc wc = endpoint_completion(ep);

	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "completion: %s", ibv_wc_status_str(wc.status));
	return wc;
}
