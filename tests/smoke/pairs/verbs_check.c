/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks what RDMA operations do to memory, byte by byte, over plain libibverbs:
 * verbs_check [options] as server, verbs_check [options] HOST as client.
 *
 * For each case the client sends an order over TCP, the server prepares its memory, and the client
 * posts the operation. The side whose memory the operation changes compares the message and the
 * memory around it. During a WRITE, READ or atomic the server calls no verb. With UC an empty SEND
 * after the operation tells the server that the operation has arrived.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"
#include "pattern.h"

#define LARGEST (1u << 20)
/* Offsets of the message in each side's memory: odd, and not equal modulo any alignment. */
#define LOCAL_AT    61
#define REMOTE_AT   1027
#define ROOM        8192 /* bytes of memory beside the message */
#define BACKGROUND  0    /* seed of the pattern around the message */
#define ATOMIC_AT   4096
#define ATOMIC_INIT 0xfffffffffffffff0 /* so that the additions wrap */
#define ATOMIC_ADDS 100

/* In ascending order: each service has the operations of the services before it, too. */
enum service {
	SERVICE_UD,
	SERVICE_UC,
	SERVICE_RC,
	SERVICES,
};

static const struct {
	const char *name;
	enum ibv_qp_type type;
} services[] = {
	[SERVICE_UD] = {"UD", IBV_QPT_UD},
	[SERVICE_UC] = {"UC", IBV_QPT_UC},
	[SERVICE_RC] = {"RC", IBV_QPT_RC},
};

enum case_kind {
	CASE_WRITE,
	CASE_WRITE_IMM,
	CASE_WRITE_INLINE,
	CASE_WRITE_SGES,
	CASE_WRITE_BURST,
	CASE_SEND,
	CASE_SEND_IMM,
	CASE_SEND_INLINE,
	CASE_READ,
	CASE_READ_BURST,
	CASE_ATOMIC,
	CASE_INVALIDATE,
	CASE_BAD_RKEY, /* last: it leaves the QP in error */
	CASE_END,
};

struct case_row {
	const char *name;
	enum service service; /* the lowest service with this operation */
	enum ibv_wr_opcode opcode;
	uint32_t largest; /* largest message size; 0 = one case without sizes */
	uint32_t pieces;  /* work requests of a message */
	uint32_t sges;
	bool consumes_recv;
	bool immediate;
	bool inlined;
};

static const struct case_row cases[] = {
	[CASE_WRITE] = {"WRITE", SERVICE_UC, IBV_WR_RDMA_WRITE, LARGEST, 1, 1},
	[CASE_WRITE_IMM] = {"WRITE with immediate", SERVICE_UC, IBV_WR_RDMA_WRITE_WITH_IMM, LARGEST,
			    1, 1, .consumes_recv = true, .immediate = true},
	[CASE_WRITE_INLINE] = {"WRITE inline", SERVICE_UC, IBV_WR_RDMA_WRITE, ENDPOINT_INLINE, 1, 1,
			       .inlined = true},
	[CASE_WRITE_SGES] = {"WRITE of three SGEs", SERVICE_UC, IBV_WR_RDMA_WRITE, LARGEST, 1,
			     ENDPOINT_SGES},
	[CASE_WRITE_BURST] = {"WRITE, 64 outstanding", SERVICE_UC, IBV_WR_RDMA_WRITE, LARGEST,
			      ENDPOINT_DEPTH, 1},
	[CASE_SEND] = {"SEND", SERVICE_UD, IBV_WR_SEND, LARGEST, 1, 1, .consumes_recv = true},
	[CASE_SEND_IMM] = {"SEND with immediate", SERVICE_UD, IBV_WR_SEND_WITH_IMM, LARGEST, 1, 1,
			   .consumes_recv = true, .immediate = true},
	[CASE_SEND_INLINE] = {"SEND inline", SERVICE_UD, IBV_WR_SEND, ENDPOINT_INLINE, 1, 1,
			      .consumes_recv = true, .inlined = true},
	[CASE_READ] = {"READ", SERVICE_RC, IBV_WR_RDMA_READ, LARGEST, 1, 1},
	[CASE_READ_BURST] = {"READ, 16 outstanding", SERVICE_RC, IBV_WR_RDMA_READ, LARGEST, 16, 1},
	[CASE_ATOMIC] = {"atomics", SERVICE_RC},
	[CASE_INVALIDATE] = {"SEND with invalidate", SERVICE_RC, IBV_WR_RDMA_WRITE, LARGEST, 1, 1,
			     .consumes_recv = true},
	[CASE_BAD_RKEY] = {"WRITE with a wrong rkey", SERVICE_RC},
};

