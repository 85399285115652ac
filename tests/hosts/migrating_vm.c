/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand, with the two functions of `urxe vm`, that migrates between two device
 * processes while it exchanges messages with ibv_rc_pingpong: plays the hypervisor and the drivers.
 * The peer returns each message, which is compared byte by byte.
 *
 * migrating_vm PATH1 PATH2 MOVES MAC PORT SIZE ITERATIONS: the sockets of both processes, the MAC
 * of the peer's host, and the arguments of ibv_rc_pingpong, which listens on this host.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "pvrdma_driver.h"
#include "require.h"

#define GUEST_ID  9
#define PEER_ID   2 /* the peer has the address 10.0.0.2 */
#define PAGES     (2 * GUEST_SMALL / PV_PAGE)
#define SEND_VA   UINT64_C(0x7f0000000040)
#define RECV_VA   UINT64_C(0x7f0000800080)
#define ACCESS    15u
#define RING      32u
#define FRAMES    5u /* of the NIC after each move: its ring wraps in some moves */
#define FRAME_LEN 100u
#define DEADLINE  60 /* s, for each message */

#define NIC_BAR0 0u
#define NIC_BAR1 1u

/* A driver of the vmxnet3 that only sends. */
struct nic {
	uint64_t shared, queues, rings, frame; /* pages of the guest */
	uint32_t sent;
};

struct machine {
	struct guest guest;
	struct nic nic;
	struct vfio_client clients[2]; /* of the vmxnet3, and of the PVRDMA */
	struct cq cq;
	struct qp qp;
	struct buffer send, recv;
	uint32_t size, message;
};

static const char *paths[2];

/* --- The vmxnet3 */

static uint32_t command(struct machine *m, uint32_t number)
{
	require(!vfio_write(&m->clients[0], NIC_BAR1, VMXNET3_REG_CMD, number));
	return vfio_read(&m->clients[0], NIC_BAR1, VMXNET3_REG_CMD);
}

/* Transmit ring, its completions, receive ring, its completions. */
static uint64_t ring_address(const struct nic *nic, unsigned ring)
{
	return nic->rings + ring * 1024;
}

static void start_nic(struct machine *m)
{
	struct guest *g = &m->guest;
	struct nic *nic = &m->nic;
	struct vmxnet3_driver_shared *shared;
	struct vmxnet3_tx_queue_desc *tx;
	struct vmxnet3_rx_queue_desc *rx;

	*nic = (struct nic){guest_page(g), guest_page(g), guest_page(g), guest_page(g), 0};
	shared = guest_at(g, nic->shared);
	shared->magic = VMXNET3_REV1_MAGIC;
	shared->misc.mtu = 1500;
	shared->misc.tx_queues = shared->misc.rx_queues = 1;
	shared->misc.queue_desc_addr = nic->queues;
	shared->intr.auto_mask = 1;
	shared->intr.vectors = 1;
	tx = guest_at(g, nic->queues);
	rx = (struct vmxnet3_rx_queue_desc *)(tx + 1);
	tx->ring_addr = ring_address(nic, 0);
	tx->comp_ring_addr = ring_address(nic, 1);
	tx->ring_size = tx->comp_ring_size = RING;
	rx->ring_addr[0] = ring_address(nic, 2);
	rx->comp_ring_addr = ring_address(nic, 3);
	rx->ring_size[0] = rx->comp_ring_size = RING;
	require(!vfio_write(&m->clients[0], NIC_BAR1, VMXNET3_REG_DSAL, (uint32_t)nic->shared));
	require(!vfio_write(&m->clients[0], NIC_BAR1, VMXNET3_REG_DSAH,
			    (uint32_t)(nic->shared >> 32)));
	require(!command(m, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV));
}

static void wait_a_little(void)
{
	const struct timespec pause = {.tv_nsec = 20000};

	nanosleep(&pause, NULL);
}

/* Of 10.0.0.GUEST_ID to the peer's host: its daemon learns the machine's MAC. */
static void write_arp_request(const struct machine *m, uint8_t *frame)
{
	static const uint8_t fixed[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};

	memset(frame, 0, FRAME_LEN);
	memset(frame, 0xff, 6);
	memcpy(frame + 6, m->guest.mac, 6);
	memcpy(frame + 12, fixed, sizeof(fixed));
	memcpy(frame + 22, m->guest.mac, 6);
	memcpy(frame + 28, (const uint8_t[]){10, 0, 0, GUEST_ID}, 4);
	memcpy(frame + 38, (const uint8_t[]){10, 0, 0, PEER_ID}, 4);
}

