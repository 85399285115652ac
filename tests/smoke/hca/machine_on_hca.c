/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand whose device process uses an HCA. The program plays the hypervisor and
 * the driver, and it is the native peer, too: with libibverbs on the HCA's own device. Every byte
 * that arrives is compared.
 *
 * machine_on_hca PATH DEVICE: the socket of the vmxnet3, and the HCA. Each line of standard input
 * is a command, and the program answers each with a line: rc, srq, ud   connects a queue pair of
 * that kind, exchanges messages, and prints its QPN create        creates an RC queue pair, and
 * prints its QPN again         exchanges further messages by the newest queue pair, which is
 * connected fails         waits until the newest queue pair has failed with its event close
 * destroys the newest queue pair and its SRQ
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "pvrdma_driver.h"
#include "require.h"

#define GUEST_ID 20 /* 192.0.2.20 */
#define VA       UINT64_C(0x7f0000000123)
#define SIZE     20000u /* bytes of a buffer; its pages are scattered */
#define ACCESS   15u
#define QKEY     0x1234u
#define GRH      40u
#define DEADLINE 30 /* s */

static struct guest guest;
static struct vfio_client client;
static struct cq cq;
static struct qp qp;
static struct srq srq;
static struct buffer buffer;
static bool has_srq;

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	uint8_t bytes[SIZE];
	uint8_t gid_index;
} native;

/* --- Waiting */

static void wait_a_little(void)
{
	const struct timespec pause = {.tv_nsec = 20000};

	nanosleep(&pause, NULL);
}

static struct pvrdma_cqe expect_guest(uint64_t wr_id)
{
	const time_t end = time(NULL) + DEADLINE;
	struct pvrdma_cqe cqe;

	while (!cq_poll(&guest, &cq, &cqe)) {
		require(time(NULL) < end);
		wait_a_little();
	}
	if (cqe.status)
		fprintf(stderr, "status %u of the machine's request %u\n", cqe.status,
			(unsigned)cqe.wr_id);
	require(cqe.status == PVRDMA_WC_SUCCESS && cqe.wr_id == wr_id && cqe.qp == qp.handle);
	return cqe;
}

static struct ibv_wc expect_native(uint64_t wr_id)
{
	const time_t end = time(NULL) + DEADLINE;
	struct ibv_wc wc;

	while (!ibv_poll_cq(native.cq, 1, &wc))
		require(time(NULL) < end);
	if (wc.status)
		fprintf(stderr, "native: %s\n", ibv_wc_status_str(wc.status));
	require(wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id);
	return wc;
}

/* --- Contents */

static uint8_t byte_of(uint64_t i, uint8_t seed)
{
	return (uint8_t)(i * 13 + (i >> 8) * 5 + seed);
}

static void fill_native(uint8_t seed)
{
	for (uint32_t i = 0; i < SIZE; i++)
		native.bytes[i] = byte_of(i, seed);
}

static bool guest_has(uint64_t at, uint32_t length, uint32_t from, uint8_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		if (*buffer_at(&guest, &buffer, at + i) != byte_of(from + i, seed))
			return false;
	return true;
}

static void fill_guest(uint8_t seed)
{
	for (uint32_t i = 0; i < SIZE; i++)
		*buffer_at(&guest, &buffer, i) = byte_of(i, seed);
}

static bool native_has(uint32_t at, uint32_t length, uint32_t from, uint8_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		if (native.bytes[at + i] != byte_of(from + i, seed))
			return false;
	return true;
}

/* --- The native peer */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	require(context);
	ibv_free_device_list(list);
	return context;
}

static void find_gid(void)
{
	static const uint8_t wanted[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 20};
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 16; i++)
		if (!ibv_query_gid_ex(native.context, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(entry.gid.raw, wanted, sizeof(wanted))) {
			native.gid = entry.gid;
			native.gid_index = (uint8_t)i;
			return;
		}
	require(!"the device has the address");
}

static void open_native(const char *name)
{
	native.context = open_device(name);
	find_gid();
	native.pd = ibv_alloc_pd(native.context);
	native.cq = ibv_create_cq(native.context, 64, NULL, NULL, 0);
	native.mr = ibv_reg_mr(native.pd, native.bytes, SIZE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	require(native.pd && native.cq && native.mr);
}

static void create_native_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = native.cq,
		.recv_cq = native.cq,
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	native.qp = ibv_create_qp(native.pd, &init);
	require(native.qp);
}

