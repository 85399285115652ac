/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* /dev/infiniband/rdma_cm as programs see it: commands, events and errors as the kernel's. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <cm/ip.h>

#include "ucma_loop.h"

#define PORT   7174
#define SECOND UINT64_C(1000000000)
#define INIT   1 /* enum ib_qp_state */
#define RTR    2
#define RTS    3
#define QPT_RC 2 /* enum ib_qp_type */
#define QPT_UC 3

#define STRANGER 65534 /* the user nobody, as a rule */

static struct loop loop;
static struct loop_program a, b;

static int set_up(void **state)
{
	(void)state;
	loop_open(&loop);
	a = loop_start(&loop);
	b = loop_start(&loop);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	loop_end(&loop, &a);
	loop_end(&loop, &b);
	/* Whoever is gone is disconnected; nobody has an answer to wait for in the end. */
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

/* --- Commands */

static uint32_t create(const struct loop_program *p, uint16_t ps, uint64_t uid)
{
	const struct rdma_ucm_create_id request = {.uid = uid, .ps = ps};
	struct rdma_ucm_create_id_resp response;

	assert_int_equal(COMMAND(p, CREATE_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.id;
}

static uint32_t create_ib(const struct loop_program *p, uint8_t qp_type)
{
	const struct rdma_ucm_create_id request = {
		.uid = 0x1b, .ps = RDMA_PS_IB, .qp_type = qp_type};
	struct rdma_ucm_create_id_resp response;

	assert_int_equal(COMMAND(p, CREATE_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.id;
}

static uint32_t destroy(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_destroy_id request = {.id = id};
	struct rdma_ucm_destroy_id_resp response;

	assert_int_equal(COMMAND(p, DESTROY_ID, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.events_reported;
}

static int bind_to(const struct loop_program *p, uint32_t id, uint32_t ip, uint16_t port)
{
	struct rdma_ucm_bind_ip request = {.id = id};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(ip);
	memcpy(&request.addr, &in, sizeof(in));
	return COMMAND(p, BIND_IP, request, 0);
}

static int listen_on(const struct loop_program *p, uint32_t id, uint32_t backlog)
{
	const struct rdma_ucm_listen request = {id, backlog};

	return COMMAND(p, LISTEN, request, 0);
}

static int resolve(const struct loop_program *p, uint32_t id)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 1000};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&request.dst_addr, &in, sizeof(in));
	return COMMAND(p, RESOLVE_IP, request, 0);
}

static int resolve6(const struct loop_program *p, uint32_t id)
{
	const struct sockaddr_in6 in = {.sin6_family = AF_INET6,
					.sin6_port = htons(PORT),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 1000};

	memcpy(&request.dst_addr, &in, sizeof(in));
	return COMMAND(p, RESOLVE_IP, request, 0);
}

static int resolve_route(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_resolve_route request = {.id = id};

	return COMMAND(p, RESOLVE_ROUTE, request, 0);
}

static struct rdma_ucm_conn_param param(uint32_t qpn, uint8_t len)
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

static int connect_to(const struct loop_program *p, uint32_t id, uint32_t qpn, uint8_t len)
{
	const struct rdma_ucm_connect request = {.id = id, .conn_param = param(qpn, len)};

	return COMMAND(p, CONNECT, request, 0);
}

static int accept_with(const struct loop_program *p, uint32_t id, uint8_t len)
{
	const struct rdma_ucm_accept request = {
		.id = id, .uid = 0xc, .conn_param = param(LOOP_QPN + 1, len)};

	return COMMAND(p, ACCEPT, request, 0);
}

static int accept_it(const struct loop_program *p, uint32_t id, uint64_t uid, uint32_t qpn)
{
	struct rdma_ucm_accept request = {.id = id, .uid = uid};

	if (qpn)
		request.conn_param = param(qpn, 196);
	return COMMAND(p, ACCEPT, request, 0);
}

static int disconnect(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_disconnect request = {.id = id};

	return COMMAND(p, DISCONNECT, request, 0);
}

static bool rings(const struct loop_program *p)
{
	uint8_t byte;

	return recv(p->bell, &byte, sizeof(byte), MSG_DONTWAIT) == 1;
}

static struct rdma_ucm_event_resp get_event(const struct loop_program *p, uint32_t type)
{
	const struct rdma_ucm_get_event request = {0};
	struct rdma_ucm_event_resp event;

	assert_true(rings(p));
	assert_int_equal(COMMAND(p, GET_EVENT, request, sizeof(event)), 0);
	memcpy(&event, answer.out, sizeof(event));
	assert_int_equal(event.event, type);
	return event;
}

static void expect_no_event(const struct loop_program *p)
{
	const struct rdma_ucm_get_event request = {0};

	assert_false(rings(p));
	assert_int_equal(COMMAND(p, GET_EVENT, request, sizeof(struct rdma_ucm_event_resp)),
			 -EAGAIN);
}

static struct ib_uverbs_qp_attr qp_attr(const struct loop_program *p, uint32_t id, uint32_t to)
{
	const struct rdma_ucm_init_qp_attr request = {.id = id, .qp_state = to};
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(COMMAND(p, INIT_QP_ATTR, request, sizeof(attr)), 0);
	memcpy(&attr, answer.out, sizeof(attr));
	return attr;
}

/* --- Whole ways */

static uint32_t listener(uint32_t backlog)
{
	uint32_t id = create(&b, RDMA_PS_TCP, 0xb);

	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, id, backlog), 0);
	return id;
}

static uint32_t client(uint16_t ps)
{
	uint32_t id = create(&a, ps, 0xa);

	assert_int_equal(resolve(&a, id), 0);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).status, 0);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	return id;
}