static const uint32_t sizes[] = {
	0,    1,    2,    3,     4,     7,     8,     9,      63,          64,      65,   255,
	256,  257,  511,  512,   513,   1000,  1023,  1024,   1025,        2047,    2048, 2049,
	4095, 4096, 4097, 12287, 65535, 65536, 65537, 262147, LARGEST - 1, LARGEST,
};

/* The next case, from the client to the server; kind CASE_END ends the server. */
struct order {
	enum case_kind kind;
	uint32_t size;
	uint32_t seed; /* of the message's contents; also the immediate data */
	uint32_t rkey; /* CASE_INVALIDATE, set by the server: of a window at REMOTE_AT */
};

static struct endpoint ep;
static enum service service = SERVICE_RC;
static uint32_t memory_size = LARGEST + ROOM;
static uint32_t only_size;         /* 0 = all sizes */
static uint32_t most = UINT32_MAX; /* the largest size to test */
static uint32_t path_mtu = 1024;
static struct ibv_mw *window;
static bool no_windows; /* a side's device has none */
static int tcp;
static bool lossy; /* the network loses packets */

/* --- Memory */

static void check_part(const char *what, uint32_t at, uint32_t seed, uint32_t from, uint32_t size)
{
	uint32_t wrong = pattern_differs(ep.memory + at, seed, from, size);

	if (wrong)
		errx(1, "%s: %u of %u bytes are wrong", what, wrong, size);
}

/* Compares all of the memory: the message at `at`, and the background around it. */
static void check_memory(const struct order *order, uint32_t at)
{
	uint32_t end = at + order->size;

	check_part("before the message", 0, BACKGROUND, 0, at);
	check_part("message", at, order->seed, 0, order->size);
	check_part("behind the message", end, BACKGROUND, end, memory_size - end);
}

static void prepare_message(const struct order *order, uint32_t at)
{
	pattern_fill(ep.memory, BACKGROUND, memory_size);
	pattern_fill(ep.memory + at, order->seed, order->size);
}

/* --- Server */