/* Sends a frame, and waits for its completion, which has the ring's generation. */
static void send_frame(struct machine *m)
{
	struct nic *nic = &m->nic;
	struct vmxnet3_tx_desc *ring = guest_at(&m->guest, ring_address(nic, 0));
	struct vmxnet3_tx_comp *comp = guest_at(&m->guest, ring_address(nic, 1));
	const uint32_t at = nic->sent % RING, gen = !(nic->sent / RING % 2);
	const time_t end = time(NULL) + DEADLINE;
	uint8_t *frame = guest_at(&m->guest, nic->frame);

	write_arp_request(m, frame);
	ring[at].addr = nic->frame;
	ring[at].flags = VMXNET3_TXD_EOP | VMXNET3_TXD_CQ;
	__atomic_store_n(&ring[at].len, FRAME_LEN | (gen ? VMXNET3_TXD_GEN : 0), __ATOMIC_RELEASE);
	nic->sent++;
	require(!vfio_write(&m->clients[0], NIC_BAR0, VMXNET3_REG_TXPROD, nic->sent % RING));
	while (__atomic_load_n(&comp[at].gen, __ATOMIC_ACQUIRE) >> 31 != gen) {
		require(time(NULL) < end);
		wait_a_little();
	}
	require((comp[at].index & 0xfff) == at);
}

static void check_nic(struct machine *m)
{
	require(command(m, (uint32_t)VMXNET3_CMD_GET_LINK) & 1);
	for (uint32_t i = 0; i < FRAMES; i++)
		send_frame(m);
}

/* --- Messages */

static uint8_t seed_of(uint32_t message)
{
	return (uint8_t)(message * 29 + 1);
}

static void post(struct machine *m)
{
	const struct pvrdma_sge to = buffer_sge(&m->recv, 0, m->size);
	const struct pvrdma_sge from = buffer_sge(&m->send, 0, m->size);
	const struct pvrdma_sq_wqe_hdr header = {.wr_id = 1000 + m->message,
						 .num_sge = 1,
						 .opcode = PVRDMA_WR_SEND,
						 .send_flags = URXE_SEND_SIGNALED};

	memset(buffer_at(&m->guest, &m->recv, 0), 0, 64);
	buffer_fill(&m->guest, &m->send, 0, m->size, seed_of(m->message));
	qp_post_recv(&m->guest, &m->qp, m->message, &to, 1);
	qp_post_send(&m->guest, &m->qp, &header, &from);
}

/* Waits for the completions of the message and of its return. */
static void finish(struct machine *m)
{
	const time_t end = time(NULL) + DEADLINE;
	struct pvrdma_cqe cqe;
	int left = 2;

	while (left) {
		if (!cq_poll(&m->guest, &m->cq, &cqe)) {
			require(time(NULL) < end);
			wait_a_little();
			continue;
		}
		require(cqe.status == PVRDMA_WC_SUCCESS && cqe.qp == m->qp.handle);
		require(cqe.wr_id == m->message || cqe.wr_id == 1000 + m->message);
		left--;
	}
	require(buffer_has(&m->guest, &m->recv, 0, m->size, seed_of(m->message)));
	m->message++;
}

static void exchange(struct machine *m, uint32_t n)
{
	while (n--) {
		post(m);
		finish(m);
	}
}

/* --- The connection, by the TCP dialog of ibv_rc_pingpong */

#define DIALOG sizeof("0000:000000:000000:00000000000000000000000000000000")

static int dial(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(port),
					    .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int tries = 0, fd = -1;

	for (;;) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
			return fd;
		close(fd);
		require(++tries < 500);
		usleep(20000);
	}
}

static void set_path(struct pv_qp_attr *attr, const char *gid, const char *mac)
{
	struct ether_addr ether;
	unsigned byte;

	require(ether_aton_r(mac, &ether));
	attr->ah_attr = (struct pv_ah_attr){.ah_flags = 1, .port_num = 1, .hop_limit = 64};
	memcpy(attr->ah_attr.dmac, ether.ether_addr_octet, 6);
	for (int i = 0; i < 16; i++) {
		require(sscanf(gid + 2 * i, "%2x", &byte) == 1);
		attr->ah_attr.dgid[i] = (uint8_t)byte;
	}
}

