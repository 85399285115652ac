/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "workload.h"

#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

/* Addresses outside of the arena. */
#define FREED_ADDRESS 0x300000000000
#define HOLED_ADDRESS 0x300000010000

/* What a connection registers. */
struct region {
	uint64_t counter; /* of the peer's fetch-and-adds */
	uint64_t results[DEPTH];
	uint8_t send[DEPTH][SEND_MAX];
	uint8_t source[DEPTH][WRITE_MAX];
	uint8_t back[DEPTH][WRITE_MAX];       /* what was read back */
	uint8_t target[2 * DEPTH][WRITE_MAX]; /* the peer writes here */
	uint8_t receive[RECEIVES][SEND_MAX];
};

enum kind { SEND, WRITE, READ, ADD, KINDS };

static enum kind kind_of(const struct workload *w, uint64_t n)
{
	return w->kind == WORK_SENDS ? SEND : (enum kind)(n % KINDS);
}

/*
 * 6.4 s until a retry, 45 s until the last one (docs/state.md). A process without urxed does not
 * answer its peer, and on a busy machine a new urxed took 15 s to start.
 */
#define TIMEOUT 19

/* --- Contents. */

static uint32_t send_length(uint64_t n)
{
	return (uint32_t)(1 + n * 7919 % SEND_MAX);
}

static uint32_t write_length(uint64_t n)
{
	return (uint32_t)(1 + n * 104729 % WRITE_MAX);
}

static uint8_t byte_at(uint8_t side, int connection, uint64_t n, uint32_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 7 + n * 29 + (uint32_t)connection * 3 + side * 101u);
}

static void fill(uint8_t *bytes, uint32_t length, uint8_t side, int connection, uint64_t n)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = byte_at(side, connection, n, i);
}

static bool matches(const uint8_t *bytes, uint32_t length, uint8_t side, int connection, uint64_t n)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < length; i++)
		wrong += bytes[i] != byte_at(side, connection, n, i);
	return !wrong;
}

#define REQUIRE(w, condition, ...)          \
	do {                                \
		if (!(condition)) {         \
			warnx(__VA_ARGS__); \
			(w)->broken = true; \
		}                           \
	} while (0)

/* --- Requests. */

