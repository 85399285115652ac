/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands, events and errors of /dev/infiniband/rdma_cm, compared with the kernel's. */
#include <arpa/inet.h>
#include <errno.h>

#include "ucma_programs.h"

static void qp_attributes_follow_connect_and_disconnect(void **state)
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
	/* The listener's events_reported counts the request. */
	assert_int_equal(destroy(&b, child), 2);
	expect_no_event(&a);
}

/* Offsets in a PathRecord (IBA 15.2.5.16). */
enum {
	PATH_FLOW = 44,
	PATH_TRAFFIC_CLASS = 48,
	PATH_SL = 53,
	PATH_MTU = 54,
	PATH_RATE = 55,
	PATH_LIFETIME = 56
};

struct path {
	uint8_t bytes[64]; /* a PathRecord */
};

static struct path query_path(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_PATH, .id = id};
	struct path path;

	assert_int_equal(COMMAND(p, QUERY, request, 400), 0);
	memcpy(path.bytes, answer.out + 16, sizeof(path.bytes));
	return path;
}

static uint32_t count_paths(const struct loop_program *p, uint32_t id)
{
	const struct rdma_ucm_query request = {.option = RDMA_USER_CM_QUERY_PATH, .id = id};
	struct rdma_ucm_query_path_resp paths;

	assert_int_equal(COMMAND(p, QUERY, request, sizeof(paths)), 0);
	memcpy(&paths, answer.out, sizeof(paths));
	return paths.num_paths;
}

/* As in the kernel, no queue pair can be brought to INIT for a connection that has ended. */
static void ended_connection_has_no_attributes(void **state)
{
	struct rdma_ucm_init_qp_attr request = {.qp_state = INIT};
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	qp_attr(&a, id, INIT);
	loop_run(&loop);
	request.id = child = get_event(&b, CMA_CONNECT_REQUEST).id;
	qp_attr(&b, child, INIT);
	destroy(&a, id); /* sends a REJ */
	loop_run(&loop);
	assert_int_equal(COMMAND(&b, INIT_QP_ATTR, request, sizeof(struct ib_uverbs_qp_attr)),
			 -EINVAL);
	destroy(&b, child);
	id = client(RDMA_PS_TCP);
	request.id = child = establish(id);
	qp_attr(&b, child, INIT);
	assert_int_equal(disconnect(&b, child), 0);
	assert_int_equal(COMMAND(&b, INIT_QP_ATTR, request, sizeof(struct ib_uverbs_qp_attr)),
			 -EINVAL);
	request.id = client(RDMA_PS_UDP);
	request.qp_state = 7;
	assert_int_equal(COMMAND(&a, INIT_QP_ATTR, request, sizeof(struct ib_uverbs_qp_attr)),
			 -EINVAL);
}

/* A value of the path record that a program reads, which has the selector "exactly". */
static uint8_t path_value(uint32_t id, unsigned offset)
{
	return query_path(&a, id).bytes[offset] ^ 2 << 6;
}

static uint8_t path_mtu(uint32_t id)
{
	return path_value(id, PATH_MTU);
}

static void path_mtu_fits_the_peer(void **state)
{
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(path_mtu(id), 5);
	loop.mtu_to_peer = 1500;
	assert_int_equal(path_mtu(id), 3);
	child = establish(id);
	assert_int_equal(qp_attr(&a, id, RTR).path_mtu, 3);
	assert_int_equal(qp_attr(&b, child, RTR).path_mtu, 3);
}

/* Both ends of a connection see the path of the request. */
static void path_of_an_accepted_id_is_that_of_the_request(void **state)
{
	struct path ours, theirs;
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client_without_route(RDMA_PS_TCP);
	set_byte_option(&a, id, RDMA_OPTION_ID_TOS, 0x60);
	set_ack_timeout(&a, id, 20);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	loop.mtu_to_peer = 1500;
	child = establish(id);
	loop.mtu_to_peer = 4200;
	ours = query_path(&a, id);
	theirs = query_path(&b, child);
	assert_int_equal(theirs.bytes[PATH_TRAFFIC_CLASS], 0x60);
	assert_int_equal(theirs.bytes[PATH_MTU] & 0x3f, 3);
	assert_int_equal(theirs.bytes[PATH_LIFETIME] & 0x3f, 19);
	assert_memory_equal(theirs.bytes + PATH_FLOW, ours.bytes + PATH_FLOW,
			    PATH_LIFETIME + 1 - PATH_FLOW);
}

