/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand exchanges messages until SIGTERM, while its device process is replaced.
 *
 * conversing_vm PATH DOORBELLS MAC PEER PORT SIZE: the device process's socket, and its option
 * --doorbells; the peer's host has that MAC and the address 10.0.0.PEER; the arguments of
 * ibv_rc_pingpong. Prints the number of messages so far.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hand_made_vm.h"
#include "require.h"

#define STEP 20u

static volatile sig_atomic_t stopping;

static void stop(int number)
{
	(void)number;
	stopping = 1;
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
	vm_map_doorbells(&m);
	require(!m.guest.attr.uar == !!strcmp(argv[2], "mapped"));
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