static void native_to(struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	require(!ibv_modify_qp(native.qp, attr, IBV_QP_STATE | mask));
}

static struct ibv_ah_attr native_path(void)
{
	struct ibv_ah_attr path = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.sgid_index = native.gid_index, .hop_limit = 64}};

	path.grh.dgid = native.gid;
	return path;
}

static void connect_native(void)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp.qpn,
		.rq_psn = 100,
		.sq_psn = 200,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = native_path(),
	};

	native_to(&attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	native_to(&attr, IBV_QPS_RTR,
		  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	native_to(&attr, IBV_QPS_RTS,
		  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC);
}

static void start_native_datagrams(void)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY};

	native_to(&attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	native_to(&attr, IBV_QPS_RTR, 0);
	native_to(&attr, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static void native_recv(uint64_t wr_id, uint32_t at, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)native.bytes + at, length, native.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	require(!ibv_post_recv(native.qp, &wr, &bad));
}

static void native_send(struct ibv_send_wr *wr, uint32_t at, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)native.bytes + at, length, native.mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	require(!ibv_post_send(native.qp, wr, &bad));
}

/* --- The machine */

static void open_machine(const char *path)
{
	const struct urxe_gid gid = {
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, GUEST_ID}};
	char rdma[128];

	snprintf(rdma, sizeof(rdma), "%s.1", path);
	guest_open_remote(&guest, &(struct guest_attr){.id = GUEST_ID});
	vfio_client_connect(&client, rdma);
	guest_attach(&guest, &client, true);
	guest_start(&guest);
	require(!guest_bind(&guest, 1, &gid, PV_NO_VLAN));
	guest_enter_context(&guest, 1);
	cq_open(&guest, &cq, 64);
	buffer_open(&guest, &buffer, VA, SIZE, ACCESS);
}

static void open_qp(uint8_t type, bool shared)
{
	const struct qp_attr attr = {
		.type = type, .send_cq = &cq, .recv_cq = &cq, .srq = shared ? &srq : NULL};

	has_srq = shared;
	if (shared)
		require(!srq_try_open(&guest, &srq, 16, 1, 0));
	qp_open(&guest, &qp, &attr);
}

static void guest_path(struct pv_ah_attr *path)
{
	*path = (struct pv_ah_attr){.ah_flags = 1, .port_num = 1, .hop_limit = 64, .sgid_index = 1};
	memcpy(path->dgid, native.gid.raw, sizeof(path->dgid));
	/* The HCA resolves the address itself. */
	memcpy(path->dmac, (const uint8_t[]){2, 9, 9, 9, 9, 9}, sizeof(path->dmac));
}

static void connect_machine(void)
{
	struct pv_qp_attr attr = {
		.qp_state = URXE_QPS_INIT,
		.port_num = 1,
		.path_mtu = URXE_MTU_1024,
		.dest_qp_num = native.qp->qp_num,
		.rq_psn = 200,
		.sq_psn = 100,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.qp_access_flags = URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ |
				   URXE_ACCESS_REMOTE_ATOMIC,
	};

	guest_path(&attr.ah_attr);
	require(!qp_modify(&guest, &qp, &attr,
			   URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
				   URXE_QP_ACCESS_FLAGS));
	attr.qp_state = URXE_QPS_RTR;
	require(!qp_modify(&guest, &qp, &attr,
			   URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN |
				   URXE_QP_RQ_PSN | URXE_QP_MAX_DEST_RD_ATOMIC |
				   URXE_QP_MIN_RNR_TIMER));
	attr.qp_state = URXE_QPS_RTS;
	require(!qp_modify(&guest, &qp, &attr,
			   URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				   URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC));
}

static void guest_recv(uint64_t wr_id, uint64_t at, uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&buffer, at, length);

	if (has_srq)
		srq_post(&guest, &srq, wr_id, &sge, 1);
	else
		qp_post_recv(&guest, &qp, wr_id, &sge, 1);
}

static void guest_send(struct pvrdma_sq_wqe_hdr *header, uint64_t at, uint32_t length)
{
	const struct pvrdma_sge sge = buffer_sge(&buffer, at, length);

	header->num_sge = 1;
	header->send_flags = URXE_SEND_SIGNALED;
	qp_post_send(&guest, &qp, header, &sge);
}

/* --- Messages */

#define PART 9000u /* more than two pages and less than half of a buffer */

