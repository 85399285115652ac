/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * QPNs that an HCA has chosen: processes add them, find each other by them, and keep them over a
 * restart of the daemon. The main thread is the daemon; it takes each process for one of a user
 * that the test chooses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rxe/packet.h>
#include <vnic/driver.h>

#include "accepted_user.h"
#include "craft.h"
#include "lan.h"
#include "server.h"
#include "urxed/privilege/namespace_query.h"

#define T0           1000000000ull
#define UD_SEND_ONLY 0x64
#define QPN          0x123 /* in the daemon's own block, as the QPNs of rdma_rxe */

enum { ONE, TWO, OTHER_USER, PROCESSES };

static struct {
	struct server server;
	struct server_process processes[PROCESSES];
} * w;

static void serve(void)
{
	server_take_events(&w->server, T0);
	sessions_tick(&w->server.sessions, T0);
}

/* --- Calls of processes */

static struct {
	enum { ADD, SET, REMOVE, QUERY, REGISTER } what;
	uint32_t qpn;
	uint32_t flags;
	uint8_t dgid[16];
} call;

static void *call_thread(void *arg)
{
	struct server_process *p = arg;

	switch (call.what) {
	case ADD: p->status = vnic_driver_add_qpn(p->driver, call.qpn, call.flags); break;
	case SET: p->status = vnic_driver_set_qpn(p->driver, call.qpn, call.flags); break;
	case REMOVE: p->status = vnic_driver_remove_qpn(p->driver, call.qpn); break;
	case QUERY: p->status = vnic_driver_query_qpn(p->driver, call.dgid, call.qpn); break;
	case REGISTER:
		p->status = vnic_driver_register(p->driver, call.qpn, call.dgid, 0x77);
		break;
	}
	atomic_store(&p->done, true);
	return NULL;
}

static int make_call(uint32_t process)
{
	server_call(call_thread, &w->processes[process], serve);
	return w->processes[process].status;
}

static int add(uint32_t process, uint32_t qpn, bool reachable)
{
	call.what = ADD;
	call.qpn = qpn;
	call.flags = reachable ? VNIC_QPN_REACHABLE : 0;
	return make_call(process);
}

/* The message has no answer: it precedes the answer to a request. */
static void set_flags(uint32_t process, uint32_t qpn, uint32_t flags)
{
	call.what = SET;
	call.qpn = qpn;
	call.flags = flags;
	assert_int_equal(make_call(process), 0);
	call.what = QUERY;
	memset(call.dgid, 0, sizeof(call.dgid));
	assert_int_equal(make_call(process), -ENOENT);
}

static bool needs_uplink(uint32_t qpn)
{
	return qpn_table_needs_uplink(&w->server.sw.added, VNIC_BLOCK(qpn));
}

static int drop_qpn(uint32_t process, uint32_t qpn)
{
	call.what = REMOVE;
	call.qpn = qpn;
	return make_call(process);
}

/* Of this host's address, 10.0.0.1. */
static int query(uint32_t process, uint32_t qpn)
{
	call.what = QUERY;
	call.qpn = qpn;
	memcpy(call.dgid, w->server.host.addresses[0].ip, 16);
	return make_call(process);
}

static int connect_qpn(uint32_t process, uint32_t qpn)
{
	call.what = REGISTER;
	call.qpn = qpn;
	memcpy(call.dgid, w->server.host.addresses[0].ip, 16);
	return make_call(process);
}

static int attach(uint32_t process, void *(*how)(void *))
{
	accepted_uid = geteuid() + 1000 + (process == OTHER_USER);
	server_call(how, &w->processes[process], serve);
	accepted_uid = 0;
	return w->processes[process].status;
}

static struct switch_port *port_of(uint32_t process)
{
	return lease_owner(&w->server.sw.leases, w->processes[process].who.qpn_first);
}

static void *owner_of(uint32_t qpn)
{
	return lease_owner(&w->server.sw.leases, qpn);
}

static void detach(uint32_t process)
{
	vnic_driver_abandon(w->processes[process].driver);
	w->processes[process].driver = NULL;
	serve();
	while (sessions_reap(&w->server.sessions))
		;
}

