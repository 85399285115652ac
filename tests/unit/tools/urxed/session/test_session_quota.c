/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The quotas of a user's processes on remote QPs, blocks of QPNs and connections, and that another
 * user still gets them. The main thread is the daemon; it takes each process for one of a user that
 * the test chooses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/driver.h>

#include "accepted_user.h"
#include "lan.h"
#include "server.h"
#include "urxed/session/quota.h"

#define T0        1000000000ull
#define FIRST_QPN 0x1000 /* of remote QPs */

/* A greedy user with as many processes as its quota of remote QPs needs, and one more. */
#define GREEDY_REMOTES (REMOTE_QP_MAX / 2)
#define FULL           (GREEDY_REMOTES / REMOTE_QP_PER_OWNER)
#define GREEDY         (FULL + 1)
#define PROCESSES      (GREEDY + 1)
/* Blocks that a process needs for REMOTE_QP_PER_OWNER remote QPs. */
#define BLOCKS (REMOTE_QP_PER_OWNER / REMOTE_QP_PER_LOCAL / LEASE_QPNS)
/* A user's quota of blocks, while another user has one. */
#define GREEDY_BLOCKS ((LEASE_BLOCKS - 2 - 1) / 2)

static struct {
	struct server server;
	struct server_process processes[PROCESSES]; /* the last one is of the other user */
	uint32_t last_qpn;                          /* of the remote QPs */
} * w;

/* Neither root nor the user who runs the test: both have no quota. */
static uid_t user_of(uint32_t process)
{
	return geteuid() + 1000 + (process >= GREEDY);
}

/* --- The daemon and its processes */

static void serve(void)
{
	server_take_events(&w->server, T0);
}

static int setup(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->last_qpn = FIRST_QPN;
	server_open(&w->server);
	server_begin(&w->server, T0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		accepted_uid = user_of(i);
		server_call(server_attach_thread, &w->processes[i], serve);
		assert_int_equal(w->processes[i].status, 0);
	}
	accepted_uid = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PROCESSES; i++)
		vnic_driver_abandon(w->processes[i].driver);
	server_end(&w->server);
	server_close(&w->server);
	free(w);
	return 0;
}

static struct server_process *other(void)
{
	return &w->processes[GREEDY];
}

/* Sends a request of a process, which the daemon answers in place. */
static void ask(const struct server_process *p, void *message, size_t len)
{
	int fd = vnic_driver_ctl_fd(p->driver);

	assert_int_equal(send(fd, message, len, MSG_DONTWAIT), len);
	serve();
	assert_int_equal(recv(fd, message, len, MSG_DONTWAIT), len);
}

static int lease(const struct server_process *p, uint32_t *qpn)
{
	struct vnic_attach_lease l = {.type = VNIC_ATTACH_LEASE};

	ask(p, &l, sizeof(l));
	*qpn = l.qpn_first;
	return l.status;
}

/* Registers a remote QP that no other QP has. */
static int register_remote(const struct server_process *p, uint32_t local)
{
	struct vnic_attach_remote r = {.type = VNIC_ATTACH_REGISTER,
				       .local_qpn = local,
				       .dgid = {0xfe, 0x80, [15] = 9},
				       .qpn = ++w->last_qpn};

	ask(p, &r, sizeof(r));
	return r.status;
}

/* --- */

/* All remote QPs that one process may have. */
static void fill_process(const struct server_process *p)
{
	uint32_t blocks[BLOCKS] = {p->who.qpn_first}, i, local;

	for (i = 1; i < BLOCKS; i++)
		assert_int_equal(lease(p, &blocks[i]), 0);
	for (i = 0; i < REMOTE_QP_PER_OWNER; i++) {
		local = i / REMOTE_QP_PER_LOCAL;
		assert_int_equal(
			register_remote(p, blocks[local / LEASE_QPNS] + local % LEASE_QPNS), 0);
	}
}

static void remote_qps_per_user_are_limited(void **state)
{
	const struct server_process *next = &w->processes[FULL];

	(void)state;
	for (uint32_t i = 0; i < FULL; i++)
		fill_process(&w->processes[i]);
	assert_int_equal(w->server.sw.remotes.n, GREEDY_REMOTES);
	/* The process itself has none yet. */
	assert_int_equal(register_remote(next, next->who.qpn_first), -ENOSPC);
	assert_int_equal(register_remote(other(), other()->who.qpn_first), 0);
	/* One that ends makes room for the user's others. */
	vnic_driver_abandon(w->processes[0].driver);
	w->processes[0].driver = NULL;
	serve();
	while (sessions_reap(&w->server.sessions))
		;
	assert_int_equal(register_remote(next, next->who.qpn_first), 0);
}

