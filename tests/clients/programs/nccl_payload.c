/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * nccl_payload GID_INDEX [SERVER]: uses libibverbs as NCCL's network plugin does, without a GPU.
 * The library is loaded by dlopen and dlvsym. Each thread has connections of several queue pairs in
 * both directions. The receiver writes the address of a buffer to the sender's memory, which the
 * sender polls. The sender divides a message among its queue pairs, as a WRITE and a WRITE with
 * immediate data each. The receiver then reads a byte of its buffer by a queue pair that is
 * connected to itself, and compares every byte.
 */
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "exchange.h"
#include "pattern.h"

#define PORT     "18517"
#define THREADS  8
#define QPS      4 /* of a connection in one direction */
#define SLOTS    4 /* messages under way in one direction */
#define MESSAGES 30
#define LARGEST  (1u << 20)
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_RELAXED_ORDERING)

/* --- The functions, by the versions that NCCL asks for. */

static struct {
	int (*fork_init)(void);
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*query_device)(struct ibv_context *, struct ibv_device_attr *);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
	int (*get_async_event)(struct ibv_context *, struct ibv_async_event *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*destroy_qp)(struct ibv_qp *);
	int (*query_ece)(struct ibv_qp *, struct ibv_ece *);
	const char *(*event_type_str)(enum ibv_event_type);
} verbs;

static const struct {
	const char *name, *version;
	void *to;
} symbols[] = {
	{"ibv_fork_init", "IBVERBS_1.1", &verbs.fork_init},
	{"ibv_get_device_list", "IBVERBS_1.1", &verbs.get_device_list},
	{"ibv_free_device_list", "IBVERBS_1.1", &verbs.free_device_list},
	{"ibv_get_device_name", "IBVERBS_1.1", &verbs.get_device_name},
	{"ibv_open_device", "IBVERBS_1.1", &verbs.open_device},
	{"ibv_query_device", "IBVERBS_1.1", &verbs.query_device},
	{"ibv_query_port", "IBVERBS_1.1", &verbs.query_port},
	{"ibv_query_gid", "IBVERBS_1.1", &verbs.query_gid},
	{"ibv_get_async_event", "IBVERBS_1.1", &verbs.get_async_event},
	{"ibv_alloc_pd", "IBVERBS_1.1", &verbs.alloc_pd},
	{"ibv_dealloc_pd", "IBVERBS_1.1", &verbs.dealloc_pd},
	{"ibv_reg_mr_iova2", "IBVERBS_1.8", &verbs.reg_mr_iova2},
	{"ibv_reg_dmabuf_mr", "IBVERBS_1.12", &verbs.reg_dmabuf_mr},
	{"ibv_dereg_mr", "IBVERBS_1.1", &verbs.dereg_mr},
	{"ibv_create_cq", "IBVERBS_1.1", &verbs.create_cq},
	{"ibv_destroy_cq", "IBVERBS_1.1", &verbs.destroy_cq},
	{"ibv_create_qp", "IBVERBS_1.1", &verbs.create_qp},
	{"ibv_modify_qp", "IBVERBS_1.1", &verbs.modify_qp},
	{"ibv_destroy_qp", "IBVERBS_1.1", &verbs.destroy_qp},
	{"ibv_query_ece", "IBVERBS_1.10", &verbs.query_ece},
	{"ibv_event_type_str", "IBVERBS_1.1", &verbs.event_type_str},
};

static void load(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);

	if (!library)
		errx(1, "%s", dlerror());
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlvsym(library, symbols[i].name, symbols[i].version);

		if (!symbol)
			errx(1, "%s", dlerror());
		memcpy(symbols[i].to, &symbol, sizeof(symbol));
	}
}

/* --- The device. */

static struct ibv_context *context;
static union ibv_gid gid;
static uint8_t gid_index;

static void *watch_events(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	while (!verbs.get_async_event(context, &event))
		errx(1, "event: %s", verbs.event_type_str(event.event_type));
	return NULL;
}

/* NCCL looks for the RoCE version of each GID there. */
static void check_gid_type(void)
{
	char path[PATH_MAX], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/urxe0/ports/1/gid_attrs/types/%u",
		 gid_index);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file) || strcmp(text, "RoCE v2\n"))
		errx(1, "%s: '%s'", path, text);
	fclose(file);
}