static void connect_qp(struct machine *m, uint16_t port, const char *mac)
{
	struct pv_qp_attr attr = {.qp_state = URXE_QPS_INIT,
				  .port_num = 1,
				  .path_mtu = URXE_MTU_1024,
				  .sq_psn = 7,
				  .max_rd_atomic = 1,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7};
	char line[DIALOG], gid[33];
	unsigned lid, qpn, psn;
	struct urxe_gid own;
	int fd = dial(port);

	guest_gid(&m->guest, &own);
	sprintf(line, "%04x:%06x:%06x:", 0, m->qp.qpn, attr.sq_psn);
	for (int i = 0; i < 16; i++)
		sprintf(line + 19 + 2 * i, "%02x", own.raw[i]);
	require(write(fd, line, DIALOG) == (ssize_t)DIALOG);
	require(recv(fd, line, DIALOG, MSG_WAITALL) == (ssize_t)DIALOG);
	require(sscanf(line, "%x:%x:%x:%32s", &lid, &qpn, &psn, gid) == 4);
	require(write(fd, "done", 5) == 5);
	close(fd);
	attr.dest_qp_num = qpn;
	attr.rq_psn = psn;
	set_path(&attr, gid, mac);
	require(!qp_modify(&m->guest, &m->qp, &attr,
			   URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
				   URXE_QP_ACCESS_FLAGS));
	attr.qp_state = URXE_QPS_RTR;
	require(!qp_modify(&m->guest, &m->qp, &attr,
			   URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN |
				   URXE_QP_RQ_PSN | URXE_QP_MAX_DEST_RD_ATOMIC |
				   URXE_QP_MIN_RNR_TIMER));
	attr.qp_state = URXE_QPS_RTS;
	require(!qp_modify(&m->guest, &m->qp, &attr,
			   URXE_QP_STATE | URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				   URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC));
}

/* --- Migration */

static void connect_clients(struct guest *g, struct vfio_client clients[2], const char *path)
{
	char rdma[128];

	snprintf(rdma, sizeof(rdma), "%s.1", path);
	vfio_client_connect(&clients[0], path);
	vfio_client_connect(&clients[1], rdma);
	for (int i = 0; i < 2; i++)
		guest_attach(g, &clients[i], i);
}

static void set_states(struct vfio_client clients[2], enum vfio_state state)
{
	for (int i = 0; i < 2; i++)
		require(!vfio_set_state(&clients[i], state));
}

static bool lists_page(const struct pages *pages, uint64_t addr)
{
	for (uint32_t i = 0; i < pages->n; i++)
		if (pages->addr[i] == addr)
			return true;
	return false;
}

/* Pages that drivers write: a hypervisor sees that by the processor. */
static bool is_drivers(const struct machine *m, uint64_t addr)
{
	const struct guest *g = &m->guest;

	return lists_page(&m->qp.pages, addr) || lists_page(&m->send.pages, addr) ||
	       addr == m->cq.pages.addr[0] || addr == g->request || addr == m->nic.rings ||
	       addr == m->nic.frame || addr == m->nic.shared || addr == m->recv.pages.addr[0];
}

static uint64_t address_of_page(uint32_t page)
{
	return page < PAGES / 2 ? page * PV_PAGE : GUEST_HIGH + (page - PAGES / 2) * PV_PAGE;
}

/* Adds the pages that the functions have written since the last call. */
static void take_logs(struct machine *m, uint64_t log[PAGES / 64])
{
	for (int i = 0; i < 2; i++) {
		vfio_take_log(&m->clients[i], 0, GUEST_SMALL, log);
		vfio_take_log(&m->clients[i], GUEST_HIGH, GUEST_SMALL, log + PAGES / 128);
	}
}

/* Copies pages that differ: all of them are in the log or the drivers'. */
static void copy_changes(const struct machine *m, struct guest *to, const uint64_t *log)
{
	uint32_t logged = 0;

	for (uint32_t page = 0; page < PAGES; page++) {
		const uint64_t addr = address_of_page(page);
		const bool marked = log[page / 64] >> page % 64 & 1;

		logged += marked;
		if (!memcmp(guest_at(to, addr), guest_at(&m->guest, addr), PV_PAGE))
			continue;
		require(marked || is_drivers(m, addr));
		memcpy(guest_at(to, addr), guest_at(&m->guest, addr), PV_PAGE);
	}
	require(logged && logged < PAGES / 2);
}

static void copy_all(const struct guest *from, const struct guest *to)
{
	for (uint32_t page = 0; page < PAGES; page++)
		memcpy(guest_at(to, address_of_page(page)), guest_at(from, address_of_page(page)),
		       PV_PAGE);
}