/* Returns the server's ID. */
static uint32_t establish(uint32_t id)
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

/* --- Tests */

static void test_connect_and_disconnect(void **state)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	child = establish(id);
	attr = qp_attr(&a, id, RTR);
	assert_int_equal(attr.dest_qp_num, LOOP_QPN + 1);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.rq_psn, qp_attr(&b, child, RTS).sq_psn);
	attr = qp_attr(&b, child, RTR);
	assert_int_equal(attr.dest_qp_num, LOOP_QPN);
	assert_int_equal(attr.rq_psn, qp_attr(&a, id, RTS).sq_psn);
	assert_int_equal(qp_attr(&b, child, RTS).retry_cnt, 6);
	assert_int_equal(disconnect(&a, id), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_DISCONNECTED).status, 0);
	assert_int_equal(disconnect(&b, child), 0);
	loop_run(&loop);
	get_event(&a, CMA_DISCONNECTED);
	assert_int_equal(destroy(&a, id), 4);
	/* The request counts as its listener's. */
	assert_int_equal(destroy(&b, child), 2);
	expect_no_event(&a);
}

static void test_private_data_of_a_request(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 57), -EINVAL);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), 0);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 56), -EINVAL);
	loop_run(&loop);
	event = get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(event.param.conn.private_data_len, 56);
	assert_int_equal(event.param.conn.private_data[55], 0x5a);
	assert_int_equal(event.param.conn.qp_num, LOOP_QPN);
	assert_int_equal(event.param.conn.responder_resources, 4);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.retry_count, 6);
}

static void test_reject(void **state)
{
	struct rdma_ucm_reject request = {.private_data_len = 148};
	struct rdma_ucm_event_resp event;
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	request.id = get_event(&b, CMA_CONNECT_REQUEST).id;
	request.private_data[147] = 0x77;
	assert_int_equal(COMMAND(&b, REJECT, request, 0), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_REJECTED);
	assert_int_equal(event.status, CM_REJ_CONSUMER);
	assert_int_equal(event.param.conn.private_data_len, 148);
	assert_int_equal(event.param.conn.private_data[147], 0x77);
}

static void test_nobody_listens(void **state)
{
	uint32_t id;

	(void)state;
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
}

static void test_nobody_answers(void **state)
{
	uint32_t id;

	(void)state;
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	for (int i = 0; i < 80; i++) {
		loop.n = 0;
		loop_pass(&loop, SECOND);
	}
	assert_int_equal((int)get_event(&a, CMA_UNREACHABLE).status, -ETIMEDOUT);
}

/* A full backlog is as a loss: the request comes again, and then there is room. */
static void test_backlog(void **state)
{
	uint32_t first, second;

	(void)state;
	listener(1);
	first = client(RDMA_PS_TCP);
	second = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, first, LOOP_QPN, 0), 0);
	assert_int_equal(connect_to(&a, second, LOOP_QPN + 2, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.qp_num, LOOP_QPN);
	expect_no_event(&b);
	loop_pass(&loop, 6 * SECOND);
	loop_run(&loop);
	assert_int_equal(get_event(&b, CMA_CONNECT_REQUEST).param.conn.qp_num, LOOP_QPN + 2);
}

/* The death of a program is a disconnect. */
static void test_death_disconnects(void **state)
{
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	establish(id);
	loop_end(&loop, &b);
	loop_run(&loop);
	get_event(&a, CMA_DISCONNECTED);
	b = loop_start(&loop);
}