static int setup(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	server_open(&w->server);
	server_begin(&w->server, T0);
	for (uint32_t i = 0; i < PROCESSES; i++)
		assert_int_equal(attach(i, server_attach_thread), 0);
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

/* --- Tests */

static void added_qpn_belongs_to_one_process(void **state)
{
	(void)state;
	assert_null(owner_of(QPN));
	assert_int_equal(drop_qpn(ONE, QPN), -ENOENT);
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_ptr_equal(owner_of(QPN), port_of(ONE));
	assert_null(owner_of(QPN + 1));
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(drop_qpn(TWO, QPN), -ENOENT);
	assert_int_equal(drop_qpn(ONE, QPN), 0);
	assert_null(owner_of(QPN));
	assert_int_equal(add(TWO, QPN, true), 0);
	assert_ptr_equal(owner_of(QPN), port_of(TWO));
}

/* The PIDs of two processes may be equal: 0 is that of a process whose namespace is hidden. */
static void connection_manager_distinguishes_users(void **state)
{
	const uint32_t qpn = w->processes[OTHER_USER].who.qpn_first;
	const struct sessions *s = &w->server.sessions;

	(void)state;
	assert_true(sessions_hold_qpn(s, getpid(), geteuid() + 1001, qpn));
	assert_false(sessions_hold_qpn(s, getpid(), geteuid() + 1000, qpn));
	assert_false(sessions_hold_qpn(s, getppid(), geteuid() + 1001, qpn));
}

/* The HCA gives the number out again before the process has removed it for the first queue pair. */
static void qpn_that_is_added_again_stays(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, false), 0);
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_int_equal(drop_qpn(ONE, QPN), 0);
	assert_int_equal(query(TWO, QPN), 0);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(drop_qpn(ONE, QPN), 0);
	assert_int_equal(drop_qpn(ONE, QPN), -ENOENT);
	assert_int_equal(add(TWO, QPN, true), 0);
}

static void leased_qpn_can_be_added_by_its_process_only(void **state)
{
	const uint32_t qpn = w->processes[ONE].who.qpn_first + 5;

	(void)state;
	assert_int_equal(add(TWO, qpn, true), -EEXIST);
	assert_int_equal(add(ONE, qpn, true), 0);
	assert_ptr_equal(owner_of(qpn), port_of(ONE));
	assert_int_equal(query(TWO, qpn), 0);
	assert_int_equal(query(TWO, qpn + 1), -ENOENT);
}

static void impossible_qpns_are_refused(void **state)
{
	static const uint32_t qpns[] = {0, 1, 0xffffff, 0x1000000, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
		assert_int_equal(add(ONE, qpns[i], true), -EINVAL);
		assert_int_equal(drop_qpn(ONE, qpns[i]), -ENOENT);
		assert_int_equal(query(ONE, qpns[i]), -ENOENT);
	}
	assert_int_equal(add(ONE, 0xfffffe, true), 0);
	assert_int_equal(add(ONE, 2, true), 0);
}

static int namespace_error; /* 0: the helper answers */

int __real_namespace_query(void *ctx, pid_t a, pid_t b);
int __wrap_namespace_query(void *ctx, pid_t a, pid_t b);

int __wrap_namespace_query(void *ctx, pid_t a, pid_t b)
{
	return namespace_error ? namespace_error : __real_namespace_query(ctx, a, b);
}

/* Both ends of a connection must choose alike, so they ask again. */
static void unknown_user_is_not_another_user(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, true), 0);
	namespace_error = -EBUSY;
	assert_int_equal(query(TWO, QPN), -EBUSY);
	namespace_error = -EPERM;
	assert_int_equal(query(TWO, QPN), -ENOENT);
	namespace_error = 0;
	assert_int_equal(query(TWO, QPN), 0);
}

static void peers_of_one_user_find_each_other(void **state)
{
	(void)state;
	assert_int_equal(query(TWO, QPN), -ENOENT);
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_int_equal(query(TWO, QPN), 0);
	assert_int_equal(query(ONE, QPN), 0);
	/* Another user might name a QPN that the HCA has given to somebody else. */
	assert_int_equal(query(OTHER_USER, QPN), -ENOENT);
	/* A GID of another host. */
	call.what = QUERY;
	call.dgid[15]++;
	assert_int_equal(make_call(TWO), -ENOENT);
	/* The process wants to be reached by its HCA only. */
	assert_int_equal(add(ONE, QPN, false), 0);
	assert_int_equal(query(TWO, QPN), -ENOENT);
	assert_ptr_equal(owner_of(QPN), port_of(ONE));
}

static void flags_of_an_added_qpn_change(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, false), 0);
	assert_false(needs_uplink(QPN));
	set_flags(ONE, QPN, VNIC_QPN_UPLINK);
	assert_true(needs_uplink(QPN));
	assert_int_equal(query(TWO, QPN), -ENOENT);
	set_flags(ONE, QPN, VNIC_QPN_REACHABLE);
	assert_false(needs_uplink(QPN));
	assert_int_equal(query(TWO, QPN), 0);
	/* Unknown flags, and QPNs of another process or of none, change nothing. */
	set_flags(ONE, QPN, VNIC_QPN_UPLINK | 4);
	set_flags(TWO, QPN, VNIC_QPN_UPLINK);
	set_flags(ONE, QPN + 1, VNIC_QPN_UPLINK);
	set_flags(ONE, UINT32_MAX, VNIC_QPN_UPLINK);
	assert_false(needs_uplink(QPN));
	assert_int_equal(query(TWO, QPN), 0);
}