/* The hypervisor gives up after it has read all state, and the machine goes on where it is. */
static void abandon(struct machine *m)
{
	uint8_t *stream;
	size_t length;

	set_states(m->clients, VFIO_STATE_PRE_COPY);
	set_states(m->clients, VFIO_STATE_STOP_COPY);
	for (int i = 0; i < 2; i++) {
		stream = NULL;
		length = 0;
		vfio_read_stream(&m->clients[i], &stream, &length);
		free(stream);
	}
	set_states(m->clients, VFIO_STATE_RUNNING);
}

/* A stream that lacks its end is refused, and the function can be used after a reset. */
static void offer_truncated(struct vfio_client *client, const uint8_t *stream, size_t length)
{
	require(!vfio_set_state(client, VFIO_STATE_RESUMING));
	require(!vfio_write_stream(client, stream, length - 1));
	require(vfio_set_state(client, VFIO_STATE_STOP) == EBADMSG);
	require(vfio_get_state(client) == VFIO_STATE_ERROR);
	vfio_reset(client);
}

static void migrate(struct machine *m, const char *path)
{
	struct vfio_client clients[2];
	uint64_t log[PAGES / 64] = {0};
	uint8_t *streams[2] = {NULL, NULL};
	size_t lengths[2] = {0, 0};
	struct guest copy;

	guest_open_copy(&m->guest, &copy);
	connect_clients(&copy, clients, path);
	for (int i = 0; i < 2; i++)
		require(!vfio_start_log(&m->clients[i]));
	set_states(m->clients, VFIO_STATE_PRE_COPY);
	copy_all(&m->guest, &copy);
	exchange(m, 3);
	take_logs(m, log);
	copy_changes(m, &copy, log);
	memset(log, 0, sizeof(log));
	/* A message is on its way while the machine moves. */
	post(m);
	set_states(m->clients, VFIO_STATE_STOP_COPY);
	for (int i = 0; i < 2; i++)
		vfio_read_stream(&m->clients[i], &streams[i], &lengths[i]);
	take_logs(m, log);
	copy_changes(m, &copy, log);
	for (int i = 0; i < 2; i++) {
		offer_truncated(&clients[i], streams[i], lengths[i]);
		require(!vfio_set_state(&clients[i], VFIO_STATE_RESUMING));
		require(!vfio_write_stream(&clients[i], streams[i], lengths[i]));
		require(!vfio_set_state(&clients[i], VFIO_STATE_STOP));
		free(streams[i]);
	}
	set_states(clients, VFIO_STATE_RUNNING);
	for (int i = 0; i < 2; i++) {
		vfio_client_close(&m->clients[i]);
		m->clients[i] = clients[i];
	}
	vnic_guest_memory_destroy(m->guest.memory);
	munmap(m->guest.bytes, GUEST_MEMORY);
	close(m->guest.fd);
	m->guest = copy;
	m->guest.client = &m->clients[1];
	finish(m);
	check_nic(m);
}

static void start(struct machine *m, const char *path)
{
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .send_cq = &m->cq, .recv_cq = &m->cq, .send_wr = 16};

	guest_open_remote(&m->guest, &(struct guest_attr){.id = GUEST_ID, .small = true});
	connect_clients(&m->guest, m->clients, path);
	start_nic(m);
	guest_start(&m->guest);
	cq_open(&m->guest, &m->cq, 64);
	qp_open(&m->guest, &m->qp, &attr);
	buffer_open(&m->guest, &m->send, SEND_VA, m->size, ACCESS);
	buffer_open(&m->guest, &m->recv, RECV_VA, m->size, ACCESS);
	check_nic(m);
}

int main(int argc, char **argv)
{
	static struct machine m;
	uint32_t moves, iterations, qpn;

	require(argc == 8);
	paths[0] = argv[1];
	paths[1] = argv[2];
	moves = (uint32_t)atoi(argv[3]);
	m.size = (uint32_t)atoi(argv[6]);
	iterations = (uint32_t)atoi(argv[7]);
	start(&m, paths[0]);
	connect_qp(&m, (uint16_t)atoi(argv[5]), argv[4]);
	qpn = m.qp.qpn;
	exchange(&m, 5);
	for (uint32_t i = 1; i <= moves; i++) {
		if (i % 3 == 0) {
			post(&m);
			abandon(&m);
			finish(&m);
			exchange(&m, 2);
		}
		migrate(&m, paths[i % 2]);
		exchange(&m, 2);
	}
	require(qp_query(&m.guest, &m.qp, NULL) == URXE_QPS_RTS && m.qp.qpn == qpn);
	require(m.message < iterations);
	exchange(&m, iterations - m.message);
	printf("%u moves, %u messages\n", moves, m.message);
	return 0;
}