static void open_device(void)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port = {0};
	pthread_t thread;
	int n;
	struct ibv_device **list;

	if (verbs.fork_init())
		errx(1, "ibv_fork_init");
	list = verbs.get_device_list(&n);
	for (int i = 0; list && i < n && !context; i++)
		if (!strcmp(verbs.get_device_name(list[i]), "urxe0"))
			context = verbs.open_device(list[i]);
	if (!context)
		errx(1, "no device urxe0");
	verbs.free_device_list(list);
	if (verbs.query_device(context, &device) || verbs.query_port(context, 1, &port) ||
	    verbs.query_gid(context, 1, gid_index, &gid))
		errx(1, "a query failed");
	if (port.state != IBV_PORT_ACTIVE || port.link_layer != IBV_LINK_LAYER_ETHERNET)
		errx(1, "the port is not an active Ethernet port");
	check_gid_type();
	/* It still runs when main returns. */
	if (pthread_create(&thread, NULL, watch_events, NULL) || pthread_detach(thread))
		errx(1, "pthread_create");
}

/* --- Connections. */

/* An address of the receiver, for message `sequence`, which counts from 1. */
struct offer {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
	uint64_t sequence;
};

/* One direction of a thread's connection. */
struct flow {
	struct ibv_qp *qps[QPS];
	struct ibv_cq *cq;
	uint32_t posted, done; /* messages */
	uint32_t completions;  /* of message `done`: each queue pair has one */
};

struct channel {
	uint32_t number;
	struct ibv_pd *pd;
	struct flow out, in;
	struct ibv_qp *loop; /* connected to itself */
	struct ibv_cq *loop_cq;
	uint8_t *memory; /* SLOTS buffers to send, then SLOTS to receive */
	struct ibv_mr *memory_mr;
	struct offer *offers; /* SLOTS that the peer writes, then SLOTS for the peer */
	struct ibv_mr *offers_mr;
	uint8_t byte;
	struct ibv_mr *byte_mr;
	uint64_t peer_offers;
	uint32_t peer_offers_rkey;
};

/* What the sides tell each other. */
struct card {
	union ibv_gid gid;
	uint32_t out[QPS], in[QPS];
	uint64_t offers;
	uint32_t rkey;
	uint32_t seed;
};

static struct channel channels[THREADS];
static struct card own[THREADS], peers[THREADS];

static uint32_t size_of(uint32_t message)
{
	return message % 5 == 4 ? LARGEST - message : (message + 1) * 997;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *memory, size_t size)
{
	struct ibv_mr *mr = verbs.reg_mr_iova2(pd, memory, size, (uintptr_t)memory, ACCESS);

	if (!mr)
		err(1, "ibv_reg_mr_iova2");
	return mr;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4 * SLOTS,
			.max_recv_wr = 2 * SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizeof(struct offer)},
	};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp *qp = verbs.create_qp(pd, &attr);

	if (!qp)
		err(1, "ibv_create_qp");
	if (verbs.modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		errx(1, "ibv_modify_qp to INIT");
	return qp;
}

static struct ibv_cq *create_cq(void)
{
	struct ibv_cq *cq = verbs.create_cq(context, 8 * SLOTS * QPS, NULL, NULL, 0);

	if (!cq)
		err(1, "ibv_create_cq");
	return cq;
}

/* NCCL asks so whether the device has DMA-BUF: EBADF would mean that it has. */
static void probe_dmabuf(struct ibv_pd *pd)
{
	if (verbs.reg_dmabuf_mr(pd, 0, 0, 0, -1, 0))
		errx(1, "a region of descriptor -1");
	if (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != EBADF)
		err(1, "ibv_reg_dmabuf_mr");
}