/* Each block that the engine needs is counted once for each of its QPNs. */
static void uplink_is_needed_as_long_as_a_qpn_needs_it(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, false), 0);
	assert_int_equal(add(TWO, QPN + 1, false), 0);
	set_flags(ONE, QPN, VNIC_QPN_UPLINK);
	set_flags(ONE, QPN, VNIC_QPN_UPLINK);
	set_flags(TWO, QPN + 1, VNIC_QPN_UPLINK);
	assert_int_equal(drop_qpn(ONE, QPN), 0);
	assert_true(needs_uplink(QPN));
	detach(TWO);
	assert_false(needs_uplink(QPN));
	/* A queue pair with the same number is the HCA's. */
	assert_int_equal(add(ONE, QPN, false), 0);
	set_flags(ONE, QPN, VNIC_QPN_UPLINK);
	assert_int_equal(add(ONE, QPN, false), 0);
	assert_false(needs_uplink(QPN));
}

static void qpns_end_with_their_process(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3 * SESSIONS_REAP_STEP; i++)
		assert_int_equal(
			switch_add_qpn(&w->server.sw, port_of(ONE), QPN + i, VNIC_QPN_REACHABLE),
			0);
	detach(ONE);
	for (uint32_t i = 0; i < 3 * SESSIONS_REAP_STEP; i++)
		assert_null(owner_of(QPN + i));
	assert_int_equal(add(TWO, QPN, true), 0);
}

static void block_with_an_added_qpn_is_not_leased(void **state)
{
	struct lease_table *t = &w->server.sw.leases;
	const uint32_t block = t->last + 1;
	uint32_t qpn;

	(void)state;
	assert_int_equal(add(ONE, (block << LEASE_SHIFT) + 9, true), 0);
	assert_int_equal(lease_take(t, port_of(TWO), 0, 0, &qpn), 0);
	assert_int_equal(lease_block(qpn), block + 1);
}

/* The peers of the ended process may still send. */
static void qpn_of_another_users_process_is_refused(void **state)
{
	const uint32_t qpn = w->processes[OTHER_USER].who.qpn_first + 5;

	(void)state;
	detach(OTHER_USER);
	assert_int_equal(add(ONE, qpn, true), -EACCES);
	assert_null(owner_of(qpn));
	assert_int_equal(attach(OTHER_USER, server_attach_thread), 0);
	assert_int_equal(add(OTHER_USER, qpn, true), 0);
}

/* A process may connect its QPN, and send datagrams from it, as one of its lease. */
static void packets_of_added_qpns_pass_the_switch(void **state)
{
	static const uint8_t payload[32];
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.dest_qpn = QPN + 1,
		.deth.src_qpn = QPN,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 1),
		.payload = payload,
		.payload_len = sizeof(payload),
	};
	struct vnic_frame frame;
	uint8_t room[CRAFT_MAX];

	(void)state;
	assert_int_equal(connect_qpn(ONE, QPN), -EACCES);
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_int_equal(add(TWO, QPN + 1, true), 0);
	assert_int_equal(connect_qpn(ONE, QPN), 0);
	assert_int_equal(connect_qpn(TWO, QPN), -EACCES);
	memcpy(p.dmac, w->server.host.mac, 6);
	memcpy(p.smac, w->server.host.mac, 6);
	for (int i = 0; i < 2; i++) {
		struct server_process *from = &w->processes[i ? TWO : ONE];

		assert_int_equal(vnic_driver_tx_reserve(from->driver, &frame, 1), 1);
		frame.len = craft_frame(room, &p);
		memcpy(frame.data, room, frame.len);
		vnic_driver_tx_commit(from->driver, &frame, 1);
	}
	switch_run(&w->server.sw, T0);
	/* The second one pretended to come from another process's QPN. */
	assert_int_equal(vnic_driver_rx(w->processes[TWO].driver, &frame, 1), 1);
	vnic_driver_rx_release(w->processes[TWO].driver, 1);
	assert_int_equal(vnic_driver_rx(w->processes[TWO].driver, &frame, 1), 0);
	assert_int_equal(port_of(TWO)->stats.drops[SWITCH_DROP_SPOOFED_QPN], 1);
}

