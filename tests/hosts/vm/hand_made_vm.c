/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hand_made_vm.h"

#include <arpa/inet.h>
#include <linux/vfio.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "require.h"

#define REGION_INFO 5 /* a command of vfio-user */

#define GUEST_ID  9
#define SEND_VA   UINT64_C(0x7f0000000040)
#define RECV_VA   UINT64_C(0x7f0000800080)
#define ACCESS    15u
#define RING      32u
#define FRAMES    5u /* of vm_check_nic: the ring wraps in some calls */
#define FRAME_LEN 100u
#define DEADLINE  60 /* s, for each message */

#define NIC_BAR0 0u
#define NIC_BAR1 1u

/* --- The vmxnet3 */

static uint32_t command(struct hand_made_vm *m, uint32_t number)
{
	require(!vfio_write(&m->clients[0], NIC_BAR1, VMXNET3_REG_CMD, number));
	return vfio_read(&m->clients[0], NIC_BAR1, VMXNET3_REG_CMD);
}

/* Transmit ring, its completions, receive ring, its completions. */
static uint64_t ring_address(const struct vm_nic *nic, unsigned ring)
{
	return nic->rings + ring * 1024;
}

static void start_nic(struct hand_made_vm *m)
{
	struct guest *g = &m->guest;
	struct vm_nic *nic = &m->nic;
	struct vmxnet3_driver_shared *shared;
	struct vmxnet3_tx_queue_desc *tx;
	struct vmxnet3_rx_queue_desc *rx;

	*nic = (struct vm_nic){guest_page(g), guest_page(g), guest_page(g), guest_page(g), 0};
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
static void write_arp_request(const struct hand_made_vm *m, uint8_t *frame)
{
	static const uint8_t fixed[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};

	memset(frame, 0, FRAME_LEN);
	memset(frame, 0xff, 6);
	memcpy(frame + 6, m->guest.mac, 6);
	memcpy(frame + 12, fixed, sizeof(fixed));
	memcpy(frame + 22, m->guest.mac, 6);
	memcpy(frame + 28, (const uint8_t[]){10, 0, 0, GUEST_ID}, 4);
	memcpy(frame + 38, (const uint8_t[]){10, 0, 0, m->peer}, 4);
}

/* Sends a frame, and waits for its completion, which has the ring's generation. */
static void send_frame(struct hand_made_vm *m)
{
	struct vm_nic *nic = &m->nic;
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

void vm_check_nic(struct hand_made_vm *m)
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

void vm_post(struct hand_made_vm *m)
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

void vm_wait_returned(struct hand_made_vm *m, uint32_t bytes)
{
	const time_t end = time(NULL) + DEADLINE;

	while (!buffer_has(&m->guest, &m->recv, 0, bytes, seed_of(m->message))) {
		require(time(NULL) < end);
		wait_a_little();
	}
}

/* Waits for the completions of the message and of its return. */
void vm_finish(struct hand_made_vm *m)
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

void vm_exchange(struct hand_made_vm *m, uint32_t n)
{
	while (n--) {
		vm_post(m);
		vm_finish(m);
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

/* The peer's urxed asks for the machine's MAC, and learns it from the machine's own requests. */
static void receive_line(struct hand_made_vm *m, int fd, char line[DIALOG])
{
	const time_t end = time(NULL) + DEADLINE;

	while (recv(fd, line, DIALOG, MSG_PEEK | MSG_DONTWAIT) != (ssize_t)DIALOG) {
		require(time(NULL) < end);
		send_frame(m);
		usleep(10000);
	}
	require(recv(fd, line, DIALOG, 0) == (ssize_t)DIALOG);
}

/* The descriptor that comes with the description of the region; -1: none. */
static int ask_doorbells(const struct vfio_client *client)
{
	const struct {
		uint16_t id, command;
		uint32_t size, flags, error;
		struct vfio_region_info info;
	} request = {1, REGION_INFO, sizeof(request),
		     0, 0,           {.argsz = sizeof(request.info), .index = PV_BAR_UAR}};
	uint8_t answer[sizeof(request)];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {answer, sizeof(answer)};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control)};
	int fd;

	require(send(client->socket, &request, sizeof(request), 0) == sizeof(request));
	require(recvmsg(client->socket, &msg, 0) == sizeof(answer));
	if (!CMSG_FIRSTHDR(&msg))
		return -1;
	require(CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

void vm_map_doorbells(struct hand_made_vm *m)
{
	void **uar = &m->guest.attr.uar;
	int fd = ask_doorbells(&m->clients[1]);

	if (*uar)
		munmap(*uar, PVRDMA_UAR_SIZE);
	*uar = NULL;
	if (fd < 0)
		return;
	*uar = mmap(NULL, PVRDMA_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	require(*uar != MAP_FAILED);
	close(fd);
}

void vm_connect_qp(struct hand_made_vm *m, uint16_t port, const char *mac)
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
	receive_line(m, fd, line);
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

/* --- The start */

void vm_connect_clients(struct guest *g, struct vfio_client clients[2], const char *path)
{
	char rdma[128];

	snprintf(rdma, sizeof(rdma), "%s.1", path);
	vfio_client_connect(&clients[0], path);
	vfio_client_connect(&clients[1], rdma);
	for (int i = 0; i < 2; i++)
		guest_attach(g, &clients[i], i);
}

void vm_start(struct hand_made_vm *m, const char *path)
{
	const struct qp_attr attr = {
		.type = PV_QPT_RC, .send_cq = &m->cq, .recv_cq = &m->cq, .send_wr = 16};

	guest_open_remote(&m->guest, &(struct guest_attr){.id = GUEST_ID, .small = true});
	vm_connect_clients(&m->guest, m->clients, path);
	start_nic(m);
	guest_start(&m->guest);
	cq_open(&m->guest, &m->cq, 64);
	qp_open(&m->guest, &m->qp, &attr);
	buffer_open(&m->guest, &m->send, SEND_VA, m->size, ACCESS);
	buffer_open(&m->guest, &m->recv, RECV_VA, m->size, ACCESS);
	vm_check_nic(m);
}