static struct session *session_of(const struct server_process *p)
{
	struct session *s = w->server.sessions.list;

	while (&s->port != lease_owner(&w->server.sw.leases, p->who.qpn_first))
		s = s->next;
	return s;
}

/* Other processes do not wait until the daemon has removed all that a process had. */
static void end_of_a_process_takes_several_steps(void **state)
{
	const struct session *s = session_of(&w->processes[0]);

	(void)state;
	fill_process(&w->processes[0]);
	vnic_driver_abandon(w->processes[0].driver);
	w->processes[0].driver = NULL;
	serve();
	for (uint32_t left = REMOTE_QP_PER_OWNER - SESSIONS_REAP_STEP; left;
	     left -= SESSIONS_REAP_STEP) {
		assert_true(sessions_reap(&w->server.sessions));
		assert_int_equal(s->port.remotes.n, left);
	}
	assert_int_equal(w->server.sessions.n, PROCESSES);
	while (sessions_reap(&w->server.sessions))
		;
	assert_int_equal(w->server.sessions.n, PROCESSES - 1);
}

static void blocks_per_user_are_limited(void **state)
{
	const struct server_process *asker = &w->processes[1];
	uint32_t qpn;

	(void)state;
	/* This process stands for as many as the quota needs: 128 would need 2,000 descriptors. */
	session_of(&w->processes[0])->blocks = GREEDY_BLOCKS - GREEDY;
	assert_int_equal(lease(asker, &qpn), 0);
	assert_int_equal(lease(asker, &qpn), -ENOSPC);
	assert_true(session_of(asker)->blocks < VNIC_LEASES_MAX);
	assert_int_equal(lease(other(), &qpn), 0);
	assert_ptr_equal(lease_owner(&w->server.sw.leases, qpn), &session_of(other())->port);
}

static int change_qpn(const struct server_process *p, uint32_t type, uint32_t qpn)
{
	struct vnic_attach_qpn r = {.type = type, .qpn = qpn};

	ask(p, &r, sizeof(r));
	return r.status;
}

/* A process adds a QPN to each block that it may; returns the number of these blocks. */
static uint32_t add_to_free_blocks(const struct server_process *p)
{
	uint32_t n = 0;

	for (uint32_t block = 1; block < LEASE_BLOCKS - 1; block++)
		n += !change_qpn(p, VNIC_ATTACH_QPN_ADD, block << LEASE_SHIFT);
	return n;
}

/* No process can lease a block with an added QPN. */
static void blocks_with_added_qpns_count_as_blocks(void **state)
{
	const struct server_process *adder = &w->processes[0];
	uint32_t qpn, first = LEASE_BLOCKS / 2 << LEASE_SHIFT;

	(void)state;
	assert_int_equal(change_qpn(adder, VNIC_ATTACH_QPN_ADD, first), 0);
	/* The first block of each process is leased; the adder has added to its own, too. */
	assert_int_equal(add_to_free_blocks(adder), GREEDY_BLOCKS - GREEDY + 1);
	assert_int_equal(lease(&w->processes[1], &qpn), -ENOSPC);
	assert_int_equal(lease(other(), &qpn), 0);
	assert_int_equal(change_qpn(adder, VNIC_ATTACH_QPN_ADD, first + 1), 0);
	assert_int_equal(change_qpn(adder, VNIC_ATTACH_QPN_ADD, 0x123), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(change_qpn(adder, VNIC_ATTACH_QPN_REMOVE, first + (uint32_t)i), 0);
	/* Added twice. */
	assert_int_equal(change_qpn(adder, VNIC_ATTACH_QPN_REMOVE, first), 0);
	assert_int_equal(lease(&w->processes[1], &qpn), 0);
}

static int attach(struct server_process *p, uint32_t as)
{
	accepted_uid = user_of(as);
	server_call(server_attach_thread, p, serve);
	accepted_uid = 0;
	if (!p->status)
		vnic_driver_abandon(p->driver);
	return p->status;
}

static void connections_per_user_are_limited(void **state)
{
	struct server_process more = {0};

	(void)state;
	/* Half of what the other user leaves. */
	w->server.sessions.limit = 2 * GREEDY + 1;
	assert_int_not_equal(attach(&more, 0), 0);
	assert_int_equal(attach(&more, GREEDY), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(remote_qps_per_user_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(end_of_a_process_takes_several_steps, setup,
						teardown),
		cmocka_unit_test_setup_teardown(connections_per_user_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_per_user_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_with_added_qpns_count_as_blocks, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