/* Binds a type 2 window to the place of the message; the client's SEND invalidates it. */
static uint32_t open_window(const struct order *order)
{
	struct ibv_send_wr *bad, wr = {
					 .opcode = IBV_WR_BIND_MW,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	window = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	if (!window)
		err(1, "ibv_alloc_mw");
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = ep.mr,
		.addr = (uintptr_t)ep.memory + REMOTE_AT,
		.length = order->size,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	errno = ibv_post_send(ep.qp, &wr, &bad);
	if (errno)
		err(1, "cannot bind a window");
	endpoint_success(&ep);
	return wr.bind_mw.rkey;
}

/* Linux' rxe sets the kernel's flag, whose bit means IP_CSUM_OK in libibverbs. */
static bool reports_invalidation(const struct ibv_wc *wc)
{
	bool linux_rxe = !strncmp(ibv_get_device_name(ep.context->device), "rxe", 3);

	return wc->wc_flags & (IBV_WC_WITH_INV | (linux_rxe ? IBV_WC_IP_CSUM_OK : 0));
}

static void check_invalidated(const struct ibv_wc *wc, const struct order *order)
{
	if (wc->opcode != IBV_WC_RECV || !reports_invalidation(wc) ||
	    wc->invalidated_rkey != order->rkey || wc->byte_len)
		errx(1, "receive completion: opcode %d, %u bytes, flags %#x, rkey %#x, not %#x",
		     wc->opcode, wc->byte_len, wc->wc_flags, wc->invalidated_rkey, order->rkey);
	if (ibv_dealloc_mw(window))
		err(1, "ibv_dealloc_mw");
}

static void check_recv(const struct case_row *row, const struct order *order)
{
	struct ibv_wc wc = endpoint_success(&ep);
	enum ibv_wc_opcode opcode =
		row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	bool immediate = wc.wc_flags & IBV_WC_WITH_IMM;
	uint32_t grh = service == SERVICE_UD ? ENDPOINT_GRH : 0;

	if (wc.wr_id != order->seed)
		errx(1, "receive completion: wr_id %" PRIu64 ", not %u", wc.wr_id, order->seed);
	if (order->kind == CASE_INVALIDATE) {
		check_invalidated(&wc, order);
		return;
	}
	if (wc.opcode != opcode || wc.byte_len != order->size + grh)
		errx(1, "receive completion: opcode %d, %u bytes", wc.opcode, wc.byte_len);
	if (row->immediate != immediate || (immediate && be32toh(wc.imm_data) != order->seed))
		errx(1, "receive completion: flags %#x, immediate %#x", wc.wc_flags,
		     be32toh(wc.imm_data));
}

/* Whether an empty SEND must follow: a UC completion says only that the message was sent. */
static bool needs_following_send(const struct case_row *row)
{
	return service == SERVICE_UC && !row->consumes_recv;
}

static void check_atomic_result(void)
{
	uint64_t want = ATOMIC_INIT + ATOMIC_ADDS + 1;

	if (memcmp(ep.memory + ATOMIC_AT, &want, 8))
		errx(1, "atomics left %#" PRIx64, *(uint64_t *)(ep.memory + ATOMIC_AT));
	check_part("before the atomic", 0, BACKGROUND, 0, ATOMIC_AT);
	check_part("behind the atomic", ATOMIC_AT + 8, BACKGROUND, ATOMIC_AT + 8,
		   memory_size - ATOMIC_AT - 8);
}

static void server_prepare(struct order *order)
{
	const struct case_row *row = &cases[order->kind];
	const uint64_t value = ATOMIC_INIT;

	if (row->opcode == IBV_WR_RDMA_READ)
		prepare_message(order, REMOTE_AT);
	else
		pattern_fill(ep.memory, BACKGROUND, memory_size);
	if (order->kind == CASE_ATOMIC)
		memcpy(ep.memory + ATOMIC_AT, &value, 8);
	if (order->kind == CASE_INVALIDATE)
		order->rkey = open_window(order);
	if (row->consumes_recv)
		endpoint_post_recv(&ep, order->seed, REMOTE_AT,
				   order->kind == CASE_INVALIDATE ? 0 : order->size);
	else if (needs_following_send(row))
		endpoint_post_recv(&ep, order->seed, REMOTE_AT, 0);
}

static void server_check(const struct order *order)
{
	const struct case_row *row = &cases[order->kind];

	if (row->consumes_recv)
		check_recv(row, order);
	else if (needs_following_send(row))
		endpoint_success(&ep);
	if (order->kind == CASE_ATOMIC)
		check_atomic_result();
	else if (order->kind == CASE_BAD_RKEY)
		check_part("memory", 0, BACKGROUND, 0, memory_size);
	else
		check_memory(order, REMOTE_AT);
}

static void serve(void)
{
	struct order order;

	for (;;) {
		exchange_recv(tcp, &order, sizeof(order));
		if (order.kind >= CASE_END)
			return;
		server_prepare(&order);
		exchange_send(tcp, &order, sizeof(order)); /* the memory is ready */
		exchange_recv(tcp, &order, sizeof(order)); /* the client has its completion */
		server_check(&order);
		exchange_send(tcp, &order, sizeof(order)); /* the contents are right */
	}
}

/* --- Client */

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	errno = ibv_post_send(ep.qp, wr, &bad);
	if (errno)
		err(1, "ibv_post_send");
}