/* As in the kernel, a request without an ACK timeout has the shortest packet lifetime. */
static void path_of_a_request_without_ack_timeout_has_no_lifetime(void **state)
{
	struct path theirs;
	struct cm_mad mad;
	uint32_t child;

	(void)state;
	listener(5);
	assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN, 0), 0);
	assert_int_equal(loop.n, 1);
	assert_int_equal(cm_mad_parse(&mad, loop.flying[0].mad), 0);
	mad.req.ack_timeout = 0;
	cm_mad_build(&mad, loop.flying[0].mad);
	loop_run(&loop);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	theirs = query_path(&b, child);
	assert_int_equal(theirs.bytes[PATH_LIFETIME] & 0x3f, 0);
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	/* As if the peer's acknowledgements took as long as this host's. */
	assert_int_equal(qp_attr(&b, child, RTS).timeout, 15);
}

/* As in the kernel, the type of service concerns routes that are resolved later. */
static void type_of_service_is_that_of_the_route(void **state)
{
	uint32_t id = client_without_route(RDMA_PS_TCP), child;

	(void)state;
	listener(5);
	set_byte_option(&a, id, RDMA_OPTION_ID_TOS, 0x20);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	set_byte_option(&a, id, RDMA_OPTION_ID_TOS, 0x60);
	assert_int_equal(query_path(&a, id).bytes[PATH_TRAFFIC_CLASS], 0x20);
	child = establish(id);
	assert_int_equal(qp_attr(&b, child, RTR).ah_attr.grh.traffic_class, 0x20);
}

/* As in the kernel, by the egress map of the VLAN interface; its type of service is the route's. */
static void service_level_is_the_vlan_priority(void **state)
{
	static const struct {
		uint8_t tos, sl;
	} rows[] = {{0, 3}, {0x08, 1}, {0x10, 5}, {0x18, 4}, {0x60, 3}};
	static const uint8_t map[HOST_PRIORITIES] = {3, 0, 1, 0, 4, 0, 5, 0};
	struct cm_mad mad;
	uint32_t id;

	(void)state;
	listener(5);
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		memcpy(loop.host.addresses[i].vlan_priority, map, sizeof(map));
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		id = client_without_route(RDMA_PS_TCP);
		set_byte_option(&a, id, RDMA_OPTION_ID_TOS, rows[i].tos);
		assert_int_equal(resolve_route(&a, id), 0);
		get_event(&a, CMA_ROUTE_RESOLVED);
		assert_int_equal(query_path(&a, id).bytes[PATH_SL], rows[i].sl);
		assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
		assert_int_equal(cm_mad_parse(&mad, loop.flying[0].mad), 0);
		assert_int_equal(mad.req.sl, rows[i].sl);
		loop_run(&loop);
		id = get_event(&b, CMA_CONNECT_REQUEST).id;
		assert_int_equal(qp_attr(&b, id, RTR).ah_attr.sl, rows[i].sl);
		destroy(&b, id);
		loop_run(&loop);
		get_event(&a, CMA_REJECTED);
	}
}

/* As in the kernel, the option concerns the path, and thus the peer, if the program sets it before
 * it resolves the route. */
static void ack_timeout_of_the_client_reaches_the_server(void **state)
{
	enum { UNSET = 255 };
	static const struct {
		uint8_t before, after; /* the route's resolution */
		uint8_t lifetime, own, peer;
	} rows[] = {
		{UNSET, UNSET, 16, 17, 17}, {20, UNSET, 19, 20, 20}, {UNSET, 22, 16, 22, 17},
		{20, 11, 19, 11, 20},       {0, UNSET, 16, 0, 17},   {1, UNSET, 0, 1, 15},
		{31, UNSET, 30, 31, 31},
	};
	uint32_t id, child;

	(void)state;
	listener(5);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		id = client_without_route(RDMA_PS_TCP);
		if (rows[i].before != UNSET)
			set_ack_timeout(&a, id, rows[i].before);
		assert_int_equal(resolve_route(&a, id), 0);
		get_event(&a, CMA_ROUTE_RESOLVED);
		if (rows[i].after != UNSET)
			set_ack_timeout(&a, id, rows[i].after);
		assert_int_equal(path_value(id, PATH_LIFETIME), rows[i].lifetime);
		child = establish(id);
		assert_int_equal(qp_attr(&a, id, RTS).timeout, rows[i].own);
		assert_int_equal(qp_attr(&b, child, RTS).timeout, rows[i].peer);
		assert_int_equal(destroy(&b, child), 1);
		loop_run(&loop);
		get_event(&a, CMA_DISCONNECTED);
		assert_int_equal(destroy(&a, id), 4);
		loop_run(&loop);
	}
}