/* Requests that nobody fetched are rejected with their listener, and do not ring any more. */
static void test_listener_goes(void **state)
{
	uint32_t server, id;

	(void)state;
	server = listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(destroy(&b, server), 0);
	assert_int_equal(answer.reply.withdrawn, 1);
	assert_true(rings(&b));
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	expect_no_event(&b);
}

/* A server without a listener for a moment, and a client that is quicker. */
static void test_listener_comes_back(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(destroy(&b, listener(5)), 0);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	expect_no_event(&a);
	listener(5);
	loop_pass(&loop, 0);
	get_event(&b, CMA_CONNECT_REQUEST);
	expect_no_event(&a);
}

static void test_listener_stays_away(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(destroy(&b, listener(5)), 0);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	loop_pass(&loop, CMA_EARLY_KEPT_NS - 1);
	loop_run(&loop);
	expect_no_event(&a);
	loop_pass(&loop, 1);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
}

static void test_listener_long_gone(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(destroy(&b, listener(5)), 0);
	loop_pass(&loop, CMA_EARLY_GONE_NS + 1);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
}

/* No more are kept than there are places: who comes then is refused at once. */
static void test_many_come_early(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(destroy(&b, listener(5)), 0);
	for (uint32_t i = 0; i < CMA_EARLY_MAX; i++) {
		id = client(RDMA_PS_TCP);
		assert_int_equal(connect_to(&a, id, LOOP_QPN + i, 0), 0);
		loop_run(&loop);
		expect_no_event(&a);
	}
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
}

static void test_datagrams(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t server, id;

	(void)state;
	server = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(bind_to(&b, server, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, server, 5), 0);
	id = client(RDMA_PS_UDP);
	assert_int_equal(connect_to(&a, id, 0, 181), -EINVAL);
	assert_int_equal(connect_to(&a, id, 0, 180), 0);
	loop_run(&loop);
	event = get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(event.param.ud.private_data_len, 180);
	assert_int_equal(accept_with(&b, event.id, 136), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_ESTABLISHED);
	assert_int_equal(event.param.ud.qp_num, LOOP_QPN + 1);
	assert_int_equal(event.param.ud.qkey, CMA_UD_QKEY);
	assert_int_equal(event.param.ud.ah_attr.is_global, 1);
	assert_int_equal(event.param.ud.private_data_len, 136);
	assert_int_equal(qp_attr(&a, id, INIT).qkey, CMA_UD_QKEY);
}

/* --- AF_IB, and the commands that came with it */

struct sockaddr_ib {
	uint16_t family, pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t service_id, mask, scope_id;
};

static int bind_ib(uint32_t id, const struct sockaddr_ib *addr)
{
	struct rdma_ucm_bind request = {.id = id, .addr_size = sizeof(*addr)};

	memcpy(&request.addr, addr, sizeof(*addr));
	return COMMAND(&a, BIND, request, 0);
}

static struct rdma_ucm_query_addr_resp query(uint32_t id, uint32_t option)
{
	const struct rdma_ucm_query request = {.id = id, .option = option};
	struct rdma_ucm_query_addr_resp response = {0};

	assert_int_equal(COMMAND(&a, QUERY, request, sizeof(response)), 0);
	memcpy(&response, answer.out, answer.reply.out);
	return response;
}

/* librdmacm tries the wildcard to see whether there is AF_IB; RoCE has no more of it. */
static void test_af_ib(void **state)
{
	struct sockaddr_ib addr = {.family = CMA_AF_IB,
				   .service_id = htobe64(0x1060000),
				   .mask = htobe64(0xffffffffffff0000)};
	struct rdma_ucm_resolve_addr request = {.dst_size = sizeof(addr)};
	struct rdma_ucm_query_addr_resp response;
	uint32_t id;

	(void)state;
	id = create_ib(&a, QPT_RC);
	addr.gid[15] = 2;
	assert_int_equal(bind_ib(id, &addr), -ENODEV);
	addr.gid[15] = 0;
	assert_int_equal(bind_ib(id, &addr), 0);
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size, sizeof(addr));
	memcpy(&addr, &response.src_addr, sizeof(addr));
	assert_int_equal(be64toh(addr.service_id) >> 16, RDMA_PS_TCP);
	assert_in_range(be64toh(addr.service_id) & 0xffff, CMA_PORT_FIRST, CMA_PORT_LAST);
	destroy(&a, id);

	id = create(&a, RDMA_PS_UDP, 1);
	addr.service_id = htobe64(0x1060000 | PORT);
	assert_int_equal(bind_ib(id, &addr), -EPROTONOSUPPORT);
	addr.service_id = htobe64(0x1110000 | PORT);
	assert_int_equal(bind_ib(id, &addr), 0);
	/* Whoever comes by IP is not for it. */
	assert_int_equal(listen_on(&a, id, 5), 0);
	id = client(RDMA_PS_UDP);
	assert_int_equal(connect_to(&a, id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_UNREACHABLE).status, CM_SIDR_REJECT);

	request.id = create(&a, RDMA_PS_TCP, 1);
	memcpy(&request.dst_addr, &addr, sizeof(addr));
	assert_int_equal(COMMAND(&a, RESOLVE_ADDR, request, 0), -ENODEV);
}

