/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limits of rdma_cm for programs and peers: ports, forged addresses, quotas. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <cm/ip.h>

#include "descriptor_limit.h"
#include "stranger.h"
#include "ucma_programs.h"

/* The listener at the port is for another QP type or address. */
static void request_of_another_qp_type_or_address_is_rejected(void **state)
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

/*
 * Sends a request that comes from another host with the source address `from`, and that names the
 * addresses `address` and `to`; true: the listener got it.
 */
static bool is_heard_from(const char *from, const char *address, const char *to)
{
	static uint32_t request_id;
	struct cm_ip_hdr hdr = {.src_port = 9};
	struct cm_path path = {.pkey = 0xffff};
	struct cm_mad mad = {.attr = CM_SIDR_REQ,
			     .sidr_req = {.request_id = ++request_id,
					  .pkey = 0xffff,
					  .service_id = cm_service_id(RDMA_PS_UDP, PORT)}};
	uint8_t bytes[CM_MAD_LEN];
	bool heard;

	assert_int_equal(inet_pton(AF_INET6, address, hdr.src), 1);
	assert_int_equal(inet_pton(AF_INET6, from, path.dgid), 1);
	memcpy(path.sgid, loop.host.addresses[1].ip, sizeof(path.sgid));
	assert_int_equal(inet_pton(AF_INET6, to, hdr.dst), 1);
	hdr.v6 = strncmp(address, "::ffff:", 7) != 0;
	cm_ip_build(&hdr, mad.private_data);
	cm_mad_build(&mad, bytes);
	cma_input(&loop.ucma.cma, loop.now, &path, bytes);
	(void)ucma_flush(&loop.ucma);
	heard = loop_fetch(&loop, &b, &last);
	assert_int_equal(loop.n, !heard);
	loop.n = 0;
	return heard;
}

static bool is_heard_as(const char *address, const char *to)
{
	return is_heard_from("::ffff:169.254.9.9", address, to);
}

/*
 * The addresses of a request that comes from another host must be those of its packet: programs
 * take them for the addresses of the peer and of the listener.
 */
static void request_with_a_forged_address_is_rejected(void **state)
{
	static const char *const sources[] = {
		"::ffff:127.0.0.1", "::1",     "::ffff:0.0.0.0",     "::",
		"::ffff:224.0.0.1", "ff02::1", "::ffff:169.254.9.8", "fe80::9",
	};
	/* Addresses that no host sends from. */
	static const char *const never[] = {
		"::ffff:127.0.0.1", "::1",     "::ffff:0.0.0.0",
		"::ffff:0.1.2.3",   "::",      "::ffff:255.255.255.255",
		"::ffff:224.0.0.1", "ff02::1",
	};
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rdma_ucm_bind_ip request = {.addr = any};
	char own[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	(void)state;
	request.id = create(&b, RDMA_PS_UDP, 0xb);
	assert_int_equal(COMMAND(&b, BIND_IP, request, 0), 0);
	assert_int_equal(listen_on(&b, request.id, 5), 0);
	inet_ntop(AF_INET6, loop.host.addresses[1].ip, dst, sizeof(dst));
	for (uint32_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		assert_false(is_heard_as(sources[i], dst));
	for (uint32_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_false(is_heard_from(never[i], never[i], dst));
	for (uint32_t i = 0; i < HOST_ADDRESSES; i++) {
		if (!loop.host.addresses[i].valid)
			continue;
		inet_ntop(AF_INET6, loop.host.addresses[i].ip, own, sizeof(own));
		assert_false(is_heard_as(own, dst));
		assert_int_equal(is_heard_as("::ffff:169.254.9.9", own), i == 1);
		/* The host may have the address in another VLAN. */
		assert_false(is_heard_from(own, own, dst));
		assert_false(is_heard_from(own, "::ffff:127.0.0.1", dst));
		assert_false(is_heard_from(own, "::ffff:169.254.9.8", own));
	}
	assert_false(is_heard_as("::ffff:169.254.9.9", "::ffff:127.0.0.1"));
	assert_false(is_heard_as("::ffff:169.254.9.9", "::ffff:169.254.9.7"));
	assert_true(is_heard_as("::ffff:169.254.9.9", dst));
}

/* Sets or clears a capability of this process; returns whether it was set. */
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

static void low_ports_need_a_capability(void **state)
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

/* Executing a set-user-ID program after connecting gives no rights to the connection. */
static void capabilities_gained_after_connecting_do_not_count(void **state)
{
	struct loop_program c;
	uint32_t id;

	(void)state;
	skip_without_root();
	c = loop_start_on(&loop, connect_as_stranger());
	id = create(&c, RDMA_PS_TCP, 0xc);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1023), -EACCES);
	assert_int_equal(bind_to(&c, id, INADDR_ANY, 1024), 0);
	loop_end(&loop, &c);
}

/* Events beyond the socket's buffer are sent later; fetched events are freed. */
static void events_beyond_the_socket_buffer_are_not_lost(void **state)
{
	enum { MANY = 3000 };
	const struct ucma_file *file = LIST_NEXT(LIST_FIRST(&loop.ucma.files), link);
	uint32_t ids[MANY], told = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		ids[i] = create(&a, RDMA_PS_TCP, 1);
		assert_int_equal(resolve(&a, ids[i]), 0);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, ids[i]);
		told += last.head.confirm;
	}
	expect_no_event(&a);
	assert_true(told > 1);
	assert_false(TAILQ_EMPTY(&file->events));
	assert_int_equal(destroy(&a, ids[0]), 1);
	assert_true(TAILQ_EMPTY(&file->events));
}