static void send_both_ways(uint8_t seed)
{
	fill_guest(seed);
	native_recv(1, 0, PART);
	guest_send(&(struct pvrdma_sq_wqe_hdr){.wr_id = 2, .opcode = PVRDMA_WR_SEND}, PART, PART);
	require(expect_native(1).byte_len == PART);
	expect_guest(2);
	require(native_has(0, PART, PART, seed));

	fill_native((uint8_t)(seed + 1));
	guest_recv(3, 100, PART);
	native_send(&(struct ibv_send_wr){.wr_id = 4,
					  .opcode = IBV_WR_SEND_WITH_IMM,
					  .imm_data = htobe32(0xabcd)},
		    PART, PART);
	{
		const struct pvrdma_cqe cqe = expect_guest(3);

		require(cqe.byte_len == PART && cqe.imm_data == htobe32(0xabcd) &&
			cqe.wc_flags & PVRDMA_WC_WITH_IMM);
	}
	expect_native(4);
	require(guest_has(100, PART, PART, (uint8_t)(seed + 1)));
}

static struct pvrdma_sq_wqe_hdr rdma(uint64_t wr_id, uint32_t opcode, uint32_t at)
{
	return (struct pvrdma_sq_wqe_hdr){
		.wr_id = wr_id,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)native.bytes + at, .rkey = native.mr->rkey},
	};
}

static void access_native(uint8_t seed)
{
	struct pvrdma_sq_wqe_hdr header = rdma(5, PVRDMA_WR_RDMA_WRITE, 50);

	fill_guest(seed);
	guest_send(&header, 1000, PART);
	expect_guest(5);
	require(native_has(50, PART, 1000, seed));
	fill_native((uint8_t)(seed + 2));
	header = rdma(6, PVRDMA_WR_RDMA_READ, 300);
	guest_send(&header, 10000, PART);
	expect_guest(6);
	require(guest_has(10000, PART, 300, (uint8_t)(seed + 2)));
}

static void access_machine(uint8_t seed)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_RDMA_WRITE};

	fill_native(seed);
	wr.wr.rdma.remote_addr = buffer.va + 77;
	wr.wr.rdma.rkey = buffer.key;
	native_send(&wr, 500, PART);
	expect_native(7);
	require(guest_has(77, PART, 500, seed));
	fill_guest((uint8_t)(seed + 3));
	wr.wr_id = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = buffer.va + 2000;
	native_send(&wr, 3000, PART);
	expect_native(8);
	require(native_has(3000, PART, 2000, (uint8_t)(seed + 3)));
}

/* The buffer begins at an odd address. */
#define COUNTER (8 - VA % 8)

static void add_to_machine(void)
{
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t before = 41, result;

	memcpy(buffer_at(&guest, &buffer, COUNTER), &before, sizeof(before));
	wr.wr.atomic.remote_addr = buffer.va + COUNTER;
	wr.wr.atomic.rkey = buffer.key;
	wr.wr.atomic.compare_add = 5;
	native_send(&wr, 0, sizeof(result));
	expect_native(9);
	memcpy(&result, native.bytes, sizeof(result));
	require(result == 41);
	memcpy(&result, buffer_at(&guest, &buffer, COUNTER), sizeof(result));
	require(result == 46);
}

/* The device process sleeps when the message comes, and the machine's program too. */
static void wake_machine(uint8_t seed)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	const time_t end = time(NULL) + DEADLINE;
	uint32_t handle;

	fill_native(seed);
	guest_recv(14, 0, PART);
	cq_arm(&guest, &cq, false);
	nanosleep(&pause, NULL);
	native_send(&(struct ibv_send_wr){.wr_id = 15, .opcode = IBV_WR_SEND}, 0, PART);
	while (!guest_notification(&guest, &handle)) {
		require(time(NULL) < end);
		wait_a_little();
	}
	require(handle == cq.handle);
	expect_guest(14);
	expect_native(15);
	require(guest_has(0, PART, 0, seed));
}

/* More receives than the engine's queue has room for: the rest waits in the ring. */
#define DEPTH 16u
#define SMALL 64u

static void receive_deep(uint8_t seed)
{
	fill_native(seed);
	for (uint32_t i = 0; i < 2 * DEPTH; i++)
		guest_recv(100 + i, i * 100, SMALL);
	for (uint32_t i = 0; i < 2 * DEPTH; i++) {
		native_send(&(struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND}, i * 90,
			    SMALL);
		expect_native(i);
		expect_guest(100 + i);
		require(guest_has(i * 100, SMALL, i * 90, seed));
	}
}