/* As the kernel has it, on no device, unless there is none but this host. */
static void test_bound_to_loopback(void **state)
{
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(be64toh(query(id, RDMA_USER_CM_QUERY_ADDR).node_guid),
			 cma_guid(&loop.host));
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		loop.host.addresses[i].uplink = 0;
	id = create(&a, RDMA_PS_TCP, 0xb);
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, 0), 0);
	assert_int_equal(query(id, RDMA_USER_CM_QUERY_ADDR).node_guid, 0);
	assert_int_equal(query(id, RDMA_USER_CM_QUERY_ADDR).src_size, sizeof(struct sockaddr_in));
}

static void test_query(void **state)
{
	static const uint8_t zero[16];
	struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_PATH};
	struct rdma_ucm_query_addr_resp response;
	struct rdma_ucm_query_path_resp paths;
	const uint8_t *own;
	struct sockaddr_ib ib;
	struct sockaddr_in in;
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size + response.dst_size + response.node_guid, 0);
	response = query(id, RDMA_USER_CM_QUERY_GID);
	memcpy(&ib, &response.src_addr, sizeof(ib));
	assert_memory_equal(ib.gid, zero, sizeof(ib.gid));
	id = client(RDMA_PS_TCP);
	response = query(id, RDMA_USER_CM_QUERY_ADDR);
	assert_int_equal(response.src_size, sizeof(in));
	assert_int_equal(response.dst_size, sizeof(in));
	assert_int_equal(response.port_num, 1);
	assert_int_equal(be64toh(response.node_guid), cma_guid(&loop.host));
	memcpy(&in, &response.dst_addr, sizeof(in));
	assert_int_equal(ntohs(in.sin_port), PORT);
	response = query(id, RDMA_USER_CM_QUERY_GID);
	memcpy(&ib, &response.dst_addr, sizeof(ib));
	assert_int_equal(response.dst_size, sizeof(ib));
	assert_int_equal(be64toh(ib.service_id), 0x1060000 | PORT);
	own = loop.host.addresses[cma_find(&loop.ucma.cma, id)->sgid_index].ip;
	assert_memory_equal(ib.gid, own, sizeof(ib.gid));

	request.id = id;
	assert_int_equal(COMMAND(&a, QUERY, request, 7), -ENOSPC);
	assert_int_equal(COMMAND(&a, QUERY, request, 79), 0);
	assert_int_equal(answer.reply.out, sizeof(paths));
	assert_int_equal(COMMAND(&a, QUERY, request, 400), 0);
	assert_int_equal(answer.reply.out, sizeof(paths) + sizeof(struct ib_path_rec_data));
	memcpy(&paths, answer.out, sizeof(paths));
	assert_int_equal(paths.num_paths, 1);
	/* The destination's GID in the record, and the hop limit behind the flow label. */
	assert_memory_equal(answer.out + 16 + 8, own, 16);
	assert_int_equal(answer.out[16 + 47], 64);
	request.option = RDMA_USER_CM_QUERY_ADDR;
	assert_int_equal(COMMAND(&a, QUERY, request, 271), -ENOSPC);
	request.option = 4;
	assert_int_equal(COMMAND(&a, QUERY, request, 400), -ENOSYS);
}

/* A path that the program has from elsewhere is a route. */
static void test_path_option(void **state)
{
	struct {
		struct rdma_ucm_set_option option;
		struct ib_path_rec_data path;
	} request = {.option = {.level = RDMA_OPTION_IB,
				.optname = RDMA_OPTION_IB_PATH,
				.optlen = sizeof(struct ib_path_rec_data)},
		     .path = {.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL}};

	(void)state;
	((uint8_t *)request.path.path_rec)[48] = 0x68; /* the traffic class */
	request.option.id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL); /* nowhere */
	assert_int_equal(resolve(&a, request.option.id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	request.option.optlen--;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	request.option.optlen = 0;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	request.option.optlen = sizeof(request.path);
	request.path.flags = IB_PATH_GMP;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	request.path.flags |= IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	listener(5);
	establish(request.option.id);
	assert_int_equal(qp_attr(&a, request.option.id, RTR).ah_attr.grh.traffic_class, 0x68);
}

/* Who has too much to say cannot accept, and the peer does not wait for it. */
static void test_accept_fails(void **state)
{
	uint32_t server, id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(accept_with(&b, get_event(&b, CMA_CONNECT_REQUEST).id, 197), -EINVAL);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);

	server = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(bind_to(&b, server, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, server, 5), 0);
	id = client(RDMA_PS_UDP);
	assert_int_equal(connect_to(&a, id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(accept_with(&b, get_event(&b, CMA_CONNECT_REQUEST).id, 137), -EINVAL);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_UNREACHABLE).status, CM_SIDR_REJECT);
}

