/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two programs with rdma_cm open, usually a client and a server, and helpers for their commands. */
#ifndef URXE_TESTS_UCMA_PROGRAMS_H
#define URXE_TESTS_UCMA_PROGRAMS_H

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ucma_loop.h"

#define PORT   7174
#define SECOND UINT64_C(1000000000)
#define INIT   1 /* enum ib_qp_state */
#define RTR    2
#define RTS    3
#define QPT_RC 2 /* enum ib_qp_type */
#define QPT_UC 3

static struct loop loop;
static struct loop_program a, b;

static inline int set_up(void **state)
{
	(void)state;
	loop_open(&loop);
	a = loop_start(&loop);
	b = loop_start(&loop);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	loop_end(&loop, &a);
	loop_end(&loop, &b);
	/* All connections and their timers must end after the programs have ended. */
	for (int i = 0; i < 100; i++) {
		loop_run(&loop);
		loop_pass(&loop, SECOND);
	}
	assert_int_equal(cm_conns(loop.ucma.cma.cm), 0);
	assert_int_equal(loop.ucma.n, 0);
	loop_close(&loop);
	return 0;
}

#define COMMAND(p, name, request, out) \
	loop_command(&loop, p, RDMA_USER_CM_CMD_##name, &(request), sizeof(request), out, &answer)

static struct loop_answer answer;
static struct loop_event last; /* the event fetched last */

/* --- Commands */

static inline uint32_t create(const struct loop_program *p, uint16_t ps, uint64_t uid)
{
	const struct rdma_ucm_create_id request = {.uid = uid, .ps = ps};
	struct rdma_ucm_create_id_resp response;

	assert_int_equal(COMMAND(p, CREATE_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.id;
}

static inline uint32_t create_ib(const struct loop_program *p, uint8_t qp_type)
{
	const struct rdma_ucm_create_id request = {
		.uid = 0x1b, .ps = RDMA_PS_IB, .qp_type = qp_type};
	struct rdma_ucm_create_id_resp response;

	assert_int_equal(COMMAND(p, CREATE_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.id;
}

static inline uint32_t destroy(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_destroy_id request = {.id = id};
	struct rdma_ucm_destroy_id_resp response;

	assert_int_equal(COMMAND(p, DESTROY_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.events_reported;
}

static inline int bind_to(const struct loop_program *p, uint32_t id, uint32_t ip, uint16_t port)
{
	struct rdma_ucm_bind_ip request = {.id = id};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(ip);
	memcpy(&request.addr, &in, sizeof(in));
	return COMMAND(p, BIND_IP, request, 0);
}

static inline int listen_on(const struct loop_program *p, uint32_t id, uint32_t backlog)
{
	const struct rdma_ucm_listen request = {id, backlog};

	return COMMAND(p, LISTEN, request, 0);
}

static inline int resolve(const struct loop_program *p, uint32_t id)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 1000};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&request.dst_addr, &in, sizeof(in));
	return COMMAND(p, RESOLVE_IP, request, 0);
}

static inline int resolve6(const struct loop_program *p, uint32_t id)
{
	const struct sockaddr_in6 in = {.sin6_family = AF_INET6,
					.sin6_port = htons(PORT),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 1000};

	memcpy(&request.dst_addr, &in, sizeof(in));
	return COMMAND(p, RESOLVE_IP, request, 0);
}

static inline int resolve_route(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_resolve_route request = {.id = id};

	return COMMAND(p, RESOLVE_ROUTE, request, 0);
}

static inline void set_byte_option(const struct loop_program *p, uint32_t id, uint32_t name,
				   uint8_t value)
{
	const struct {
		struct rdma_ucm_set_option option;
		uint8_t value;
	} set = {{.id = id, .level = RDMA_OPTION_ID, .optname = name, .optlen = sizeof(value)},
		 value};

	assert_int_equal(loop_command(&loop, p, RDMA_USER_CM_CMD_SET_OPTION, &set,
				      offsetof(typeof(set), value) + 1, 0, &answer),
			 0);
}

static inline void set_ack_timeout(const struct loop_program *p, uint32_t id, uint8_t timeout)
{
	set_byte_option(p, id, RDMA_OPTION_ID_ACK_TIMEOUT, timeout);
}

static inline struct rdma_ucm_conn_param param(uint32_t qpn, uint8_t len)
{
	struct rdma_ucm_conn_param p = {.qp_num = qpn,
					.private_data_len = len,
					.responder_resources = 3,
					.initiator_depth = 4,
					.retry_count = 6,
					.rnr_retry_count = 5,
					.valid = 1};

	memset(p.private_data, 0x5a, len);
	return p;
}

static inline int connect_to(const struct loop_program *p, uint32_t id, uint32_t qpn, uint8_t len)
{
	const struct rdma_ucm_connect request = {.id = id, .conn_param = param(qpn, len)};

	return COMMAND(p, CONNECT, request, 0);
}

static inline int accept_with(const struct loop_program *p, uint32_t id, uint8_t len)
{
	const struct rdma_ucm_accept request = {
		.id = id, .uid = 0xc, .conn_param = param(LOOP_QPN + 1, len)};

	return COMMAND(p, ACCEPT, request, 0);
}

static inline int accept_it(const struct loop_program *p, uint32_t id, uint64_t uid, uint32_t qpn)
{
	struct rdma_ucm_accept request = {.id = id, .uid = uid};

	if (qpn)
		request.conn_param = param(qpn, 196);
	return COMMAND(p, ACCEPT, request, 0);
}

static inline int disconnect(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_disconnect request = {.id = id};

	return COMMAND(p, DISCONNECT, request, 0);
}

static inline struct rdma_ucm_event_resp get_event(struct loop_program *p, uint32_t type)
{
	const struct rdma_ucm_get_event tell = {0};
	struct rdma_ucm_event_resp event;

	assert_true(loop_fetch(&loop, p, &last));
	memcpy(&event, last.bytes, sizeof(event));
	assert_int_equal(event.event, type);
	if (last.head.confirm)
		assert_int_equal(COMMAND(p, GET_EVENT, tell, 0), 0);
	return event;
}

static inline void expect_no_event(struct loop_program *p)
{
	assert_false(loop_fetch(&loop, p, &last));
}

/* Expects that the last command has withdrawn n packets of the program. */
static inline void expect_withdrawn(const struct loop_program *p, uint32_t n)
{
	assert_int_equal(answer.reply.withdrawn, n);
	loop_take_back(p, n);
}

/* Expects that the last command has cancelled n events, and has withdrawn none. */
static inline void expect_cancelled(uint32_t n)
{
	assert_int_equal(answer.reply.withdrawn, 0);
	assert_int_equal(answer.reply.n_cancelled, n);
}

static inline struct ib_uverbs_qp_attr qp_attr(const struct loop_program *p, uint32_t id,
					       uint32_t to)
{
	const struct rdma_ucm_init_qp_attr request = {.id = id, .qp_state = to};
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(COMMAND(p, INIT_QP_ATTR, request, sizeof(attr)), 0);
	memcpy(&attr, answer.out, sizeof(attr));
	return attr;
}

/* --- Sequences of commands */

static inline uint32_t listener(uint32_t backlog)
{
	uint32_t id = create(&b, RDMA_PS_TCP, 0xb);

	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, id, backlog), 0);
	return id;
}

static inline uint32_t client_without_route(uint16_t ps)
{
	uint32_t id = create(&a, ps, 0xa);

	assert_int_equal(resolve(&a, id), 0);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).status, 0);
	return id;
}

static inline uint32_t client(uint16_t ps)
{
	uint32_t id = client_without_route(ps);

	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	return id;
}

/* Returns the server's ID. */
static inline uint32_t establish(uint32_t id)
{
	struct rdma_ucm_event_resp event;
	uint32_t child;

	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), 0);
	loop_run(&loop);
	event = get_event(&b, CMA_CONNECT_REQUEST);
	child = event.id;
	assert_int_equal(event.uid, 0xb);
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(event.param.conn.private_data_len, 196);
	assert_int_equal(event.param.conn.private_data[195], 0x5a);
	assert_int_equal(accept_it(&a, id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_ESTABLISHED).uid, 0xc);
	return child;
}

#endif