static void *create_channel(void *arg)
{
	struct channel *c = arg;
	struct card *card = &own[c->number];
	struct ibv_ece ece;

	c->pd = verbs.alloc_pd(context);
	c->memory = calloc(2 * SLOTS, LARGEST);
	c->offers = calloc(2 * SLOTS, sizeof(*c->offers));
	if (!c->pd || !c->memory || !c->offers)
		errx(1, "no memory");
	probe_dmabuf(c->pd);
	c->memory_mr = reg(c->pd, c->memory, 2ull * SLOTS * LARGEST);
	c->offers_mr = reg(c->pd, c->offers, 2 * SLOTS * sizeof(*c->offers));
	c->byte_mr = reg(c->pd, &c->byte, 1);
	c->out.cq = create_cq();
	c->in.cq = create_cq();
	c->loop_cq = create_cq();
	c->loop = create_qp(c->pd, c->loop_cq);
	*card = (struct card){.gid = gid,
			      .offers = (uintptr_t)c->offers,
			      .rkey = c->offers_mr->rkey,
			      .seed = c->loop->qp_num};
	for (int i = 0; i < QPS; i++) {
		c->out.qps[i] = create_qp(c->pd, c->out.cq);
		c->in.qps[i] = create_qp(c->pd, c->in.cq);
		card->out[i] = c->out.qps[i]->qp_num;
		card->in[i] = c->in.qps[i]->qp_num;
	}
	/* The device has no such options; NCCL goes on without. */
	if (!verbs.query_ece(c->loop, &ece) && ece.vendor_id)
		errx(1, "options of vendor %#x", ece.vendor_id);
	return NULL;
}

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *to, uint32_t qpn)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *to, .sgid_index = gid_index, .hop_limit = 255}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 20, /* NCCL_IB_TIMEOUT: 4.3 s */
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	if (verbs.modify_qp(qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) ||
	    verbs.modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		errx(1, "cannot connect a queue pair");
}

static void *connect_channel(void *arg)
{
	struct channel *c = arg;
	const struct card *peer = &peers[c->number];

	for (int i = 0; i < QPS; i++) {
		connect_qp(c->out.qps[i], &peer->gid, peer->in[i]);
		connect_qp(c->in.qps[i], &peer->gid, peer->out[i]);
	}
	connect_qp(c->loop, &gid, c->loop->qp_num);
	c->peer_offers = peer->offers;
	c->peer_offers_rkey = peer->rkey;
	return NULL;
}

/* --- Messages. */

static void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (qp->context->ops.post_send(qp, wr, &bad))
		errx(1, "ibv_post_send");
}

static int poll_cq(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = cq->context->ops.poll_cq(cq, 1, wc);

	if (n < 0 || (n && wc->status))
		errx(1, "completion: status %d", n < 0 ? n : (int)wc->status);
	return n;
}

static uint8_t *buffer(const struct channel *c, bool in, uint32_t message)
{
	return c->memory + (size_t)(message % SLOTS + (in ? SLOTS : 0)) * LARGEST;
}

/* Offers a buffer to the peer, by an inline WRITE. */
static void offer(struct channel *c)
{
	uint32_t message = c->in.posted++, slot = message % SLOTS;
	struct offer *mine = &c->offers[SLOTS + slot];
	struct ibv_sge sge = {(uintptr_t)mine, sizeof(*mine), c->offers_mr->lkey};
	struct ibv_recv_wr *bad, receive = {.wr_id = message};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		/* One of them in each queue pair's length of the send queue frees the others. */
		.send_flags = IBV_SEND_INLINE | (slot ? 0 : IBV_SEND_SIGNALED),
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {c->peer_offers + slot * sizeof(*mine), c->peer_offers_rkey},
	};

	for (int i = 0; i < QPS; i++)
		if (context->ops.post_recv(c->in.qps[i], &receive, &bad))
			errx(1, "ibv_post_recv");
	memset(buffer(c, true, message), 0, size_of(message));
	*mine = (struct offer){(uintptr_t)buffer(c, true, message), c->memory_mr->rkey,
			       size_of(message), message + 1};
	post_send(c->in.qps[0], &wr);
}

/* Sends the next message if the peer has offered a buffer. */
static void send_message(struct channel *c)
{
	uint32_t message = c->out.posted, size = size_of(message), part = size / QPS;
	const volatile struct offer *to = &c->offers[message % SLOTS];
	uint8_t *data = buffer(c, false, message);

	if (message == MESSAGES || message - c->out.done == SLOTS || to->sequence != message + 1)
		return;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (to->size != size)
		errx(1, "an offer of %u bytes", to->size);
	pattern_fill(data, own[c->number].seed + message, size);
	for (uint32_t i = 0; i < QPS; i++) {
		uint32_t at = i * part, end = i == QPS - 1 ? size : at + part;
		struct ibv_sge sge = {(uintptr_t)data + at, end - at, c->memory_mr->lkey};
		struct ibv_send_wr last = {.wr_id = message,
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = message};
		struct ibv_send_wr wr = {.next = &last,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .wr.rdma = {to->addr + at, to->rkey}};

		post_send(c->out.qps[i], &wr);
	}
	c->out.posted++;
}