static void post_receive(struct workload *w, int connection, uint32_t slot)
{
	struct connection *c = &w->connections[connection];
	uint8_t *buffer = c->shared ? w->srq_buffers[slot] : c->region->receive[slot];
	struct ibv_sge sge = {(uintptr_t)buffer, SEND_MAX,
			      c->shared ? w->srq_mr->lkey : c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	if (c->shared ? ibv_post_srq_recv(w->srq, &wr, &bad) : ibv_post_recv(c->qp, &wr, &bad))
		errx(1, "cannot post a receive");
}

static uint64_t remote_address(const struct workload *w, int connection, size_t offset)
{
	return w->peer.base[connection] + offset;
}

static void post(struct workload *w, int connection)
{
	struct connection *c = &w->connections[connection];
	const uint64_t n = c->posted;
	const uint32_t slot = n % DEPTH;
	struct region *r = c->region;
	struct ibv_sge sge = {.lkey = c->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)connection << 56 | n,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	switch (kind_of(w, n)) {
	case SEND:
		fill(r->send[slot], send_length(n), w->side, connection, n);
		sge.addr = (uintptr_t)r->send[slot];
		sge.length = send_length(n);
		wr.opcode = IBV_WR_SEND;
		break;
	case WRITE:
		fill(r->source[slot], write_length(n), w->side, connection, n);
		sge.addr = (uintptr_t)r->source[slot];
		sge.length = write_length(n);
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = remote_address(
			w, connection, offsetof(struct region, target[n % (2 * DEPTH)]));
		wr.wr.rdma.rkey = w->peer.rkey[connection];
		break;
	case READ:
		memset(r->back[slot], 0, write_length(n - 1));
		sge.addr = (uintptr_t)r->back[slot];
		sge.length = write_length(n - 1);
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = remote_address(
			w, connection, offsetof(struct region, target[(n - 1) % (2 * DEPTH)]));
		wr.wr.rdma.rkey = w->peer.rkey[connection];
		break;
	default:
		sge.addr = (uintptr_t)&r->results[slot];
		sge.length = 8;
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = remote_address(w, connection, 0);
		wr.wr.atomic.rkey = w->peer.rkey[connection];
		wr.wr.atomic.compare_add = 1;
	}
	if (ibv_post_send(c->qp, &wr, &bad))
		errx(1, "cannot post request %llu", (unsigned long long)n);
	c->posted++;
}

static void post_all(struct workload *w)
{
	for (int i = 0; i < CONNECTIONS; i++)
		while (!w->paused && w->connections[i].posted < w->connections[i].completed + DEPTH)
			post(w, i);
}

/* --- Completions. */

static void check_sent(struct workload *w, const struct ibv_wc *wc)
{
	int connection = (int)(wc->wr_id >> 56);
	uint64_t n = wc->wr_id & ((UINT64_C(1) << 56) - 1);
	struct connection *c = &w->connections[connection];
	const struct region *r = c->region;

	REQUIRE(w, wc->status == IBV_WC_SUCCESS, "connection %d, request %llu: %s", connection,
		(unsigned long long)n, ibv_wc_status_str(wc->status));
	REQUIRE(w, n == c->completed, "connection %d: request %llu completes instead of %llu",
		connection, (unsigned long long)n, (unsigned long long)c->completed);
	if (kind_of(w, n) == READ)
		REQUIRE(w,
			matches(r->back[n % DEPTH], write_length(n - 1), w->side, connection,
				n - 1),
			"connection %d: WRITE %llu is read back with other contents", connection,
			(unsigned long long)n - 1);
	if (kind_of(w, n) == ADD)
		REQUIRE(w, r->results[n % DEPTH] == n / KINDS,
			"connection %d: the counter was %llu instead of %llu", connection,
			(unsigned long long)r->results[n % DEPTH], (unsigned long long)n / KINDS);
	c->completed++;
}

static int connection_of(const struct workload *w, uint32_t qpn)
{
	int i = 0;

	while (w->connections[i].qp->qp_num != qpn)
		i++;
	return i;
}

static void check_received(struct workload *w, const struct ibv_wc *wc)
{
	int connection = connection_of(w, wc->qp_num);
	struct connection *c = &w->connections[connection];
	uint64_t n = c->received * (w->kind == WORK_SENDS ? 1 : KINDS);
	uint32_t slot = (uint32_t)wc->wr_id;
	const uint8_t *bytes = c->shared ? w->srq_buffers[slot] : c->region->receive[slot];

	REQUIRE(w, wc->status == IBV_WC_SUCCESS, "connection %d, receive: %s", connection,
		ibv_wc_status_str(wc->status));
	REQUIRE(w, wc->byte_len == send_length(n), "connection %d: a message of %u bytes, not %u",
		connection, wc->byte_len, send_length(n));
	REQUIRE(w, matches(bytes, send_length(n), !w->side, connection, n),
		"connection %d: message %llu has other contents", connection,
		(unsigned long long)n);
	c->received++;
	post_receive(w, connection, slot);
}

unsigned int workload_step(struct workload *w)
{
	struct ibv_wc wc[8];
	unsigned int handled = 0;
	int n;

	/* The failed request first: it tells why receives are flushed. */
	while (!w->broken && (n = ibv_poll_cq(w->cq[0], 8, wc)) > 0)
		for (int i = 0; i < n; i++, handled++)
			check_sent(w, &wc[i]);
	while (!w->broken && (n = ibv_poll_cq(w->cq[1], 8, wc)) > 0)
		for (int i = 0; i < n; i++, handled++)
			check_received(w, &wc[i]);
	if (!w->broken)
		post_all(w);
	return handled;
}

void workload_arm(struct workload *w)
{
	if (ibv_req_notify_cq(w->cq[0], 0) || ibv_req_notify_cq(w->cq[1], 0))
		errx(1, "ibv_req_notify_cq");
}

void workload_wait(struct workload *w)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(w->channel, &cq, &context))
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (cq != w->cq[0] && cq != w->cq[1])
		errx(1, "an event of an unknown CQ");
}