/* The end of part i of a message in n parts; some parts of a small message are empty. */
static uint32_t part_end(uint32_t size, uint32_t n, uint32_t i)
{
	return (uint64_t)size * (i + 1) / n;
}

/* Sets the destination that the service needs: address handle, or remote address and rkey. */
static void set_destination(struct ibv_send_wr *wr, uint32_t at, uint32_t rkey)
{
	if (service == SERVICE_UD) {
		wr->wr.ud.ah = ep.ah;
		wr->wr.ud.remote_qpn = ep.remote_qpn;
		wr->wr.ud.remote_qkey = ENDPOINT_QKEY;
		return;
	}
	wr->wr.rdma.remote_addr = ep.remote_addr + at;
	wr->wr.rdma.rkey = rkey;
}

/* Posts one work request for bytes [from, to) of the message. */
static void post_piece(const struct case_row *row, const struct order *order, uint32_t from,
		       uint32_t to, bool signaled)
{
	struct ibv_sge sges[ENDPOINT_SGES];
	struct ibv_send_wr wr = {
		.wr_id = from,
		.sg_list = sges,
		.num_sge = row->sges,
		.opcode = row->opcode,
		.send_flags =
			(signaled ? IBV_SEND_SIGNALED : 0) | (row->inlined ? IBV_SEND_INLINE : 0),
		.imm_data = htobe32(order->seed),
	};

	set_destination(&wr, REMOTE_AT + from,
			order->kind == CASE_INVALIDATE ? order->rkey : ep.rkey);
	for (uint32_t i = 0, at = 0, end; i < row->sges; i++, at = end) {
		end = part_end(to - from, row->sges, i);
		sges[i] = (struct ibv_sge){(uintptr_t)ep.memory + LOCAL_AT + from + at, end - at,
					   ep.mr->lkey};
	}
	post(&wr);
}

static void expect(enum ibv_wc_opcode opcode, uint64_t wr_id)
{
	struct ibv_wc wc = endpoint_success(&ep);

	if (wc.opcode != opcode || wc.wr_id != wr_id)
		errx(1, "completion: opcode %d, wr_id %" PRIu64, wc.opcode, wc.wr_id);
}

/* Posts an empty SEND, which arrives after all requests before it. */
static void post_empty(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};

	post(&wr);
	expect(IBV_WC_SEND, 0);
}

/* Only the last piece is signaled; its completion covers all pieces. */
static void transfer(const struct case_row *row, const struct order *order)
{
	static const enum ibv_wc_opcode completions[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	};
	uint32_t from = 0, last = 0;

	for (uint32_t i = 0; i < row->pieces; i++) {
		uint32_t to = part_end(order->size, row->pieces, i);

		post_piece(row, order, from, to, i + 1 == row->pieces);
		last = from;
		from = to;
	}
	expect(completions[row->opcode], last);
	if (order->kind == CASE_INVALIDATE)
		post_empty(IBV_WR_SEND_WITH_INV, order->rkey);
	else if (needs_following_send(row))
		post_empty(IBV_WR_SEND, 0);
	if (row->opcode == IBV_WR_RDMA_READ)
		check_memory(order, LOCAL_AT);
}

/* Executes one atomic; returns the original value. */
static uint64_t atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	uint64_t old;
	struct ibv_sge sge = {(uintptr_t)ep.memory + 8, 8, ep.mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = ep.remote_addr + ATOMIC_AT,
			      .compare_add = compare_add,
			      .swap = swap,
			      .rkey = ep.rkey},
	};

	post(&wr);
	expect(opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD, 0);
	memcpy(&old, ep.memory + 8, 8);
	return old;
}