/* Options of enhanced connection establishment (rdma_set_local_ece) reach the peer. */
static void request_and_reply_carry_ece(void **state)
{
	struct rdma_ucm_connect connect = {.conn_param = param(LOOP_QPN, 0), .ece = {0x1234, 5}};
	struct rdma_ucm_accept accept = {
		.uid = 0xc, .conn_param = param(LOOP_QPN + 1, 0), .ece = {0xfedcba, 6}};
	struct rdma_ucm_event_resp event;

	(void)state;
	listener(5);
	connect.id = client(RDMA_PS_TCP);
	assert_int_equal(COMMAND(&a, CONNECT, connect, 0), 0);
	loop_run(&loop);
	event = get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(event.ece.vendor_id, 0x1234);
	assert_int_equal(event.ece.attr_mod, 5);
	accept.id = event.id;
	assert_int_equal(COMMAND(&b, ACCEPT, accept, 0), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(event.ece.vendor_id, 0xfedcba);
	assert_int_equal(event.ece.attr_mod, 6);
}

static void request_carries_up_to_56_bytes_of_private_data(void **state)
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

static void reject_carries_reason_and_private_data(void **state)
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

/* rdma_reject_ece(3) */
static void reject_may_name_an_unsupported_option(void **state)
{
	struct rdma_ucm_reject request = {.reason = CM_REJ_VENDOR_OPTION};
	uint32_t id;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	request.id = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(COMMAND(&b, REJECT, request, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, 35);
}

static void connect_without_listener_is_rejected(void **state)
{
	uint32_t id;

	(void)state;
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
}

static void connect_without_answer_times_out(void **state)
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

/* A REQ that finds the backlog full is dropped; the client repeats it until there is room. */
static void request_beyond_the_backlog_is_retried(void **state)
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

/* When a program ends, the daemon disconnects its connections. */
static void end_of_a_program_disconnects_its_ids(void **state)
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

/* Unfetched requests of a destroyed listener are rejected, and their events cancelled. */
static void destroying_a_listener_rejects_its_requests(void **state)
{
	uint32_t server, id;

	(void)state;
	server = listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(destroy(&b, server), 0);
	expect_cancelled(1);
	loop_run(&loop);
	assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	expect_no_event(&b);
}

/* The client connects after a server has destroyed one listener and before it has the next. */
static void early_request_reaches_the_next_listener(void **state)
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

/* perftest's second listener is in another port space with -c UD. */
static void early_request_reaches_a_listener_in_its_port_space(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(destroy(&b, listener(5)), 0);
	id = client(RDMA_PS_UDP);
	assert_int_equal(connect_to(&a, id, 0, 0), 0);
	loop_run(&loop);
	expect_no_event(&a);
	/* A listener of RDMA_PS_TCP does not get the request for RDMA_PS_UDP. */
	listener(5);
	loop_pass(&loop, 0);
	expect_no_event(&b);
	id = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(bind_to(&b, id, INADDR_ANY, PORT), 0);
	assert_int_equal(listen_on(&b, id, 5), 0);
	loop_pass(&loop, 0);
	get_event(&b, CMA_CONNECT_REQUEST);
	expect_no_event(&a);
}

static void early_request_without_listener_is_rejected_after_200_ms(void **state)
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

static void request_a_second_after_the_listener_is_rejected_at_once(void **state)
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

/* At most CMA_EARLY_MAX requests are kept; one more is rejected at once. */
static void number_of_early_requests_is_limited(void **state)
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

static void ud_ids_exchange_qpn_and_qkey(void **state)
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
	assert_int_equal(event.param.ud.ah_attr.is_global, 0);
	assert_int_equal(count_paths(&b, event.id), 0);
	assert_int_equal(accept_with(&b, event.id, 136), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_ESTABLISHED);
	assert_int_equal(event.param.ud.qp_num, LOOP_QPN + 1);
	assert_int_equal(event.param.ud.qkey, CMA_UD_QKEY);
	assert_int_equal(event.param.ud.ah_attr.is_global, 1);
	assert_int_equal(event.param.ud.private_data_len, 136);
	assert_int_equal(qp_attr(&a, id, INIT).qkey, CMA_UD_QKEY);
	assert_int_equal(count_paths(&a, id), 1);
}

/* As in the kernel, the event of a refusal has none. */
static void only_an_established_ud_id_has_an_address_handle(void **state)
{
	static const struct ib_uverbs_ah_attr none;
	struct rdma_ucm_event_resp event;
	uint32_t id = client(RDMA_PS_UDP);

	(void)state;
	assert_int_equal(connect_to(&a, id, 0, 0), 0);
	loop_run(&loop);
	event = get_event(&a, CMA_UNREACHABLE);
	assert_memory_equal(&event.param.ud.ah_attr, &none, sizeof(none));
}

/* A program may set a path itself instead of resolving the route. */
static void path_option_replaces_route_resolution(void **state)
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
	assert_int_equal(COMMAND(&a, SET_OPTION, request, 0), -EINVAL); /* no destination */
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

/* Private data that is too long fails the accept, and the peer gets a REJ at once. */
static void failed_accept_rejects_the_request(void **state)
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

/* The file of a program, in a command that names another one as the source. */
static struct loop_program with_token(const struct loop_program *p,
				      const struct loop_program *source)
{
	struct loop_program named = *p;

	named.token = source->token;
	return named;
}

static void migrated_id_belongs_to_the_other_file(void **state)
{
	struct rdma_ucm_migrate_id request = {.id = 0};
	struct loop_program c = loop_start(&loop);
	struct loop_program from_a = with_token(&c, &a);
	uint32_t id;

	(void)state;
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve(&a, id), 0);
	request.id = id;
	assert_int_equal(COMMAND(&c, MIGRATE_ID, request, 4), -EINVAL); /* not an ID of c */
	assert_int_equal(COMMAND(&from_a, MIGRATE_ID, request, 4), 0);
	expect_withdrawn(&a, 1);
	expect_no_event(&a);
	get_event(&c, CMA_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&a, id), -EINVAL);
	assert_int_equal(resolve_route(&c, id), 0);
	loop_end(&loop, &c);
}