/* Somebody listens at the port, but not for this type of queue pair or this address. */
static void test_not_for_all(void **state)
{
	uint32_t server = create_ib(&b, QPT_UC), id;

	(void)state;
	assert_int_equal(bind_to(&b, server, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, server, 5), 0);
	id = create_ib(&a, QPT_RC);
	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	expect_no_event(&b);
}

/* A request from elsewhere, whose sender says who it is; whether the listener heard of it. */
static bool is_heard_as(const char *address)
{
	struct cm_ip_hdr hdr = {.src_port = 9};
	struct cm_path path = {.pkey = 0xffff};
	struct cm_mad mad = {.attr = CM_SIDR_REQ,
			     .sidr_req = {.request_id = 5,
					  .pkey = 0xffff,
					  .service_id = cm_service_id(RDMA_PS_UDP, PORT)}};
	uint8_t bytes[CM_MAD_LEN];
	bool heard;

	assert_int_equal(inet_pton(AF_INET6, address, hdr.src), 1);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:169.254.9.9", path.dgid), 1);
	memcpy(hdr.dst, loop.host.addresses[1].ip, sizeof(hdr.dst));
	hdr.v6 = memcmp(address, "::ffff:", 7);
	cm_ip_build(&hdr, mad.private_data);
	cm_mad_build(&mad, bytes);
	cma_input(&loop.ucma.cma, loop.now, &path, bytes);
	heard = rings(&b);
	assert_int_equal(loop.n, !heard);
	loop.n = 0;
	return heard;
}

/* Nobody outside is this host, all hosts, or a group. */
static void test_pretenders(void **state)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rdma_ucm_bind_ip request = {.addr = any};
	char own[INET6_ADDRSTRLEN];

	(void)state;
	request.id = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), 0);
	assert_int_equal(listen_on(&b, request.id, 5), 0);
	assert_false(is_heard_as("::ffff:127.0.0.1"));
	assert_false(is_heard_as("::1"));
	assert_false(is_heard_as("::ffff:0.0.0.0"));
	assert_false(is_heard_as("::"));
	assert_false(is_heard_as("::ffff:224.0.0.1"));
	assert_false(is_heard_as("ff02::1"));
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
		if (!loop.host.addresses[i].valid)
			continue;
		inet_ntop(AF_INET6, loop.host.addresses[i].ip, own, sizeof(own));
		assert_false(is_heard_as(own));
	}
	assert_true(is_heard_as("::ffff:169.254.9.9"));
}

static void test_no_way(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_ucm_resolve_ip request = {.timeout_ms = 1000};

	(void)state;
	request.id = create(&a, RDMA_PS_TCP, 0xa);
	in.sin_addr.s_addr = htonl(0x08080808);
	memcpy(&request.dst_addr, &in, sizeof(in));
	assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), -ENETUNREACH);
	expect_no_event(&a);
	/* It may try elsewhere. */
	assert_int_equal(resolve(&a, request.id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
}

/* Takes a capability from this process, or gives it back; whether it had it. */
static bool set_capability(uint32_t capability, bool on)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	bool had;

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	had = data[0].effective >> capability & 1;
	if (on)
		data[0].effective |= 1u << capability;
	else
		data[0].effective &= ~(1u << capability);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
	return had;
}

static void test_low_ports(void **state)
{
	bool had = set_capability(CAP_NET_BIND_SERVICE, false);
	struct loop_program c = loop_start(&loop), d;
	uint32_t id;

	(void)state;
	id = create(&c, RDMA_PS_TCP, 0xc);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1023), -EACCES);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1024), 0);
	loop_end(&loop, &c);
	if (!had)
		return;
	set_capability(CAP_NET_BIND_SERVICE, true);
	d = loop_start(&loop);
	id = create(&d, RDMA_PS_TCP, 0xd);
	assert_int_equal(bind_to(&d, id, INADDR_ANY, 1023), 0);
	loop_end(&loop, &d);
}