uint64_t workload_counter(const struct workload *w, int connection)
{
	return *(volatile uint64_t *)&w->connections[connection].region->counter;
}

/* --- Objects. */

static void *must(void *object, const char *what)
{
	if (!object)
		err(1, "%s", what);
	return object;
}

static void make_qp(struct workload *w, struct ibv_qp **qp, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq[0],
		.recv_cq = w->cq[1],
		.srq = srq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = srq ? 0 : RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};

	if (w->kind != WORK_SENDS)
		attr.qp_access_flags =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	*qp = must(ibv_create_qp(w->pd, &init), "ibv_create_qp");
	if (ibv_modify_qp(*qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		errx(1, "cannot modify a queue pair to INIT");
}

static struct ibv_mr *register_bytes(struct workload *w, void *bytes, size_t size)
{
	return must(ibv_reg_mr(w->pd, bytes, size,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
		    "ibv_reg_mr");
}

static void *pages(size_t size)
{
	void *bytes = must(aligned_alloc(4096, (size + 4095) & ~(size_t)4095), "aligned_alloc");

	return memset(bytes, 0, size);
}

static void open_connection(struct workload *w, int i)
{
	struct connection *c = &w->connections[i];

	c->shared = w->srq && i % 2;
	c->region = pages(sizeof(*c->region));
	c->mr = register_bytes(w, c->region, sizeof(*c->region));
	make_qp(w, &c->qp, c->shared ? w->srq : NULL);
	w->self.qpn[i] = c->qp->qp_num;
	w->self.base[i] = (uintptr_t)c->region;
	w->self.rkey[i] = c->mr->rkey;
	for (uint32_t slot = 0; slot < RECEIVES && !c->shared; slot++)
		post_receive(w, i, slot);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "ibv_get_device_list");

	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return must(ibv_open_device(list[i]), "ibv_open_device");
	for (int i = 0; list[i]; i++)
		warnx("found device %s", ibv_get_device_name(list[i]));
	errx(1, "no device %s", name);
}

/* --- rdma_cm: the commands of rdma/rdma_user_cm.h. */

static void make_id(struct workload *w)
{
	struct rdma_ucm_create_id_resp response = {0};
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_create_id create;
	} command = {
		.header = {RDMA_USER_CM_CMD_CREATE_ID, sizeof(command.create), sizeof(response)},
		.create = {.uid = 1,
			   .response = (uintptr_t)&response,
			   .ps = RDMA_PS_TCP,
			   .qp_type = IBV_QPT_RC},
	};

	if (write(w->rdma_cm, &command, sizeof(command)) != sizeof(command))
		err(1, "CREATE_ID");
	w->rdma_cm_id = response.id;
	w->has_id = true;
}

static void fetch_event(struct workload *w)
{
	struct rdma_ucm_event_resp event;
	const struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_get_event get;
	} command = {
		.header = {RDMA_USER_CM_CMD_GET_EVENT, sizeof(command.get), sizeof(event)},
		.get = {.response = (uintptr_t)&event},
	};

	if (write(w->rdma_cm, &command, sizeof(command)) != sizeof(command))
		err(1, "GET_EVENT");
	w->id_events++;
}

void workload_resolve(struct workload *w)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_resolve_ip resolve;
	} command = {
		.header = {RDMA_USER_CM_CMD_RESOLVE_IP, sizeof(command.resolve), 0},
		.resolve = {.id = w->rdma_cm_id, .timeout_ms = 10000},
	};

	memcpy(&command.resolve.dst_addr, &address, sizeof(address));
	if (write(w->rdma_cm, &command, sizeof(command)) != sizeof(command))
		err(1, "RESOLVE_IP");
	fetch_event(w);
}

void workload_destroy_id(struct workload *w)
{
	struct rdma_ucm_destroy_id_resp response = {0};
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_destroy_id destroy;
	} command = {
		.header = {RDMA_USER_CM_CMD_DESTROY_ID, sizeof(command.destroy), sizeof(response)},
		.destroy = {.response = (uintptr_t)&response, .id = w->rdma_cm_id},
	};

	if (write(w->rdma_cm, &command, sizeof(command)) != sizeof(command))
		err(1, "DESTROY_ID");
	if (response.events_reported != w->id_events)
		errx(1, "DESTROY_ID: %u events instead of %u", response.events_reported,
		     w->id_events);
	w->has_id = false;
}

