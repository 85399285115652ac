/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand exchanges messages until SIGTERM, while its device process is replaced.
 *
 * conversing_vm PATH DOORBELLS MAC PEER PORT SIZE: the device process's socket, and its option
 * --doorbells; the peer's host has that MAC and the address 10.0.0.PEER; the arguments of
 * ibv_rc_pingpong. Prints the number of messages so far.
 */
#include <linux/vfio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hand_made_vm.h"
#include "require.h"

#define REGION_INFO 5 /* a command of vfio-user */
#define STEP        20u

static volatile sig_atomic_t stopping;

static void stop(int number)
{
	(void)number;
	stopping = 1;
}

/* As QEMU: maps the region whose descriptor comes with the answer. */
static void map_doorbells(struct hand_made_vm *m)
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

	require(send(m->clients[1].socket, &request, sizeof(request), 0) == sizeof(request));
	require(recvmsg(m->clients[1].socket, &msg, 0) == sizeof(answer));
	require(CMSG_FIRSTHDR(&msg) && CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	m->guest.attr.uar = mmap(NULL, PVRDMA_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	require(m->guest.attr.uar != MAP_FAILED);
	close(fd);
}

int main(int argc, char **argv)
{
	static struct hand_made_vm m;
	uint32_t qpn;

	require(argc == 7);
	m.peer = (uint8_t)atoi(argv[4]);
	m.size = (uint32_t)atoi(argv[6]);
	signal(SIGTERM, stop);
	setlinebuf(stdout);
	vm_start(&m, argv[1]);
	if (!strcmp(argv[2], "mapped"))
		map_doorbells(&m);
	vm_connect_qp(&m, (uint16_t)atoi(argv[5]), argv[3]);
	qpn = m.qp.qpn;
	while (!stopping) {
		vm_exchange(&m, STEP);
		vm_check_nic(&m);
		printf("%u messages\n", m.message);
	}
	require(qp_query(&m.guest, &m.qp, NULL) == URXE_QPS_RTS && m.qp.qpn == qpn);
	printf("the queue pair is in RTS\n");
	return 0;
}