/* As another user, of root's daemon; it has not taken the connection yet. */
static int connect_as_stranger(void)
{
	struct sockaddr_un address;
	int fd;

	assert_int_equal(message_address(&address, loop.dir, CM_ATTACH_SOCKET_NAME), 0);
	assert_int_equal(chmod(loop.dir, 0711), 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	fd = loop_connect(&loop);
	assert_int_equal(seteuid(0), 0);
	return fd;
}

/* Who connects and then becomes a program of root has won nothing for who has the socket. */
static void test_low_ports_of_late(void **state)
{
	struct loop_program c;
	uint32_t id;

	(void)state;
	if (geteuid())
		skip();
	c = loop_start_on(&loop, connect_as_stranger());
	id = create(&c, RDMA_PS_TCP, 0xc);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1023), -EACCES);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1024), 0);
	loop_end(&loop, &c);
}

static void test_families(void **state)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rdma_ucm_bind_ip request = {.id = 0};
	uint32_t id, server;

	(void)state;
	/* What is bound to IPv4 does not hear IPv6, though it hears all addresses. */
	server = listener(5);
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve6(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	destroy(&b, server);
	/* A link-local address says which link. */
	request.id = create(&b, RDMA_PS_TCP, 0xb);
	any.sin6_addr.s6_addr[0] = 0xfe;
	any.sin6_addr.s6_addr[1] = 0x80;
	request.addr = any;
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), -EINVAL);
	/* IPv6 hears both. */
	any.sin6_addr = in6addr_any;
	request.addr = any;
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), 0);
	assert_int_equal(listen_on(&b, request.id, 5), 0);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	get_event(&b, CMA_CONNECT_REQUEST);
}

static void test_migrate(void **state)
{
	struct rdma_ucm_migrate_id request = {.id = 0};
	struct loop_program c = loop_start(&loop);
	struct loop_program from_a = {.fd = c.fd, .bell = c.bell, .token = a.token};
	uint32_t id;

	(void)state;
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve(&a, id), 0);
	request.id = id;
	assert_int_equal(COMMAND(&c, MIGRATE_ID, request, 4), -EINVAL); /* it is not c's */
	assert_int_equal(COMMAND(&from_a, MIGRATE_ID, request, 4), 0);
	assert_int_equal(answer.reply.withdrawn, 1);
	assert_true(rings(&a));
	expect_no_event(&a);
	get_event(&c, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), -EINVAL);
	assert_int_equal(resolve_route(&c, id), 0);
	loop_end(&loop, &c);
}

static int join(const struct loop_program *p, uint32_t id, uint32_t ip, uint64_t uid)
{
	struct rdma_ucm_join_ip_mcast request = {.id = id, .uid = uid};
	struct sockaddr_in in = {.sin_family = AF_INET};

	in.sin_addr.s_addr = htonl(ip);
	memcpy(&request.addr, &in, sizeof(in));
	return COMMAND(p, JOIN_IP_MCAST, request, sizeof(struct rdma_ucm_create_id_resp));
}

static uint32_t leave(const struct loop_program *p, uint32_t group)
{
	const struct rdma_ucm_destroy_id request = {.id = group};
	struct rdma_ucm_destroy_id_resp response;

	assert_int_equal(COMMAND(p, LEAVE_MCAST, request, sizeof(response)), 0);
	memcpy(&response, answer.out, sizeof(response));
	return response.events_reported;
}

static void test_groups(void **state)
{
	static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	const struct rdma_ucm_destroy_id again = {.id = 0};
	struct rdma_ucm_event_resp event;
	uint32_t id, first, second;

	(void)state;
	id = create(&a, RDMA_PS_UDP, 0xa);
	assert_int_equal(join(&a, id, 0xef010203, 0x10), -EINVAL); /* it has no address */
	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(join(&a, id, 0x0a010203, 0x10), -EINVAL);
	assert_int_equal(join(&a, id, 0xef010203, 0x10), 0);
	memcpy(&first, answer.out, sizeof(first));
	event = get_event(&a, CMA_MULTICAST_JOIN);
	assert_int_equal(event.uid, 0x10);
	assert_int_equal(event.id, first);
	assert_int_equal(event.param.ud.qp_num, 0xffffff);
	assert_int_equal(event.param.ud.qkey, CMA_UD_QKEY);
	assert_memory_equal(event.param.ud.ah_attr.grh.dgid, mgid, sizeof(mgid));
	assert_int_equal(join(&a, id, 0xef010204, 0x11), 0);
	memcpy(&second, answer.out, sizeof(second));
	assert_int_equal(leave(&a, first), 1);
	assert_int_equal(leave(&a, second), 0);
	assert_int_equal(answer.reply.withdrawn, 1);
	assert_true(rings(&a));
	assert_int_equal(COMMAND(&a, LEAVE_MCAST, again, 4), -ENOENT);
	assert_int_equal(join(&a, id, 0xef010203, 0x12), 0);
	/* With the ID goes what it has joined. */
	assert_int_equal(destroy(&a, id), 2);
	assert_int_equal(answer.reply.withdrawn, 1);
	assert_true(rings(&a));
	expect_no_event(&a);
}