/* The end of a program frees its unfetched events, and its requests with their IDs. */
static void end_of_a_program_drops_its_events(void **state)
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
	/* The peers of requests in the backlog get a REJ. */
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	expect_no_event(&a);
	b = loop_start(&loop);
}

/* A connection that cannot be accepted without descriptors wakes the daemon again after a pause. */
static void connection_without_descriptors_is_accepted_later(void **state)
{
	int fd = loop_connect(&loop);
	struct rlimit limit;
	struct epoll_event event;
	uint64_t due;

	(void)state;
	limit = descriptor_limit_reach();
	ucma_input(&loop.ucma, loop.now);
	descriptor_limit_restore(&limit);
	assert_int_equal(loop.ucma.n, 2);
	assert_int_equal(epoll_wait(loop.ucma.epoll_fd, &event, 1, 0), 0);
	due = ucma_tick(&loop.ucma, loop.now);
	assert_in_range(due, loop.now + 1, loop.now + 1000000000);
	loop_pass(&loop, due - loop.now);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n, 3);
	close(fd);
	ucma_input(&loop.ucma, loop.now);
}

/* A user's quota leaves connections to other users; closed ones can be opened again. */
static void connections_of_a_user_are_limited(void **state)
{
	struct loop_program c[4];
	uint8_t byte;
	int fd;

	(void)state;
	skip_without_root();
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

/* The next program opens the device before the IDs of the departed one are forgotten. */
static void departed_devices_of_a_user_are_limited(void **state)
{
	struct loop_program c;
	struct ucma_file *file;
	uint8_t byte;
	int fd;

	(void)state;
	skip_without_root();
	loop.ucma.limit = 8;
	for (int i = 0; i < 3; i++) {
		c = loop_start_on(&loop, connect_as_stranger());
		create(&c, RDMA_PS_TCP, 0xc);
		file = ucma_find_file(&loop.ucma, c.token);
		loop_depart(&loop, &c);
		file->pid = getppid();
	}
	assert_int_equal(loop.ucma.n_departed, 3);
	fd = connect_as_stranger();
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(recv(fd, &byte, sizeof(byte), MSG_DONTWAIT), 0);
	close(fd);
	/* The process of a departed device may claim it. */
	file->pid = getpid();
	c = loop_start_on(&loop, connect_as_stranger());
	loop_end(&loop, &c);
	loop_pass(&loop, UCMA_DEPARTED_NS);
	c = loop_start_on(&loop, connect_as_stranger());
	loop_end(&loop, &c);
}

/* After its time, urxed destroys the IDs of a departed program step by step, too. */
static void departed_program_with_many_ids_is_forgotten_in_steps(void **state)
{
	struct loop_program c = loop_start(&loop);
	const struct ucma_file *file = ucma_find_file(&loop.ucma, c.token);

	(void)state;
	for (uint32_t i = 0; i < 2 * UCMA_END_STEP; i++)
		create(&c, RDMA_PS_TCP, 0xc);
	loop_depart(&loop, &c);
	loop.now += UCMA_DEPARTED_NS;
	ucma_tick(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n_departed, 0);
	assert_int_equal(loop.ucma.n_ended, 1);
	assert_int_equal(file->n_ctxs, UCMA_END_STEP);
	loop_pass(&loop, 0);
	assert_int_equal(loop.ucma.n_ended, 0);
}

/* The queue of QP1 would drop messages to peers. */
static void ids_end_when_there_is_room_for_their_messages(void **state)
{
	struct loop_program c = loop_start(&loop);
	const struct ucma_file *file = ucma_find_file(&loop.ucma, c.token);

	(void)state;
	for (uint32_t i = 0; i < 2 * CM_TICK_MAX; i++)
		create(&c, RDMA_PS_TCP, 0xc);
	loop.crowded = true;
	close(c.fd);
	loop_close_events(&c);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n_ended, 1);
	assert_int_equal(ucma_tick(&loop.ucma, loop.now), UINT64_MAX);
	assert_int_equal(file->n_ctxs, 2 * CM_TICK_MAX);
	loop.crowded = false;
	loop_pass(&loop, 0);
	assert_int_equal(loop.ucma.n_ended, 0);
}