/* Unfetched requests move with their listener. */
static void migrated_listener_takes_its_requests_along(void **state)
{
	struct rdma_ucm_migrate_id request = {.id = listener(5)};
	struct loop_program c = loop_start(&loop);
	struct loop_program from_b = with_token(&c, &b);
	uint32_t id = client(RDMA_PS_TCP), child;

	(void)state;
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	assert_int_equal(COMMAND(&from_b, MIGRATE_ID, request, 4), 0);
	expect_withdrawn(&b, 1);
	child = get_event(&c, CMA_CONNECT_REQUEST).id;
	assert_int_equal(last.head.cached != 0, 1);
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), -EINVAL);
	assert_int_equal(accept_it(&c, child, 0xc, LOOP_QPN + 1), 0);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
	loop_end(&loop, &c);
}

/* Events of an ID that was accepted before its request was fetched move with the listener. */
static void migrated_listener_takes_events_of_accepted_ids_along(void **state)
{
	struct rdma_ucm_migrate_id request = {.id = listener(5)};
	struct loop_program c = loop_start(&loop);
	struct loop_program from_b = with_token(&c, &b);
	uint32_t id = client(RDMA_PS_TCP), child;

	(void)state;
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = TAILQ_FIRST(&ucma_find_file(&loop.ucma, b.token)->events)->child->id->number;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	expect_withdrawn(&b, 1);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(accept_it(&a, id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(COMMAND(&from_b, MIGRATE_ID, request, 4), 0);
	expect_withdrawn(&b, 2);
	expect_no_event(&b);
	assert_int_equal(resolve(&b, create(&b, RDMA_PS_TCP, 0xb)), 0);
	get_event(&b, CMA_ADDR_RESOLVED);
	assert_int_equal(get_event(&c, CMA_CONNECT_REQUEST).id, child);
	assert_int_equal(get_event(&c, CMA_ESTABLISHED).id, child);
	expect_no_event(&c);
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

/* MIGRATE_ID may move both groups into one file. */
static void groups_of_a_process_have_different_numbers(void **state)
{
	struct rdma_ucm_create_id_resp first, second;
	uint32_t id;

	(void)state;
	id = create(&a, RDMA_PS_UDP, 0xa);
	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(join(&a, id, 0xef010203, 0x10), 0);
	memcpy(&first, answer.out, sizeof(first));
	/* As after 2^31 groups. */
	loop.ucma.next_group = first.id;
	id = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(resolve(&b, id), 0);
	get_event(&b, CMA_ADDR_RESOLVED);
	assert_int_equal(join(&b, id, 0xef010204, 0x11), 0);
	memcpy(&second, answer.out, sizeof(second));
	assert_int_not_equal(first.id, second.id);
}

static void multicast_join_and_leave(void **state)
{
	static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	const struct rdma_ucm_destroy_id again = {.id = 0};
	struct rdma_ucm_event_resp event;
	uint32_t id, first, second;

	(void)state;
	id = create(&a, RDMA_PS_UDP, 0xa);
	assert_int_equal(join(&a, id, 0xef010203, 0x10), -EINVAL); /* not bound */
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
	expect_cancelled(1);
	assert_int_equal(COMMAND(&a, LEAVE_MCAST, again, 4), -ENOENT);
	assert_int_equal(join(&a, id, 0xef010203, 0x12), 0);
	/* Destroying the ID leaves its groups. */
	assert_int_equal(destroy(&a, id), 2);
	expect_cancelled(1);
	expect_no_event(&a);
}

/* Commands in a wrong state, and commands for other programs' objects. */
static void wrong_states_and_foreign_ids_are_refused(void **state)
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
	/* Another process's QPN. */
	assert_int_equal(connect_to(&a, id, LOOP_QPN + LOOP_QPNS, 0), -EINVAL);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
}

/* As in the kernel, where a listener at one address has a connection in state LISTEN. */
static void listener_is_no_connection(void **state)
{
	struct rdma_ucm_init_qp_attr request = {.qp_state = INIT};
	uint32_t id = create(&a, RDMA_PS_TCP, 0xa);

	(void)state;
	assert_int_equal(bind_to(&a, id, INADDR_LOOPBACK, PORT), 0);
	qp_attr(&a, id, INIT);
	assert_int_equal(disconnect(&a, id), -EINVAL);
	assert_int_equal(listen_on(&a, id, 1), 0);
	request.id = id;
	assert_int_equal(COMMAND(&a, INIT_QP_ATTR, request, sizeof(struct ib_uverbs_qp_attr)),
			 -EINVAL);
	assert_int_equal(disconnect(&a, id), 0);
	/* Without a device there is none. */
	destroy(&a, id);
	assert_int_equal(disconnect(&b, listener(1)), -EINVAL);
}

static void id_options_are_set_and_checked(void **state)
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(qp_attributes_follow_connect_and_disconnect),
		TEST(ended_connection_has_no_attributes),
		TEST(path_mtu_fits_the_peer),
		TEST(path_of_an_accepted_id_is_that_of_the_request),
		TEST(path_of_a_request_without_ack_timeout_has_no_lifetime),
		TEST(type_of_service_is_that_of_the_route),
		TEST(service_level_is_the_vlan_priority),
		TEST(ack_timeout_of_the_client_reaches_the_server),
		TEST(request_and_reply_carry_ece),
		TEST(request_carries_up_to_56_bytes_of_private_data),
		TEST(reject_carries_reason_and_private_data),
		TEST(reject_may_name_an_unsupported_option),
		TEST(connect_without_listener_is_rejected),
		TEST(connect_without_answer_times_out),
		TEST(request_beyond_the_backlog_is_retried),
		TEST(end_of_a_program_disconnects_its_ids),
		TEST(destroying_a_listener_rejects_its_requests),
		TEST(early_request_reaches_the_next_listener),
		TEST(early_request_reaches_a_listener_in_its_port_space),
		TEST(early_request_without_listener_is_rejected_after_200_ms),
		TEST(request_a_second_after_the_listener_is_rejected_at_once),
		TEST(number_of_early_requests_is_limited),
		TEST(ud_ids_exchange_qpn_and_qkey),
		TEST(only_an_established_ud_id_has_an_address_handle),
		TEST(path_option_replaces_route_resolution),
		TEST(failed_accept_rejects_the_request),
		TEST(migrated_id_belongs_to_the_other_file),
		TEST(migrated_listener_takes_its_requests_along),
		TEST(migrated_listener_takes_events_of_accepted_ids_along),
		TEST(groups_of_a_process_have_different_numbers),
		TEST(multicast_join_and_leave),
		TEST(wrong_states_and_foreign_ids_are_refused),
		TEST(listener_is_no_connection),
		TEST(id_options_are_set_and_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