/* What is out of order, and what is not theirs. */
static void test_refusals(void **state)
{
	const struct rdma_ucm_destroy_id nobody = {.id = 4711};
	const struct rdma_ucm_notify notify = {.event = 4};
	struct rdma_ucm_create_id xrc = {.ps = RDMA_PS_IB, .qp_type = 9};
	struct rdma_ucm_bind ib = {.addr_size = 48};
	const uint16_t af_ib = CMA_AF_IB, af_unix = AF_UNIX;
	uint32_t id, other;

	(void)state;
	id = create(&a, RDMA_PS_TCP, 0xa);
	other = create(&b, RDMA_PS_TCP, 0xb);
	assert_int_equal(COMMAND(&a, CREATE_ID, xrc, 4), -EOPNOTSUPP);
	xrc.qp_type = 10;
	assert_int_equal(COMMAND(&a, CREATE_ID, xrc, 4), -EOPNOTSUPP);
	xrc.qp_type = 11;
	assert_int_equal(COMMAND(&a, CREATE_ID, xrc, 4), -EINVAL);
	assert_int_equal(COMMAND(&a, DESTROY_ID, nobody, 4), -ENOENT);
	assert_int_equal(COMMAND(&a, DESTROY_ID, nobody, 3), -ENOSPC);
	assert_int_equal(listen_on(&a, other, 1), -EINVAL);
	assert_int_equal(resolve_route(&a, id), -EINVAL);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), -EINVAL);
	assert_int_equal(disconnect(&a, id), -EINVAL);
	assert_int_equal(accept_it(&a, id, 1, LOOP_QPN), -EINVAL);
	assert_int_equal(COMMAND(&a, NOTIFY, notify, 0), -EINVAL);
	assert_int_equal(bind_to(&a, id, 0x01020304, PORT), -EADDRNOTAVAIL);
	ib.id = id;
	memcpy(&ib.addr, &af_unix, sizeof(af_unix));
	assert_int_equal(COMMAND(&a, BIND, ib, 0), -EINVAL);
	memcpy(&ib.addr, &af_ib, sizeof(af_ib));
	ib.addr_size = 47;
	assert_int_equal(COMMAND(&a, BIND, ib, 0), -EINVAL);
	ib.addr_size = 49;
	assert_int_equal(COMMAND(&a, BIND, ib, 0), -EINVAL);
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, PORT), 0);
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, PORT), -EINVAL);
	assert_int_equal(bind_to(&b, other, INADDR_LOOPBACK, PORT), -EADDRNOTAVAIL);
	assert_int_equal(bind_to(&b, other, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	assert_int_equal(COMMAND(&a, GET_OPTION, notify, 0), -ENOSYS);
	assert_int_equal(loop_command(&loop, &a, 99, &notify, sizeof(notify), 0, &answer), -EINVAL);
	assert_int_equal(loop_command(&loop, &a, RDMA_USER_CM_CMD_LISTEN, &notify, 4, 0, &answer),
			 -EINVAL);
	destroy(&a, id);
	id = client(RDMA_PS_TCP);
	/* Another's queue pair. */
	assert_int_equal(connect_to(&a, id, LOOP_QPN + LOOP_QPNS, 0), -EINVAL);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
}

static void test_options(void **state)
{
	struct {
		struct rdma_ucm_set_option option;
		int32_t value;
	} request = {.option = {.level = RDMA_OPTION_ID,
				.optname = RDMA_OPTION_ID_REUSEADDR,
				.optlen = 4},
		     .value = 1};
	uint32_t ids[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		ids[i] = create(&a, RDMA_PS_TCP, 1);
		request.option.id = ids[i];
		if (i < 2)
			assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), 0);
	}
	assert_int_equal(bind_to(&a, ids[0], INADDR_ANY, PORT), 0);
	assert_int_equal(bind_to(&a, ids[1], INADDR_ANY, PORT), 0);
	assert_int_equal(bind_to(&a, ids[2], INADDR_ANY, PORT), -EADDRNOTAVAIL);
	assert_int_equal(listen_on(&a, ids[0], 1), -EADDRNOTAVAIL);
	request.option.optlen = 3;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	request.option.optlen = 5;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL);
	request.option.optlen = 4;
	request.option.level = 9;
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -ENOSYS);
}