/* The address is one that no process has by itself, so that it stays free. */
static void *map_pages(uintptr_t at, size_t size)
{
	void *bytes = mmap((void *)at, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (bytes == MAP_FAILED)
		err(1, "mmap");
	return bytes;
}

static void protect(struct workload *w)
{
	if (mprotect(w->protected, 4096, PROT_READ))
		err(1, "mprotect");
}

void workload_map(struct workload *w)
{
	map_pages(HOLED_ADDRESS, 4096);
	protect(w);
}

/* Regions whose memory the program changes in ways that liburxe.so does not see. */
static void make_changed_regions(struct workload *w)
{
	const size_t size = 8192;
	void *freed = map_pages(FREED_ADDRESS, size);

	w->freed_mr = register_bytes(w, freed, size);
	/* As free() of libc does. */
	if (syscall(SYS_munmap, freed, size))
		err(1, "munmap");
	w->protected = pages(size);
	w->protected_mr = register_bytes(w, w->protected, size);
	protect(w);
}

/* A region of which the program has unmapped a page by a call that liburxe.so sees. */
static void make_holed_region(struct workload *w)
{
	w->holed = map_pages(HOLED_ADDRESS, 8192);
	w->holed_mr = register_bytes(w, w->holed, 8192);
	if (munmap(w->holed + 4096, 4096))
		err(1, "munmap");
}

/* Gives the queue pair in INIT the second P_Key of the port, if there is one. */
static void use_second_pkey(const struct workload *w, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.pkey_index = 1};
	__be16 pkey;

	if (ibv_query_pkey(w->context, 1, 1, &pkey))
		err(1, "ibv_query_pkey");
	if (pkey && ibv_modify_qp(qp, &attr, IBV_QP_PKEY_INDEX))
		errx(1, "cannot modify the P_Key of a queue pair");
}

/* Objects that are saved and restored without being used. */
static void make_idle_objects(struct workload *w, int gid_index)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = (uint8_t)gid_index}};
	struct ibv_qp *destroyed;

	attr.grh.dgid = w->self.gid;
	w->empty_mr = register_bytes(w, (uint8_t *)w->srq_buffers + 1, 0);
	make_changed_regions(w);
	make_holed_region(w);
	if (w->kind == WORK_ALL) {
		w->implicit_mr = must(ibv_reg_mr(w->pd, NULL, SIZE_MAX,
						 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
				      "implicit region");
		w->mw = must(ibv_alloc_mw(w->pd, IBV_MW_TYPE_2), "ibv_alloc_mw");
	}
	w->ah = must(ibv_create_ah(w->pd, &attr), "ibv_create_ah");
	w->second = open_device(ibv_get_device_name(w->context->device));
	w->second_cq = must(ibv_create_cq(w->second, 5, NULL, NULL, 0), "ibv_create_cq");
	w->second_channel = must(ibv_create_comp_channel(w->second), "ibv_create_comp_channel");
	w->duplicate = dup(w->context->cmd_fd);
	w->rdma_cm = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (w->duplicate < 0 || w->rdma_cm < 0)
		err(1, "descriptors");
	if (w->kind == WORK_ALL)
		make_id(w);
	w->idle_cq = must(ibv_create_cq(w->context, 3, NULL, w->channel, 0), "ibv_create_cq");
	/* Its rings have others on both sides. */
	make_qp(w, &destroyed, NULL);
	make_qp(w, &w->idle_qp, NULL);
	use_second_pkey(w, w->idle_qp);
	if (ibv_destroy_qp(destroyed))
		errx(1, "ibv_destroy_qp");
}