/* A listener may have more pending requests than QP1's queue has room for refusals. */
static void refusals_of_a_listener_wait_for_room(void **state)
{
	uint32_t server = listener(5);

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN + i, 0), 0);
	loop_run(&loop);
	loop.crowded = true;
	destroy(&b, server);
	assert_int_equal(loop.n, 0);
	assert_int_equal(ucma_tick(&loop.ucma, loop.now), UINT64_MAX);
	loop.crowded = false;
	loop_pass(&loop, 0);
	assert_int_equal(loop.n, 5);
	loop_run(&loop);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(get_event(&a, CMA_REJECTED).status, CM_REJ_CONSUMER);
	assert_int_equal(loop.ucma.n_ended, 0);
}

/* To freeze and thaw many IDs writes the record of their device only. */
static void freezing_many_ids_writes_one_record(void **state)
{
	struct ucma_file *file = ucma_find_file(&loop.ucma, a.token);

	(void)state;
	create(&a, RDMA_PS_TCP, 0xa);
	create(&a, RDMA_PS_TCP, 0xa);
	assert_true(LIST_EMPTY(&loop.ucma.dirty));
	ucma_file_freeze(file);
	assert_true(LIST_EMPTY(&loop.ucma.dirty));
	ucma_file_thaw(file);
	assert_true(LIST_EMPTY(&loop.ucma.dirty));
}