static void check_value(const char *what, uint64_t got, uint64_t wanted)
{
	if (got != wanted)
		errx(1, "%s returned %#" PRIx64 ", not %#" PRIx64, what, got, wanted);
}

static void run_atomics(void)
{
	uint64_t value = ATOMIC_INIT;

	for (int i = 0; i < ATOMIC_ADDS; i++, value++)
		check_value("fetch-and-add", atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0), value);
	check_value("failing compare-and-swap", atomic(IBV_WR_ATOMIC_CMP_AND_SWP, value + 1, 7),
		    value);
	check_value("compare-and-swap", atomic(IBV_WR_ATOMIC_CMP_AND_SWP, value, value + 1), value);
	check_value("fetch-and-add of 0", atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0), value + 1);
}

/* A responder in the error state does not repeat a NAK that the network has lost. */
static bool refusal_lost(enum ibv_wc_status got, enum ibv_wc_status wanted)
{
	return lossy && wanted == IBV_WC_REM_ACCESS_ERR && got == IBV_WC_RETRY_EXC_ERR;
}

static void expect_failure(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = endpoint_completion(&ep);

	if (refusal_lost(wc.status, status))
		wc.status = status;
	if (wc.wr_id != wr_id || wc.status != status)
		errx(1, "wr_id %" PRIu64 " ended in '%s', not wr_id %" PRIu64 " in '%s'", wc.wr_id,
		     ibv_wc_status_str(wc.status), wr_id, ibv_wc_status_str(status));
}

/* The responder refuses the first request; the requests after it are flushed. */
static void run_bad_rkey(void)
{
	struct ibv_sge sge = {(uintptr_t)ep.memory, 100, ep.mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = ep.remote_addr, .rkey = ~ep.rkey},
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (wr.wr_id = 1; wr.wr_id <= 3; wr.wr_id++)
		post(&wr);
	expect_failure(1, IBV_WC_REM_ACCESS_ERR);
	expect_failure(2, IBV_WC_WR_FLUSH_ERR);
	expect_failure(3, IBV_WC_WR_FLUSH_ERR);
	if (ibv_query_qp(ep.qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_ERR)
		errx(1, "the QP is in state %d, not error", attr.qp_state);
}

static void run_case(const struct order *order)
{
	struct order answer;
	const struct case_row *row = &cases[order->kind];

	if (row->opcode == IBV_WR_RDMA_READ)
		pattern_fill(ep.memory, BACKGROUND, memory_size);
	else
		prepare_message(order, LOCAL_AT);
	exchange_send(tcp, order, sizeof(*order));
	exchange_recv(tcp, &answer, sizeof(answer));
	if (order->kind == CASE_ATOMIC)
		run_atomics();
	else if (order->kind == CASE_BAD_RKEY)
		run_bad_rkey();
	else
		transfer(row, &answer);
	exchange_send(tcp, &answer, sizeof(answer));
	exchange_recv(tcp, &answer, sizeof(answer));
}

static bool fits(enum case_kind kind, uint32_t size)
{
	const struct case_row *row = &cases[kind];

	if (service < row->service || size > most || (service == SERVICE_UD && size > path_mtu))
		return false;
	/*
	 * For a repeated READ, Linux' rxe (6.12) takes the length of the last new request. If that
	 * length was 0, it repeats the READ without a region, logs a warning, and sends a NAK.
	 */
	if (lossy && row->opcode == IBV_WR_RDMA_READ && size < row->pieces)
		return false;
	/* A window cannot have length 0. */
	if (kind == CASE_INVALIDATE && (!size || no_windows))
		return false;
	return size <= row->largest || row->largest == LARGEST;
}

/* Runs a case without sizes. */
static void run_alone(enum case_kind kind)
{
	if (service < cases[kind].service)
		return;
	run_case(&(struct order){.kind = kind});
	printf("%-24s right\n", cases[kind].name);
}

static void run_sizes(enum case_kind kind)
{
	static uint32_t seed;
	uint64_t bytes = 0;
	uint32_t count = 0;
	size_t n = only_size ? 1 : sizeof(sizes) / sizeof(sizes[0]);

	for (size_t i = 0; i < n; i++) {
		uint32_t size = only_size ? only_size : sizes[i];

		if (!fits(kind, size))
			continue;
		run_case(&(struct order){kind, size, ++seed});
		bytes += size;
		count++;
	}
	if (count)
		printf("%-24s %2u sizes, %7" PRIu64 " bytes, every byte right\n", cases[kind].name,
		       count, bytes);
}

static void run_kind(enum case_kind kind)
{
	if (cases[kind].largest)
		run_sizes(kind);
	else
		run_alone(kind);
}

/* --- */

static void usage(void)
{
	fputs("usage: verbs_check [-d DEVICE] [-g GID_INDEX] [-p PORT] [-m MTU] "
	      "[-c UD|UC|RC] [-s SIZE] [-x SIZE] [-t TIMEOUT] [-S] [-e] [-l] [-L] [-W] [HOST]\n"
	      "-s: messages of this size alone\n"
	      "-x: messages of up to this size\n"
	      "-t: local ACK timeout of the queue pair\n"
	      "-S: receives are those of a shared receive queue\n"
	      "-l: the client goes on until its standard input ends\n"
	      "-L: the network loses packets\n"
	      "-W: a side has no memory windows\n",
	      stderr);
	exit(2);
}

static enum ibv_mtu mtu_of(const char *text)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (atoi(text) == 128 << mtu)
			return mtu;
	usage();
	return 0;
}