/* More events than the descriptor takes: none is lost. */
static void test_many_events(void **state)
{
	enum { MANY = 3000 };
	uint32_t ids[MANY], fetched = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		ids[i] = create(&a, RDMA_PS_TCP, 1);
		assert_int_equal(resolve(&a, ids[i]), 0);
	}
	for (; fetched < MANY; fetched++)
		assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, ids[fetched]);
	expect_no_event(&a);
}

/* What nobody fetched goes with its program: events, and requests with their IDs. */
static void test_death_with_events(void **state)
{
	uint32_t ids[8];

	(void)state;
	listener(5);
	for (uint32_t i = 0; i < 8; i++) {
		ids[i] = client(RDMA_PS_TCP);
		assert_int_equal(connect_to(&a, ids[i], LOOP_QPN + i, 0), 0);
	}
	loop_run(&loop);
	assert_int_equal(resolve(&b, create(&b, RDMA_PS_TCP, 1)), 0);
	loop_end(&loop, &b);
	loop_run(&loop);
	/* Those that had found a place in the backlog are told. */
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	expect_no_event(&a);
	b = loop_start(&loop);
}

/* Whoever cannot be taken for want of descriptors does not keep the daemon busy. */
static void test_no_descriptors(void **state)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), lowest = dup(fd);
	struct rlimit limit, none;
	struct sockaddr_un address;
	struct epoll_event event;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = (rlim_t)lowest;
	close(lowest);
	assert_int_equal(message_address(&address, loop.dir, CM_ATTACH_SOCKET_NAME), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(loop.ucma.n, 2);
	assert_int_equal(epoll_wait(loop.ucma.epoll_fd, &event, 1, 0), 0);
	/* The next one brings it along. */
	loop_end(&loop, &a);
	a = loop_start(&loop);
	assert_int_equal(loop.ucma.n, 3);
	close(fd);
	ucma_input(&loop.ucma, loop.now);
}

/* What a user other than root can open leaves some for others, and is his again. */
static void test_share_of_connections(void **state)
{
	struct loop_program c[4];
	uint8_t byte;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	loop.ucma.limit = 8;
	for (int i = 0; i < 3; i++)
		c[i] = loop_start_on(&loop, connect_as_stranger());
	fd = connect_as_stranger();
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(recv(fd, &byte, sizeof(byte), MSG_DONTWAIT), 0);
	close(fd);
	assert_int_equal(loop.ucma.n, 5);
	c[3] = loop_start(&loop);
	loop_end(&loop, &c[3]);
	loop_end(&loop, &c[2]);
	c[2] = loop_start_on(&loop, connect_as_stranger());
	for (int i = 0; i < 3; i++)
		loop_end(&loop, &c[i]);
}

static void test_share_of_ids(void **state)
{
	const struct rdma_ucm_create_id request = {.uid = 0xc, .ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp response;
	struct loop_program c;
	uint32_t id = 0;

	(void)state;
	if (geteuid())
		skip();
	c = loop_start_on(&loop, connect_as_stranger());
	for (int i = 0; i < CMA_IDS / 2; i++)
		id = create(&c, RDMA_PS_TCP, 0xc);
	assert_int_equal(COMMAND(&c, CREATE_ID, request, sizeof(response)), -ENOSPC);
	destroy(&c, id);
	create(&c, RDMA_PS_TCP, 0xc);
	create(&a, RDMA_PS_TCP, 0xa);
	loop_end(&loop, &c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connect_and_disconnect),
		TEST(test_private_data_of_a_request),
		TEST(test_reject),
		TEST(test_nobody_listens),
		TEST(test_nobody_answers),
		TEST(test_backlog),
		TEST(test_death_disconnects),
		TEST(test_listener_goes),
		TEST(test_listener_comes_back),
		TEST(test_listener_stays_away),
		TEST(test_listener_long_gone),
		TEST(test_many_come_early),
		TEST(test_datagrams),
		TEST(test_af_ib),
		TEST(test_bound_to_loopback),
		TEST(test_query),
		TEST(test_path_option),
		TEST(test_accept_fails),
		TEST(test_not_for_all),
		TEST(test_pretenders),
		TEST(test_no_way),
		TEST(test_low_ports),
		TEST(test_low_ports_of_late),
		TEST(test_families),
		TEST(test_migrate),
		TEST(test_groups),
		TEST(test_refusals),
		TEST(test_options),
		TEST(test_many_events),
		TEST(test_death_with_events),
		TEST(test_no_descriptors),
		TEST(test_share_of_connections),
		TEST(test_share_of_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