static void ids_of_a_user_are_limited(void **state)
{
	const struct rdma_ucm_create_id request = {.uid = 0xc, .ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp response;
	struct loop_program c;
	uint32_t id = 0;

	(void)state;
	skip_without_root();
	c = loop_start_on(&loop, connect_as_stranger());
	for (int i = 0; i < CMA_IDS / 2; i++)
		id = create(&c, RDMA_PS_TCP, 0xc);
	assert_int_equal(COMMAND(&c, CREATE_ID, request, sizeof(response)), -ENOSPC);
	destroy(&c, id);
	create(&c, RDMA_PS_TCP, 0xc);
	create(&a, RDMA_PS_TCP, 0xa);
	loop_end(&loop, &c);
}

/* Multicast groups take memory of the daemon, and records. */
static void groups_of_a_user_are_limited(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct rdma_ucm_join_ip_mcast request = {.uid = 1};
	struct rdma_ucm_create_id_resp response;
	struct loop_program c;
	uint32_t id, n = 0;
	int rc;

	(void)state;
	skip_without_root();
	c = loop_start_on(&loop, connect_as_stranger());
	id = create(&c, RDMA_PS_UDP, 0xc);
	assert_int_equal(bind_to(&c, id, ntohl(*(uint32_t *)(loop.host.addresses[1].ip + 12)), 0),
			 0);
	in.sin_addr.s_addr = htonl(0xe0010203);
	memcpy(&request.addr, &in, sizeof(in));
	request.id = id;
	while (!(rc = COMMAND(&c, JOIN_IP_MCAST, request, sizeof(response))))
		n++;
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, UCMA_GROUPS / 2);
	/* Another user has room, and the end of the program frees all. */
	id = create(&a, RDMA_PS_UDP, 0xa);
	assert_int_equal(bind_to(&a, id, ntohl(*(uint32_t *)(loop.host.addresses[1].ip + 12)), 0),
			 0);
	request.id = id;
	assert_int_equal(COMMAND(&a, JOIN_IP_MCAST, request, sizeof(response)), 0);
	loop_end(&loop, &c);
	assert_int_equal(loop.ucma.groups.total, 1);
}

/* A process may change its user between two files, and move an ID with its groups. */
static void moved_groups_count_for_the_user_of_the_join(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct rdma_ucm_join_ip_mcast join = {.uid = 1};
	struct rdma_ucm_migrate_id move = {0};
	struct rdma_ucm_create_id_resp response;
	struct loop_program c, from_a;

	(void)state;
	skip_without_root();
	c = loop_start_on(&loop, connect_as_stranger());
	from_a = (struct loop_program){.fd = c.fd, .event_fd = c.event_fd, .token = a.token};
	join.id = move.id = create(&a, RDMA_PS_UDP, 0xa);
	assert_int_equal(
		bind_to(&a, join.id, ntohl(*(uint32_t *)(loop.host.addresses[1].ip + 12)), 0), 0);
	in.sin_addr.s_addr = htonl(0xe0010203);
	memcpy(&join.addr, &in, sizeof(in));
	assert_int_equal(COMMAND(&a, JOIN_IP_MCAST, join, sizeof(response)), 0);
	assert_int_equal(COMMAND(&from_a, MIGRATE_ID, move, 4), 0);
	loop_end(&loop, &c);
	assert_int_equal(loop.ucma.groups.total, 0);
}

/* A program that resolves without end, and fetches no event, must not fill the daemon's memory. */
static void unfetched_events_of_an_id_are_limited(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	uint32_t id = create(&a, RDMA_PS_TCP, 1), n = 0;
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 0};
	int rc;

	(void)state;
	/* Each one fails after a moment, so that the next one is allowed. */
	assert_int_equal(host_add_text(&loop.host, "203.0.113.1/24", 0), 0);
	in.sin_addr.s_addr = htonl(0xcb007109);
	memcpy(&request.dst_addr, &in, sizeof(in));
	while (!(rc = COMMAND(&a, RESOLVE_IP, request, 0)) && n++ < 1000)
		loop_pass(&loop, 1);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, UCMA_EVENTS_MAX);
	get_event(&a, CMA_ADDR_ERROR);
	assert_int_equal(COMMAND(&a, RESOLVE_IP, request, 0), 0);
}