/* Restarts the daemon while the processes live. */
static void restart(void)
{
	server_end(&w->server);
	server_begin(&w->server, T0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		vnic_driver_abandon(w->processes[i].driver);
		w->processes[i].driver = NULL;
	}
}

static void survivor_keeps_its_qpns(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_int_equal(add(ONE, QPN + 1, true), 0);
	assert_int_equal(add(ONE, QPN + 2, true), 0);
	assert_int_equal(drop_qpn(ONE, QPN + 1), 0);
	restart();
	assert_int_equal(attach(TWO, server_claim_thread), 0);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(add(TWO, QPN + 1, true), 0);
	/* Before it adds its QPNs again, no frame reaches it by them. */
	assert_int_equal(attach(ONE, server_claim_thread), 0);
	assert_null(owner_of(QPN));
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_ptr_equal(owner_of(QPN), port_of(ONE));
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(add(TWO, QPN + 2, true), 0);
}

static bool frozen;

static bool is_frozen(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return frozen;
}

/* A frozen program claims its leases late: until then no other process gets its QPNs. */
static void frozen_program_keeps_its_qpns(void **state)
{
	uint64_t later = T0 + 10 * SESSION_CLAIM_NS;

	(void)state;
	assert_int_equal(add(ONE, QPN, true), 0);
	assert_int_equal(add(OTHER_USER, QPN + 1, true), 0);
	restart();
	frozen = true;
	w->server.sessions.is_frozen = is_frozen;
	assert_int_equal(attach(TWO, server_claim_thread), 0);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	sessions_tick(&w->server.sessions, later);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(attach(ONE, server_claim_thread), 0);
	assert_int_equal(add(ONE, QPN, true), 0);
	frozen = false;
	assert_int_equal(add(TWO, QPN + 1, true), -EEXIST);
	sessions_tick(&w->server.sessions, 2 * later);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	assert_int_equal(add(TWO, QPN + 1, true), 0);
}

static void qpns_of_ended_processes_are_free(void **state)
{
	(void)state;
	assert_int_equal(add(ONE, QPN, true), 0);
	restart();
	assert_int_equal(attach(TWO, server_claim_thread), 0);
	assert_int_equal(add(TWO, QPN, true), -EEXIST);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	assert_int_equal(add(TWO, QPN, true), 0);
}

static void user_has_a_quota(void **state)
{
	(void)state;
	/* Half of the table, by the switch's function, which has no quota of users. */
	for (uint32_t i = 0; i < QPN_TABLE_PER_OWNER; i++)
		assert_int_equal(switch_add_qpn(&w->server.sw, port_of(ONE), 0x400000 + i,
						VNIC_QPN_REACHABLE),
				 0);
	assert_int_equal(add(ONE, QPN, true), -ENOSPC);
	for (uint32_t i = 0; i < QPN_TABLE_PER_OWNER; i++)
		assert_int_equal(switch_add_qpn(&w->server.sw, port_of(TWO), 0x500000 + i,
						VNIC_QPN_REACHABLE),
				 0);
	assert_int_equal(drop_qpn(TWO, 0x500000), 0);
	assert_int_equal(add(TWO, QPN, true), 0);
	assert_int_equal(add(OTHER_USER, QPN + 1, true), 0);
	/* The other user has one, so this user's half is smaller. */
	assert_int_equal(drop_qpn(TWO, 0x500001), 0);
	assert_int_equal(add(TWO, QPN + 2, true), -ENOSPC);
	assert_int_equal(drop_qpn(TWO, 0x500002), 0);
	assert_int_equal(add(TWO, QPN + 2, true), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int start(void **state)
{
	return namespace_query_start() ?: lan_start(state);
}

static int stop(void **state)
{
	(void)state;
	namespace_query_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(added_qpn_belongs_to_one_process),
		TEST(qpn_that_is_added_again_stays),
		TEST(leased_qpn_can_be_added_by_its_process_only),
		TEST(impossible_qpns_are_refused),
		TEST(peers_of_one_user_find_each_other),
		TEST(unknown_user_is_not_another_user),
		TEST(flags_of_an_added_qpn_change),
		TEST(uplink_is_needed_as_long_as_a_qpn_needs_it),
		TEST(qpns_end_with_their_process),
		TEST(block_with_an_added_qpn_is_not_leased),
		TEST(qpn_of_another_users_process_is_refused),
		TEST(packets_of_added_qpns_pass_the_switch),
		TEST(connection_manager_distinguishes_users),
		TEST(survivor_keeps_its_qpns),
		TEST(frozen_program_keeps_its_qpns),
		TEST(qpns_of_ended_processes_are_free),
		TEST(user_has_a_quota),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
