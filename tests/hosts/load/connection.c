/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "connection.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

/* Timeout of a round: many processes share a core on each side. */
#define STALL_SECONDS 60

/* Maximum time between a failed request and the notice that the peer has ended. */
#define FAILURE_SECONDS 20

enum kind { KIND_RECV, KIND_WRITE, KIND_SEND, KIND_READ, KIND_ADD };

/* --- Work requests */

static uint64_t wr_id(const struct connection *c, enum kind kind)
{
	return (uint64_t)c->generation << 32 | c->index << 8 | kind;
}

uint32_t connection_index(uint64_t id)
{
	return (uint32_t)id >> 8;
}

uint32_t connection_generation(uint64_t id)
{
	return (uint32_t)(id >> 32);
}

/* The round's message size: around the path MTU and its multiples. */
static uint32_t round_size(const struct connection *c)
{
	return (c->seed + (uint32_t)c->rounds * 769) % (CONNECTION_LARGEST + 1);
}

static uint32_t round_seed(const struct connection *c, bool from_active)
{
	return c->seed + (uint32_t)c->rounds * 2 + from_active;
}

static void post(struct connection *c, enum kind kind, void *at, uint32_t size,
		 enum ibv_wr_opcode opcode, uint64_t remote)
{
	struct ibv_sge sge = {(uintptr_t)at, size, c->dev->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id(c, kind),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = c->peer.place + remote;
		wr.wr.atomic.rkey = c->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = c->peer.place + remote;
		wr.wr.rdma.rkey = c->peer.rkey;
	}
	errno = ibv_post_send(c->qp, &wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
	c->awaited |= 1u << kind;
}

static void post_recv(struct connection *c)
{
	struct ibv_sge sge = {(uintptr_t)c->place->received, CONNECTION_LARGEST, c->dev->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(c, KIND_RECV), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	errno = ibv_post_recv(c->qp, &wr, &bad);
	if (errno)
		err(1, "ibv_post_recv");
}

/* --- Rounds */

/* WRITEs and SENDs this side's contents of the round. */
static void post_contents(struct connection *c)
{
	uint32_t size = round_size(c);

	pattern_fill(c->place->source, round_seed(c, c->active), size);
	post(c, KIND_WRITE, c->place->source, size, IBV_WR_RDMA_WRITE,
	     offsetof(struct place, written));
	post(c, KIND_SEND, c->place->source, size, IBV_WR_SEND, 0);
}

static void check_contents(const struct connection *c, const char *what, const uint8_t *at,
			   bool from_active)
{
	uint32_t size = round_size(c);
	uint32_t wrong = pattern_differs(at, round_seed(c, from_active), 0, size);

	if (wrong)
		errx(1, "%s: %u of %u bytes are wrong in round %" PRIu64, what, wrong, size,
		     c->rounds);
}

static void end_round(struct connection *c)
{
	c->rounds++;
	c->progress = time(NULL);
}

/* Checks the peer's message, and its WRITE, which arrived before the message. */
static void check_peer_contents(struct connection *c, uint32_t size)
{
	if (size != round_size(c))
		errx(1, "a message of %u bytes, not %u, in round %" PRIu64, size, round_size(c),
		     c->rounds);
	check_contents(c, "SEND", c->place->received, !c->active);
	check_contents(c, "WRITE", c->place->written, !c->active);
	post_recv(c);
	if (!c->active) {
		c->due = true;
		return;
	}
	post(c, KIND_READ, c->place->read, round_size(c), IBV_WR_RDMA_READ,
	     offsetof(struct place, written));
	post(c, KIND_ADD, &c->place->added, 8, IBV_WR_ATOMIC_FETCH_AND_ADD,
	     offsetof(struct place, counter));
}

/* The passive side answers when its previous requests are complete; their ACKs may arrive after the
 * peer's next message. */
static void answer_if_due(struct connection *c)
{
	if (!c->due || c->awaited)
		return;
	c->due = false;
	post_contents(c);
	end_round(c);
}

void connection_begin_round(struct connection *c)
{
	c->progress = time(NULL);
	c->awaited = 1u << KIND_RECV | 1u << KIND_READ | 1u << KIND_ADD;
	post_contents(c);
}

bool connection_idle(const struct connection *c)
{
	return c->introduced && !c->failure && !c->awaited;
}

void connection_complete(struct connection *c, const struct ibv_wc *wc)
{
	enum kind kind = wc->wr_id & 0xff;

	if (wc->status != IBV_WC_SUCCESS) {
		/* Requests after the first failed one are flushed. */
		if (!c->failure) {
			c->failure = ibv_wc_status_str(wc->status);
			c->progress = time(NULL);
		}
		return;
	}
	c->awaited &= ~(1u << kind);
	if (kind == KIND_RECV)
		check_peer_contents(c, wc->byte_len);
	else if (kind == KIND_READ)
		check_contents(c, "READ", c->place->read, true);
	else if (kind == KIND_ADD && c->place->added != c->rounds)
		errx(1, "the counter was %" PRIu64 " in round %" PRIu64, c->place->added,
		     c->rounds);
	if (!c->active)
		answer_if_due(c);
	else if (!c->awaited)
		end_round(c);
}

/* --- Opening and closing */

static void modify(struct connection *c, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(c->qp, attr, mask);
	if (errno)
		err(1, "ibv_modify_qp to state %d", attr->qp_state);
}

static void create_qp(struct connection *c)
{
	struct ibv_qp_init_attr init = {
		.send_cq = c->dev->cq,
		.recv_cq = c->dev->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = CONNECTION_DEPTH - 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	c->qp = ibv_create_qp(c->dev->pd, &init);
	if (!c->qp)
		err(1, "ibv_create_qp");
	modify(c, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	post_recv(c);
}

static void connect_qp(struct connection *c)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = c->dev->mtu,
		.dest_qp_num = c->peer.qpn,
		.rq_psn = c->peer.psn,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 12, /* 0.64 ms */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = c->peer.gid,
				    .sgid_index = c->dev->gid_index,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 18, /* 1.07 s: see STALL_SECONDS */
		.retry_cnt = 7,
		.rnr_retry = 7, /* for ever */
		.sq_psn = c->psn,
		.max_rd_atomic = 2,
	};

	modify(c, &rtr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(c, &rts,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static void introduce(struct connection *c)
{
	struct introduction self = {
		.gid = c->dev->gid,
		.place = (uintptr_t)c->place,
		.rkey = c->dev->mr->rkey,
		.qpn = c->qp->qp_num,
		.psn = c->psn,
		.seed = c->seed,
	};

	/* The next receive reports a peer that has ended. */
	if (send(c->fd, &self, sizeof(self), MSG_NOSIGNAL) != sizeof(self) && errno != EPIPE &&
	    errno != ECONNRESET)
		err(1, "introduction");
}

void connection_open(struct connection *c, int fd, bool active)
{
	c->generation++;
	c->fd = fd;
	c->active = active;
	c->introduced = false;
	c->seed = (uint32_t)getpid() * 31 + c->generation * 1009 + c->index * 65537;
	/* Far from the PSNs of earlier QPs with the same number (docs/recovery.md). */
	c->psn = (c->seed * 2654435761u) >> 8;
	c->rounds = 0;
	c->awaited = 0;
	c->due = false;
	c->failure = NULL;
	c->progress = time(NULL);
	c->place->counter = 0;
	create_qp(c);
	if (active)
		introduce(c);
}

void connection_close(struct connection *c)
{
	errno = ibv_destroy_qp(c->qp);
	if (errno)
		err(1, "ibv_destroy_qp");
	close(c->fd);
	c->qp = NULL;
	c->introduced = false;
}

bool connection_hear(struct connection *c)
{
	struct introduction peer;
	ssize_t n = recv(c->fd, &peer, sizeof(peer), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n != sizeof(peer) || c->introduced)
		return false;
	c->peer = peer;
	c->introduced = true;
	connect_qp(c);
	if (!c->active) {
		c->seed = peer.seed;
		introduce(c);
	}
	return true;
}

void connection_check(const struct connection *c)
{
	time_t since = time(NULL) - c->progress;

	if (c->failure && since > FAILURE_SECONDS)
		errx(1, "'%s' in round %" PRIu64 ", but the other side lives", c->failure,
		     c->rounds);
	if (since > STALL_SECONDS && (c->awaited || !c->introduced))
		errx(1, "no progress for %d s in round %" PRIu64 ", but the other side lives",
		     STALL_SECONDS, c->rounds);
}