/* Processor time of this thread. */
static uint64_t spent_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Resolves an absent address again and again, without a look at the events. */
static int queue_errors(const struct loop_program *p, uint32_t id, uint32_t n)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(0xcb007109)};
	struct rdma_ucm_resolve_ip request = {.id = id, .timeout_ms = 0};
	int rc = 0;

	memcpy(&request.dst_addr, &in, sizeof(in));
	while (n-- && !rc) {
		rc = COMMAND(p, RESOLVE_IP, request, 0);
		loop_pass(&loop, 1);
	}
	return rc;
}

/*
 * Events take memory of the daemon, and records on disk. And a command about one ID takes no time
 * for the events of others, which everybody would wait for.
 */
static void unfetched_events_of_a_user_are_limited(void **state)
{
	struct rdma_ucm_destroy_id_resp response;
	struct rdma_ucm_destroy_id request;
	struct loop_program c;
	uint32_t id, n = 0;
	uint64_t begin;

	(void)state;
	skip_without_root();
	assert_int_equal(host_add_text(&loop.host, "203.0.113.1/24", 0), 0);
	c = loop_start_on(&loop, connect_as_stranger());
	while (n++ < 2 * UCMA_EVENTS / UCMA_EVENTS_MAX &&
	       !queue_errors(&c, id = create(&c, RDMA_PS_TCP, n), UCMA_EVENTS_MAX))
		request.id = id;
	assert_int_equal(n, UCMA_EVENTS / 2 / UCMA_EVENTS_MAX + 1);
	/* Another user has room. */
	assert_int_equal(queue_errors(&a, create(&a, RDMA_PS_TCP, 1), 1), 0);
	begin = spent_ns();
	assert_int_equal(COMMAND(&c, DESTROY_ID, request, sizeof(response)), 0);
	assert_in_range(spent_ns() - begin, 0, SECOND / 200);
	/* What ends makes room, but for the event of the other user. */
	assert_int_equal(queue_errors(&c, create(&c, RDMA_PS_TCP, 1), UCMA_EVENTS_MAX - 1), 0);
	loop_end(&loop, &c);
}

/* Others must not wait while the daemon frees what a program had. */
static void end_of_a_program_with_many_ids_takes_several_steps(void **state)
{
	struct loop_program c = loop_start(&loop);
	const struct ucma_file *file = LIST_FIRST(&loop.ucma.files);
	uint32_t n = 0, before;
	uint64_t next;

	(void)state;
	while (n++ < 3 * UCMA_END_STEP)
		create(&c, RDMA_PS_TCP, n);
	close(c.fd);
	loop_close_events(&c);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n_ended, 1);
	for (n = 1; loop.ucma.n_ended; n++) {
		before = file->n_ctxs;
		next = ucma_tick(&loop.ucma, loop.now);
		assert_int_equal(next, loop.ucma.n_ended ? loop.now : UINT64_MAX);
		if (loop.ucma.n_ended)
			assert_int_equal(before - file->n_ctxs, UCMA_END_STEP);
	}
	assert_int_equal(n, 3);
}

static void connections_without_end_do_not_hold_up_others(void **state)
{
	int fds[2 * UCMA_ACCEPTS + 1];
	uint32_t before = loop.ucma.n;

	(void)state;
	for (int i = 0; i <= 2 * UCMA_ACCEPTS; i++)
		fds[i] = loop_connect(&loop);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n - before, UCMA_ACCEPTS);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n - before, 2 * UCMA_ACCEPTS);
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n - before, 2 * UCMA_ACCEPTS + 1);
	for (int i = 0; i <= 2 * UCMA_ACCEPTS; i++)
		close(fds[i]);
	while (loop.ucma.n > before)
		ucma_input(&loop.ucma, loop.now);
}