static enum service service_of(const char *name)
{
	for (enum service i = 0; i < SERVICES; i++)
		if (!strcmp(name, services[i].name))
			return i;
	usage();
	return 0;
}

static bool input_ended(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};

	return poll(&input, 1, 0) > 0;
}

/* Runs all cases; with `loop` repeats the cases that leave the QP usable. */
static void run_all(bool loop)
{
	do
		for (enum case_kind kind = 0; kind < CASE_BAD_RKEY; kind++)
			run_kind(kind);
	while (loop && !input_ended());
	run_kind(CASE_BAD_RKEY);
}

/* 67 ms, because a test with losses waits for many timeouts. */
#define LOSSY_TIMEOUT 14

int main(int argc, char **argv)
{
	struct endpoint_attr attr = {.device = "urxe0", .gid_index = 1, .mtu = IBV_MTU_1024};
	const char *port = "18600";
	bool loop = false;

	for (int c; (c = getopt(argc, argv, "d:g:p:m:c:s:x:t:SelLW")) != -1;) {
		switch (c) {
		case 'd': attr.device = optarg; break;
		case 'g': attr.gid_index = atoi(optarg); break;
		case 'p': port = optarg; break;
		case 'm': attr.mtu = mtu_of(optarg); break;
		case 'c': service = service_of(optarg); break;
		case 's': only_size = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'x': most = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 't': attr.timeout = (uint8_t)atoi(optarg); break;
		case 'S': attr.srq = true; break;
		case 'e': attr.events = true; break;
		case 'l': loop = true; break;
		case 'L': lossy = true; break;
		case 'W': no_windows = true; break;
		default: usage();
		}
	}
	if (argc - optind > 1)
		usage();
	if (lossy && !attr.timeout)
		attr.timeout = LOSSY_TIMEOUT;
	path_mtu = 128u << attr.mtu;
	attr.type = services[service].type;
	if (only_size > LARGEST)
		memory_size = only_size + ROOM;
	attr.size = memory_size;
	setlinebuf(stdout); /* a test that reads the output sees each case at once */
	tcp = exchange_open(argv[optind], port);
	endpoint_open(&ep, &attr, tcp);
	if (argv[optind]) {
		run_all(loop);
		exchange_send(tcp, &(struct order){.kind = CASE_END}, sizeof(struct order));
	} else {
		serve();
	}
	endpoint_close(&ep);
	close(tcp);
	return 0;
}