struct workload *workload_open(const char *device, int gid_index, uint8_t side, bool events,
			       enum work kind)
{
	struct workload *w = must(calloc(1, sizeof(*w)), "calloc");
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 2 * RECEIVES, .max_sge = 1}};

	w->side = side;
	w->kind = kind;
	w->context = open_device(device);
	if (ibv_query_gid(w->context, 1, gid_index, &w->self.gid))
		errx(1, "no GID %d", gid_index);
	w->pd = must(ibv_alloc_pd(w->context), "ibv_alloc_pd");
	if (events)
		w->channel = must(ibv_create_comp_channel(w->context), "ibv_create_comp_channel");
	for (int i = 0; i < 2; i++)
		w->cq[i] =
			must(ibv_create_cq(w->context, 512, NULL, w->channel, 0), "ibv_create_cq");
	if (kind != WORK_PLAIN)
		w->srq = must(ibv_create_srq(w->pd, &srq), "ibv_create_srq");
	w->srq_buffers = pages((size_t)2 * RECEIVES * SEND_MAX);
	w->srq_mr = register_bytes(w, w->srq_buffers, (size_t)2 * RECEIVES * SEND_MAX);
	for (int i = 0; i < CONNECTIONS; i++)
		open_connection(w, i);
	for (uint32_t slot = 0; w->srq && slot < 2 * RECEIVES; slot++)
		post_receive(w, 1, slot);
	make_idle_objects(w, gid_index);
	return w;
}

void workload_connect(struct workload *w, const struct address *peer, int gid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = DEPTH,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = DEPTH,
	};

	w->peer = *peer;
	attr.ah_attr.grh.dgid = peer->gid;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ibv_qp *qp = w->connections[i].qp;

		attr.qp_state = IBV_QPS_RTR;
		attr.dest_qp_num = peer->qpn[i];
		if (ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER))
			err(1, "RTR");
		attr.qp_state = IBV_QPS_RTS;
		if (ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC))
			err(1, "RTS");
	}
}

static void close_object(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(rc));
}

/* Its completion channel, which gets its first CQ here, ends with it. */
static void close_second(struct workload *w)
{
	const int channel = w->second_channel->fd;
	char event;

	close_object(ibv_destroy_cq(w->second_cq), "CQ of the second context");
	w->second_cq = must(ibv_create_cq(w->second, 5, NULL, w->second_channel, 0),
			    "ibv_create_cq with a channel");
	close_object(ibv_destroy_cq(w->second_cq), "CQ with a channel");
	if (fcntl(channel, F_SETFL, O_NONBLOCK))
		err(1, "fcntl");
	close_object(ibv_close_device(w->second), "second context");
	if (read(channel, &event, sizeof(event)))
		errx(1, "a completion channel does not end with its context");
	close(channel);
}

void workload_close(struct workload *w)
{
	if (w->has_id)
		workload_destroy_id(w);
	if (close(w->rdma_cm) || close(w->duplicate))
		err(1, "close");
	close_second(w);
	close_object(ibv_destroy_qp(w->idle_qp), "idle queue pair");
	close_object(ibv_destroy_cq(w->idle_cq), "idle CQ");
	close_object(ibv_destroy_ah(w->ah), "address handle");
	close_object(ibv_dereg_mr(w->empty_mr), "memory region of length 0");
	close_object(ibv_dereg_mr(w->freed_mr), "region of unmapped memory");
	close_object(ibv_dereg_mr(w->protected_mr), "region of protected memory");
	close_object(ibv_dereg_mr(w->holed_mr), "region with a hole");
	if (w->implicit_mr)
		close_object(ibv_dereg_mr(w->implicit_mr), "implicit region");
	if (w->mw)
		close_object(ibv_dealloc_mw(w->mw), "memory window");
	for (int i = 0; i < CONNECTIONS; i++) {
		close_object(ibv_destroy_qp(w->connections[i].qp), "queue pair");
		close_object(ibv_dereg_mr(w->connections[i].mr), "memory region");
	}
	if (w->srq)
		close_object(ibv_destroy_srq(w->srq), "SRQ");
	close_object(ibv_dereg_mr(w->srq_mr), "memory region of the SRQ");
	for (int i = 0; i < 2; i++)
		close_object(ibv_destroy_cq(w->cq[i]), "CQ");
	if (w->channel)
		close_object(ibv_destroy_comp_channel(w->channel), "completion channel");
	close_object(ibv_dealloc_pd(w->pd), "PD");
	close_object(ibv_close_device(w->context), "device");
}