/* Sends a REQ of another host to the listener at PORT. */
static void request_from_outside(uint32_t number, bool known)
{
	struct cm_ip_hdr hdr = {.src_port = 9};
	struct cm_path path = {.pkey = 0xffff, .known = known};
	struct cm_mad mad = {.attr = CM_REQ,
			     .req = {.local_id = number + 1,
				     .ca_guid = 7,
				     .qpn = number,
				     .mtu = CM_MTU_MAX,
				     .pkey = 0xffff,
				     .service_id = cm_service_id(RDMA_PS_TCP, PORT)}};
	uint8_t bytes[CM_MAD_LEN];

	assert_int_equal(inet_pton(AF_INET6, "::ffff:169.254.9.9", path.dgid), 1);
	memcpy(path.sgid, loop.host.addresses[1].ip, sizeof(path.sgid));
	memcpy(hdr.src, path.dgid, sizeof(hdr.src));
	memcpy(hdr.dst, path.sgid, sizeof(hdr.dst));
	cm_ip_build(&hdr, mad.private_data);
	cm_mad_build(&mad, bytes);
	cma_input(&loop.ucma.cma, loop.now, &path, bytes);
}

/* Unknown senders leave some places of a backlog to known ones. */
static void unknown_senders_do_not_fill_a_backlog(void **state)
{
	const uint64_t *counters = cm_counters(loop.ucma.cma.cm);

	(void)state;
	listener(16);
	for (uint32_t i = 0; i < 20; i++)
		request_from_outside(i, false);
	assert_int_equal(counters[CM_COUNT_NO_ROOM], 20 - (16 - 16 / UCMA_RESERVE));
	for (uint32_t i = 20; i < 20 + 16 / UCMA_RESERVE; i++)
		request_from_outside(i, true);
	assert_int_equal(counters[CM_COUNT_NO_ROOM], 20 - (16 - 16 / UCMA_RESERVE));
	request_from_outside(99, true);
	assert_int_equal(counters[CM_COUNT_NO_ROOM], 21 - (16 - 16 / UCMA_RESERVE));
	loop.n = 0;
}

/* A known sender's request is kept for the next listener, in place of one of another sender. */
static void early_requests_of_known_senders_are_kept(void **state)
{
	const struct cma_early_reqs *early = &loop.ucma.cma.early;

	(void)state;
	destroy(&b, listener(5));
	for (uint32_t i = 0; i < 2 * CMA_EARLY_MAX; i++)
		request_from_outside(i, false);
	assert_int_equal(early->n_kept, CMA_EARLY_MAX);
	/* All others were refused. */
	assert_int_equal(loop.n, CMA_EARLY_MAX);
	request_from_outside(1000, true);
	assert_int_equal(early->n_kept, CMA_EARLY_MAX);
	assert_true(early->kept[CMA_EARLY_MAX - 1].path.known);
	assert_int_equal(loop.n, CMA_EARLY_MAX);
	loop_pass(&loop, CMA_EARLY_KEPT_NS);
	assert_int_equal(early->n_kept, 0);
	loop.n = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_of_another_qp_type_or_address_is_rejected),
		TEST(request_with_a_forged_address_is_rejected),
		TEST(low_ports_need_a_capability),
		TEST(capabilities_gained_after_connecting_do_not_count),
		TEST(events_beyond_the_socket_buffer_are_not_lost),
		TEST(end_of_a_program_drops_its_events),
		TEST(connection_without_descriptors_is_accepted_later),
		TEST(connections_of_a_user_are_limited),
		TEST(departed_devices_of_a_user_are_limited),
		TEST(departed_program_with_many_ids_is_forgotten_in_steps),
		TEST(ids_end_when_there_is_room_for_their_messages),
		TEST(refusals_of_a_listener_wait_for_room),
		TEST(freezing_many_ids_writes_one_record),
		TEST(ids_of_a_user_are_limited),
		TEST(groups_of_a_user_are_limited),
		TEST(moved_groups_count_for_the_user_of_the_join),
		TEST(unfetched_events_of_an_id_are_limited),
		TEST(unfetched_events_of_a_user_are_limited),
		TEST(end_of_a_program_with_many_ids_takes_several_steps),
		TEST(connections_without_end_do_not_hold_up_others),
		TEST(unknown_senders_do_not_fill_a_backlog),
		TEST(early_requests_of_known_senders_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
