/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs do before and after an interruption: a restart of the daemon (test_ucma_restart.c),
 * or a move of the programs (test_ucma_checkpoint.c).
 */
#ifndef URXE_TESTS_UCMA_SCENES_H
#define URXE_TESTS_UCMA_SCENES_H

#include "ucma_programs.h"

/* Interrupts both programs. */
typedef void interrupt_fn(void);

/* A connection is made before, and ended after the interruption; then the listener takes another.
 */
static inline void connection_outlives(interrupt_fn *interrupt)
{
	struct ib_uverbs_qp_attr before, after;
	uint32_t listens = listener(5), id = client(RDMA_PS_TCP), child = establish(id);

	before = qp_attr(&a, id, RTR);
	interrupt();
	after = qp_attr(&a, id, RTR);
	assert_memory_equal(&before, &after, sizeof(after));
	assert_int_equal(loop.n, 0);
	assert_int_equal(disconnect(&a, id), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_DISCONNECTED).uid, 0xc);
	assert_int_equal(disconnect(&b, child), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_DISCONNECTED).uid, 0xa);
	/* The sum of the events that were reported before and after. */
	assert_int_equal(destroy(&a, id), 4);
	assert_int_equal(destroy(&b, child), 2);
	establish(client(RDMA_PS_TCP));
	assert_int_equal(destroy(&b, listens), 2);
	expect_no_event(&a);
}

/* The ACK timeout and type of service that a program has set before it resolved the route. */
static inline void options_of_a_route_outlive(interrupt_fn *interrupt)
{
	uint32_t id = client_without_route(RDMA_PS_TCP), child;

	set_ack_timeout(&a, id, 20);
	set_byte_option(&a, id, RDMA_OPTION_ID_TOS, 0x60);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	set_byte_option(&a, id, RDMA_OPTION_ID_TOS, 0);
	interrupt();
	listener(5);
	child = establish(id);
	assert_int_equal(qp_attr(&a, id, RTS).timeout, 20);
	assert_int_equal(qp_attr(&b, child, RTS).timeout, 20);
	assert_int_equal(qp_attr(&b, child, RTR).ah_attr.grh.traffic_class, 0x60);
}

/* A request that came over RoCEv1 has a GID index of its own. */
static inline void connection_over_v1_outlives(interrupt_fn *interrupt)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id, child;

	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop.flying[0].path.sgid_index += HOST_ADDRESSES;
	loop_run(&loop);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	interrupt();
	attr = qp_attr(&b, child, RTR);
	assert_in_range(attr.ah_attr.grh.sgid_index, HOST_ADDRESSES, VNIC_ATTACH_GIDS - 1);
}

/* Returns the number of the group. */
static inline uint32_t join(uint32_t id)
{
	struct rdma_ucm_join_ip_mcast request = {.uid = 0x10, .id = id};
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203)};

	memcpy(&request.addr, &in, sizeof(in));
	assert_int_equal(COMMAND(&a, JOIN_IP_MCAST, request, 4), 0);
	return ((struct rdma_ucm_create_id_resp *)(void *)answer.out)->id;
}

/* The interruptions come before and after the program fetches the event of its group. */
static inline void group_outlives(interrupt_fn *interrupt)
{
	struct rdma_ucm_destroy_id leave;
	uint32_t id = create(&a, RDMA_PS_UDP, 0xa);

	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	join(id);
	interrupt();
	leave = (struct rdma_ucm_destroy_id){.id = get_event(&a, CMA_MULTICAST_JOIN).id};
	interrupt();
	assert_int_equal(COMMAND(&a, LEAVE_MCAST, leave, 4), 0);
	assert_int_equal(((struct rdma_ucm_destroy_id_resp *)(void *)answer.out)->events_reported,
			 1);
	interrupt();
	assert_int_equal(COMMAND(&a, LEAVE_MCAST, leave, 4), -ENOENT);
}

/* Two requests, which b does not fetch, from the queue pairs LOOP_QPN and LOOP_QPN + 2. */
static inline uint32_t request_twice(void)
{
	uint32_t first, second;

	listener(5);
	first = client(RDMA_PS_TCP);
	second = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, first, LOOP_QPN, 0), 0);
	assert_int_equal(connect_to(&a, second, LOOP_QPN + 2, 0), 0);
	loop_run(&loop);
	return first;
}

/* The server accepts the first one of two requests with LOOP_QPN + 1. */
static inline void accept_first(void)
{
	struct rdma_ucm_event_resp event = get_event(&b, CMA_CONNECT_REQUEST);

	assert_int_equal(event.param.conn.qp_num, LOOP_QPN);
	assert_int_equal(accept_it(&b, event.id, 0xc, LOOP_QPN + 1), 0);
}

#endif