static void reap_sent(struct channel *c)
{
	struct ibv_wc wc;

	while (poll_cq(c->out.cq, &wc))
		if (++c->out.completions % QPS == 0)
			c->out.done++;
}

/* As NCCL, whose READ makes a GPU see what was written before. */
static void flush(struct channel *c, uint8_t *data)
{
	struct ibv_sge sge = {(uintptr_t)&c->byte, 1, c->byte_mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {(uintptr_t)data, c->memory_mr->rkey}};
	struct ibv_wc wc;

	post_send(c->loop, &wr);
	while (!poll_cq(c->loop_cq, &wc))
		;
	if (c->byte != data[0])
		errx(1, "the READ to itself brought %u, not %u", c->byte, data[0]);
}

static void receive(struct channel *c)
{
	uint32_t message = c->in.done;
	uint8_t *data = buffer(c, true, message);

	flush(c, data);
	if (pattern_differs(data, peers[c->number].seed + message, 0, size_of(message)))
		errx(1, "thread %u, message %u: wrong contents", c->number, message);
	c->in.done++;
}

/* Queue pairs overtake each other, so parts of later messages may come before the rest. */
static void reap_received(struct channel *c, uint32_t parts[MESSAGES])
{
	struct ibv_wc wc;

	while (poll_cq(c->in.cq, &wc)) {
		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			continue;
		if (wc.imm_data >= MESSAGES)
			errx(1, "immediate data %u", wc.imm_data);
		parts[wc.imm_data]++;
	}
	while (c->in.done < MESSAGES && parts[c->in.done] == QPS)
		receive(c);
}

static void *run_channel(void *arg)
{
	struct channel *c = arg;
	uint32_t parts[MESSAGES] = {0};

	while (c->out.done < MESSAGES || c->in.done < MESSAGES) {
		while (c->in.posted < MESSAGES && c->in.posted - c->in.done < SLOTS)
			offer(c);
		send_message(c);
		reap_sent(c);
		reap_received(c, parts);
	}
	return NULL;
}

static void *destroy_channel(void *arg)
{
	struct channel *c = arg;
	bool failed = verbs.destroy_qp(c->loop);

	for (int i = 0; i < QPS; i++)
		failed |= verbs.destroy_qp(c->out.qps[i]) || verbs.destroy_qp(c->in.qps[i]);
	failed |= verbs.destroy_cq(c->out.cq) || verbs.destroy_cq(c->in.cq) ||
		  verbs.destroy_cq(c->loop_cq) || verbs.dereg_mr(c->memory_mr) ||
		  verbs.dereg_mr(c->offers_mr) || verbs.dereg_mr(c->byte_mr) ||
		  verbs.dealloc_pd(c->pd);
	if (failed)
		errx(1, "cannot destroy an object");
	free(c->memory);
	free(c->offers);
	return NULL;
}

/* --- */

static void in_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, function, &channels[i]))
			errx(1, "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Waits until the peer has come here. */
static void meet(int fd)
{
	exchange_send(fd, "", 1);
	exchange_recv(fd, &(char){0}, 1);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2 || argc > 3)
		errx(1, "usage: nccl_payload GID_INDEX [SERVER]");
	gid_index = (uint8_t)atoi(argv[1]);
	load();
	open_device();
	for (uint32_t i = 0; i < THREADS; i++)
		channels[i].number = i;
	in_threads(create_channel);
	fd = exchange_open(argv[2], PORT);
	exchange_send(fd, own, sizeof(own));
	exchange_recv(fd, peers, sizeof(peers));
	in_threads(connect_channel);
	meet(fd);
	in_threads(run_channel);
	meet(fd);
	in_threads(destroy_channel);
	puts("all is as it was sent");
	return 0;
}