static void exchange_connected(void)
{
	for (uint8_t i = 0; i < 20; i++)
		send_both_ways((uint8_t)(i * 9 + 1));
	access_native(3);
	access_machine(4);
	add_to_machine();
	wake_machine(5);
	receive_deep(6);
}

#define DATAGRAM 700u

static void send_datagram_to_native(uint8_t seed)
{
	struct pvrdma_sq_wqe_hdr header = {
		.wr_id = 11,
		.opcode = PVRDMA_WR_SEND,
		.wr.ud = {.remote_qpn = native.qp->qp_num,
			  .remote_qkey = QKEY,
			  .av = {.port_pd = guest.pd | 1u << 24, .hop_limit = 64, .gid_index = 1}},
	};

	memcpy(header.wr.ud.av.dgid, native.gid.raw, sizeof(header.wr.ud.av.dgid));
	fill_guest(seed);
	native_recv(10, 0, GRH + DATAGRAM);
	guest_send(&header, 3900, DATAGRAM);
	require(expect_native(10).byte_len == GRH + DATAGRAM);
	expect_guest(11);
	require(native_has(GRH, DATAGRAM, 3900, seed));
}

static void send_datagram_to_machine(uint8_t seed)
{
	struct ibv_ah_attr path = native_path();
	struct ibv_send_wr wr = {.wr_id = 13, .opcode = IBV_WR_SEND};
	struct ibv_ah *ah = ibv_create_ah(native.pd, &path);

	require(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp.qpn;
	wr.wr.ud.remote_qkey = QKEY;
	fill_native(seed);
	guest_recv(12, 4000, GRH + DATAGRAM);
	native_send(&wr, 20, DATAGRAM);
	require(expect_guest(12).byte_len == GRH + DATAGRAM);
	expect_native(13);
	require(guest_has(4000 + GRH, DATAGRAM, 20, seed));
	ibv_destroy_ah(ah);
}

/* --- Commands */

static void run_connected(bool shared)
{
	create_native_qp(IBV_QPT_RC);
	open_qp(PV_QPT_RC, shared);
	connect_machine();
	connect_native();
	exchange_connected();
}

static void create_queues(void)
{
	create_native_qp(IBV_QPT_RC);
	open_qp(PV_QPT_RC, false);
}

static void run_datagrams(void)
{
	create_native_qp(IBV_QPT_UD);
	open_qp(PV_QPT_UD, false);
	qp_datagram(&guest, &qp);
	start_native_datagrams();
	for (uint8_t i = 0; i < 10; i++) {
		send_datagram_to_native((uint8_t)(i * 7 + 1));
		send_datagram_to_machine((uint8_t)(i * 11 + 1));
	}
}

static void expect_failure(void)
{
	const time_t end = time(NULL) + DEADLINE;
	struct pv_eqe event;

	while (!guest_event(&guest, &event) || event.type != URXE_ASYNC_QP_FATAL ||
	       event.info != qp.handle) {
		require(time(NULL) < end);
		wait_a_little();
	}
	require(qp_query(&guest, &qp, NULL) == URXE_QPS_ERR);
}

static void close_queues(void)
{
	struct pvrdma_cqe cqe;
	struct ibv_wc wc;

	qp_close(&guest, &qp);
	if (has_srq)
		srq_close(&guest, &srq);
	require(!ibv_destroy_qp(native.qp));
	while (cq_poll(&guest, &cq, &cqe) || ibv_poll_cq(native.cq, 1, &wc))
		;
}

static void run_command(const char *command)
{
	if (!strcmp(command, "rc"))
		run_connected(false);
	else if (!strcmp(command, "srq"))
		run_connected(true);
	else if (!strcmp(command, "ud"))
		run_datagrams();
	else if (!strcmp(command, "create"))
		create_queues();
	else if (!strcmp(command, "again"))
		exchange_connected();
	else if (!strcmp(command, "fails"))
		expect_failure();
	else if (!strcmp(command, "close"))
		close_queues();
	else
		require(!"known command");
	printf("%s %u\n", command, qp.qpn);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[32];

	require(argc == 3);
	open_native(argv[2]);
	open_machine(argv[1]);
	printf("open\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		run_command(line);
	}
	return 0;
}
