/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions over a real socket: this thread is the daemon, and other threads make the driver's
 * calls, which wait for the daemon's answers.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/driver.h>

#include "common/clock.h"
#include "session_pair.h"

static int notice_error; /* of the daemon's notices; 0 = they are sent */

int __real_vnic_server_notice(struct vnic_server_client *client,
			      const struct vnic_attach_port *port);
int __wrap_vnic_server_notice(struct vnic_server_client *client,
			      const struct vnic_attach_port *port);

int __wrap_vnic_server_notice(struct vnic_server_client *client,
			      const struct vnic_attach_port *port)
{
	return notice_error ? notice_error : __real_vnic_server_notice(client, port);
}

static uint32_t demanded;

static void *demand_thread(void *arg)
{
	struct server_process *p = arg;

	p->status = vnic_driver_demand(w->server.run_dir, demanded, &p->who, &p->driver);
	atomic_store(&p->done, true);
	return NULL;
}

static int setup(void **state)
{
	return session_pair_open(state);
}

static int teardown(void **state)
{
	(void)state;
	session_pair_close();
	return 0;
}

static void port_changes_are_sent_to_processes(void **state)
{
	struct vnic_attach_port port;
	int question;

	(void)state;
	assert_int_equal(w->stayer.who.mtu, HOST_MTU);
	assert_int_equal(w->stayer.who.port.link_mtu, MTU);
	assert_int_equal(w->stayer.who.port.up, 1);
	assert_false(vnic_driver_notice(w->stayer.driver, &port, &question));
	w->server.host.up = false;
	sessions_send_port(&w->server.sessions);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.up, 0);
	vnic_driver_abandon(w->leaver.driver);
}

/* A process whose socket was full gets the newest notice once it reads. */
static void port_changes_are_sent_when_the_socket_drains(void **state)
{
	struct vnic_attach_port port;
	struct epoll_event event;
	struct session *c;
	int question;

	(void)state;
	for (c = w->server.sessions.list; c && !c->port_unsent;)
		sessions_send_port(&w->server.sessions);
	w->server.host.mtu = 1000;
	sessions_send_port(&w->server.sessions);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.link_mtu, MTU);
	assert_int_equal(epoll_wait(w->server.sessions.epoll_fd, &event, 1, 0), 1);
	session_event(&w->server.sessions, T0, event.data.ptr);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.link_mtu, 1000);
	assert_int_equal(w->server.sessions.n, 2);
	vnic_driver_abandon(w->leaver.driver);
}

static void port_changes_are_sent_when_there_is_memory_again(void **state)
{
	struct vnic_attach_port port;
	uint64_t again;
	int question;

	(void)state;
	assert_int_equal(sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS), UINT64_MAX);
	notice_error = -ENOBUFS;
	w->server.host.mtu = 1000;
	sessions_send_port(&w->server.sessions);
	again = sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	assert_int_not_equal(again, UINT64_MAX);
	again = sessions_tick(&w->server.sessions, again);
	notice_error = 0;
	assert_false(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(sessions_tick(&w->server.sessions, again), UINT64_MAX);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.link_mtu, 1000);
	vnic_driver_abandon(w->leaver.driver);
}

/* Restarts the daemon while both processes live. */
static void restart(void)
{
	server_end(&w->server);
	server_begin(&w->server, T0);
	assert_int_equal(w->server.sessions.n, 0);
	vnic_driver_abandon(w->leaver.driver);
	vnic_driver_abandon(w->stayer.driver);
}

static void newcomer_waits_for_claims_of_survivors(void **state)
{
	struct server_process newcomer = {.status = -1};
	uint32_t leavers = w->leaver.who.qpn_first, stayers = w->stayer.who.qpn_first;
	pthread_t thread;

	(void)state;
	restart();
	assert_int_equal(pthread_create(&thread, NULL, server_attach_thread, &newcomer), 0);
	while (!w->server.sessions.n || !w->server.sessions.list->awaits_welcome)
		take_events();
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	assert_int_equal(w->leaver.who.qpn_first, leavers);
	assert_false(atomic_load(&newcomer.done));
	serve(server_claim_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
	assert_int_equal(w->stayer.who.qpn_first, stayers);
	while (!atomic_load(&newcomer.done)) {
		take_events();
		usleep(100);
	}
	pthread_join(thread, NULL);
	assert_int_equal(newcomer.status, 0);
	assert_int_not_equal(newcomer.who.qpn_first, leavers);
	assert_int_not_equal(newcomer.who.qpn_first, stayers);
	vnic_driver_abandon(newcomer.driver);
	vnic_driver_abandon(w->leaver.driver);
}

static void newcomer_waits_at_most_the_claim_time(void **state)
{
	struct server_process newcomer = {.status = -1};
	pthread_t thread;

	(void)state;
	restart();
	assert_int_equal(pthread_create(&thread, NULL, server_attach_thread, &newcomer), 0);
	while (!w->server.sessions.n || !w->server.sessions.list->awaits_welcome)
		take_events();
	assert_in_range(sessions_tick(&w->server.sessions, T0), T0 + 1, T0 + SESSION_CLAIM_NS);
	assert_int_equal(sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS - 1),
			 T0 + SESSION_CLAIM_NS);
	assert_false(w->server.sessions.list->joined);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	while (!atomic_load(&newcomer.done)) {
		take_events();
		usleep(100);
	}
	pthread_join(thread, NULL);
	assert_int_equal(newcomer.status, 0);
	/* The newcomer gets no QPN of a survivor: peers may still send to it. */
	assert_true(newcomer.who.qpn_first > w->leaver.who.qpn_first);
	assert_true(newcomer.who.qpn_first > w->stayer.who.qpn_first);
	vnic_driver_abandon(newcomer.driver);

	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, -EPERM);
	w->stayer.driver = NULL;
}

/* The start of the daemon has taken longer than the claim time. */
static void the_claim_time_begins_when_the_daemon_serves(void **state)
{
	const uint64_t served = T0 + 2 * SESSION_CLAIM_NS;

	(void)state;
	restart();
	sessions_begin_claims(&w->server.sessions, served);
	sessions_tick(&w->server.sessions, served + SESSION_CLAIM_NS - 1);
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	sessions_tick(&w->server.sessions, served + SESSION_CLAIM_NS);
	serve(server_claim_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EPERM);
	vnic_driver_abandon(w->leaver.driver);
	w->stayer.driver = NULL;
}

static bool frozen;

static bool is_frozen(void *ctx, pid_t pid)
{
	(void)ctx;
	return frozen && pid == getpid();
}

static void run_until_done(struct server_process *p, pthread_t thread)
{
	while (!atomic_load(&p->done)) {
		take_events();
		usleep(100);
	}
	pthread_join(thread, NULL);
}

/* Nobody waits for such a program, and nobody gets its QPNs. */
static void frozen_program_claims_late(void **state)
{
	const uint64_t later = T0 + 10 * SESSION_CLAIM_NS;
	struct server_process newcomer = {.status = -1};
	pthread_t thread;

	(void)state;
	restart();
	frozen = true;
	w->server.sessions.is_frozen = is_frozen;
	assert_int_equal(pthread_create(&thread, NULL, server_attach_thread, &newcomer), 0);
	while (!w->server.sessions.n || !w->server.sessions.list->awaits_welcome)
		take_events();
	assert_int_equal(sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS - 1),
			 T0 + SESSION_CLAIM_NS);
	w->server.sw.leases.last = lease_block(w->leaver.who.qpn_first) - 1;
	assert_true(sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS) < later);
	run_until_done(&newcomer, thread);
	assert_int_equal(newcomer.status, 0);
	assert_true(newcomer.who.qpn_first > w->leaver.who.qpn_first);
	assert_true(newcomer.who.qpn_first > w->stayer.who.qpn_first);
	vnic_driver_abandon(newcomer.driver);

	assert_true(sessions_tick(&w->server.sessions, later) != UINT64_MAX);
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	vnic_driver_abandon(w->leaver.driver);
	frozen = false;
	assert_int_equal(sessions_tick(&w->server.sessions, 2 * later), UINT64_MAX);
	serve(server_claim_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EPERM);
	w->stayer.driver = NULL;
}

static void wrong_token_claims_nothing(void **state)
{
	struct server_process thief;

	(void)state;
	restart();
	thief = w->leaver;
	thief.who.token ^= 1;
	serve(server_claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	thief = w->leaver;
	thief.who.qpn_first = w->stayer.who.qpn_first;
	serve(server_claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	/* A block that is leased cannot be claimed. */
	thief = w->leaver;
	thief.who.token ^= 1;
	serve(server_claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	vnic_driver_abandon(w->leaver.driver);
	w->stayer.driver = NULL;
}

/* --- Several blocks */

static uint32_t leased;

static void *lease_thread(void *arg)
{
	struct server_process *p = arg;

	p->status = vnic_driver_lease(p->driver, &leased);
	atomic_store(&p->done, true);
	return NULL;
}

/* Asks for another block; returns the status. */
static int lease(struct server_process *p)
{
	leased = 0;
	serve(lease_thread, p);
	return p->status;
}

static void *owner_of(uint32_t qpn)
{
	return lease_owner(&w->server.sw.leases, qpn);
}

/* --- Claims whose connections end */

/* Asks for another block, and closes the connection before the answer. */
static void give_up_request(const struct server_process *p)
{
	const struct vnic_attach_lease request = {.type = VNIC_ATTACH_LEASE};

	assert_int_equal(send(vnic_driver_ctl_fd(p->driver), &request, sizeof(request), 0),
			 sizeof(request));
	vnic_driver_abandon(p->driver);
}

static void claim_again(struct server_process *p)
{
	serve(server_claim_thread, p);
	assert_int_equal(p->status, 0);
}

/* The daemon stood still, and the process no longer waited. */
static void a_claim_without_a_reader_is_made_again(void **state)
{
	const uint32_t block = w->leaver.who.qpn_first;

	(void)state;
	assert_int_equal(lease(&w->leaver), 0);
	restart();
	close(server_send_claim(&w->server, &w->leaver));
	reap_all();
	claim_again(&w->leaver);
	assert_int_equal(w->leaver.who.qpn_first, block);
	assert_int_equal(w->leaver.who.leases, 2);
	vnic_driver_abandon(w->leaver.driver);
	serve(server_claim_thread, &w->stayer);
}

/* The process had no descriptors free for the welcome. */
static void a_claim_without_its_descriptors_is_made_again(void **state)
{
	struct vnic_attach_welcome message;
	int fd;

	(void)state;
	restart();
	fd = server_send_claim(&w->server, &w->leaver);
	take_events();
	assert_true(recv(fd, &message, sizeof(message), 0) > 0);
	close(fd);
	/* The daemon may see the next claim first. */
	fd = server_send_claim(&w->server, &w->leaver);
	take_events();
	assert_true(recv(fd, &message, sizeof(message), 0) > 0);
	assert_int_equal(message.status, -EBUSY);
	close(fd);
	reap_all();
	claim_again(&w->leaver);
	vnic_driver_abandon(w->leaver.driver);
	serve(server_claim_thread, &w->stayer);
}

/* A process that gave up a request to a daemon that stood still goes on with the same daemon. */
static void a_process_that_gives_up_a_request_claims_its_leases(void **state)
{
	const uint64_t lost = T0 + SESSION_LOST_NS;
	struct server_process newcomer;

	(void)state;
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	give_up_request(&w->leaver);
	reap_all();
	assert_null(owner_of(w->leaver.who.qpn_first));
	/* Nobody waits, and nobody gets the block. */
	w->server.sw.leases.last = lease_block(w->leaver.who.qpn_first) - 1;
	serve(server_attach_thread, &newcomer);
	assert_int_equal(newcomer.status, 0);
	assert_int_not_equal(newcomer.who.qpn_first, w->leaver.who.qpn_first);
	vnic_driver_abandon(newcomer.driver);
	claim_again(&w->leaver);

	give_up_request(&w->leaver);
	reap_all();
	assert_true(sessions_tick(&w->server.sessions, lost - 1) < UINT64_MAX);
	assert_true(w->server.lease_store.claimable[lease_block(w->leaver.who.qpn_first)]);
	assert_int_equal(sessions_tick(&w->server.sessions, lost + NS_PER_SEC), UINT64_MAX);
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, -EPERM);
}

/* As of a process that is being killed: its descriptors are closed before it has ended. */
static void a_process_that_ends_after_its_connection_frees_its_blocks_soon(void **state)
{
	const uint32_t block = lease_block(w->leaver.who.qpn_first);
	uint64_t look;

	(void)state;
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	give_up_request(&w->leaver);
	reap_all();
	w->server.lease_store.entries[block].start++;
	look = sessions_tick(&w->server.sessions, T0);
	assert_true(look <= T0 + NS_PER_SEC / 10);
	sessions_tick(&w->server.sessions, look);
	assert_false(w->server.lease_store.claimable[block]);
}

/* --- Demanded blocks, for restored queue pairs */

/* Another process demands the block that begins with qpn; returns the status. */
static int demand(uint32_t qpn, struct server_process *p)
{
	*p = (struct server_process){0};
	demanded = qpn;
	serve(demand_thread, p);
	return p->status;
}

static void a_demanded_block_is_leased(void **state)
{
	const uint32_t block = 77 * VNIC_LEASE_QPNS, other = 99 * VNIC_LEASE_QPNS;
	struct server_process p;

	(void)state;
	assert_int_equal(demand(block, &p), 0);
	assert_int_equal(p.who.qpn_first, block);
	assert_int_equal(p.who.leases, 1);
	assert_non_null(owner_of(block));
	leased = other;
	serve(lease_thread, &p);
	assert_int_equal(p.status, 0);
	assert_int_equal(leased, other);
	assert_ptr_equal(owner_of(other), owner_of(block));
	vnic_driver_abandon(p.driver);
	vnic_driver_abandon(w->leaver.driver);
}

static void a_block_of_another_process_is_refused(void **state)
{
	struct server_process p;

	(void)state;
	assert_int_equal(demand(w->leaver.who.qpn_first, &p), -EEXIST);
	assert_int_equal(demand(0, &p), -EINVAL);
	assert_int_equal(demand(77 * VNIC_LEASE_QPNS + 1, &p), -EINVAL);
	assert_int_equal(demand(0xfff000, &p), -EINVAL);
	leased = w->leaver.who.qpn_first;
	serve(lease_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EEXIST);
	vnic_driver_abandon(w->leaver.driver);
}

static void a_block_is_leased_again_after_the_end_of_its_process(void **state)
{
	const uint32_t block = w->leaver.who.qpn_first;
	struct server_process p;

	(void)state;
	vnic_driver_abandon(w->leaver.driver);
	reap_all();
	assert_null(owner_of(block));
	assert_int_equal(demand(block, &p), 0);
	assert_int_equal(p.who.qpn_first, block);
	vnic_driver_abandon(p.driver);
}

/* The peers of another user's process may still send. */
static void a_block_of_another_user_is_not_leased_soon(void **state)
{
	const uint32_t block = w->leaver.who.qpn_first;
	struct lease_store *store = &w->server.lease_store;
	struct server_process p;

	(void)state;
	vnic_driver_abandon(w->leaver.driver);
	w->leaver.driver = NULL;
	reap_all();
	lease_store_add(store, block, getpid(), getuid() + 1, 0);
	lease_store_remove(store, block);
	for (int daemons = 0;; daemons++) {
		assert_int_equal(demand(block, &p), -EACCES);
		w->server.sw.leases.last = lease_block(block) - 1;
		serve(server_attach_thread, &p);
		assert_int_equal(p.status, 0);
		assert_int_not_equal(p.who.qpn_first, block);
		vnic_driver_abandon(p.driver);
		if (daemons)
			break;
		reap_all();
		restart();
		serve(server_claim_thread, &w->stayer);
	}
	store->past[lease_block(block)].user = 0;
	assert_int_equal(demand(block, &p), 0);
	vnic_driver_abandon(p.driver);
}

static void blocks_per_process_are_limited(void **state)
{
	uint32_t first = w->leaver.who.qpn_first, more[VNIC_LEASES_MAX];
	int i;

	(void)state;
	for (i = 1; i < VNIC_LEASES_MAX; i++) {
		assert_int_equal(lease(&w->leaver), 0);
		more[i] = leased;
		assert_ptr_equal(owner_of(more[i]), owner_of(first));
		assert_ptr_equal(owner_of(more[i] + VNIC_LEASE_QPNS - 1), owner_of(first));
	}
	assert_int_equal(lease(&w->leaver), -ENOSPC);
	assert_int_equal(lease(&w->stayer), 0);
	assert_ptr_equal(owner_of(leased), owner_of(w->stayer.who.qpn_first));
	/* When the session ends, all blocks are removed, also from the store. */
	vnic_driver_abandon(w->leaver.driver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	assert_null(owner_of(first));
	for (i = 1; i < VNIC_LEASES_MAX; i++) {
		assert_null(owner_of(more[i]));
		assert_int_equal(w->server.lease_store.entries[lease_block(more[i])].token, 0);
	}
	assert_non_null(owner_of(leased));
}

static void later_leases_can_be_claimed_too(void **state)
{
	uint32_t blocks[VNIC_LEASES_MAX], first = w->leaver.who.qpn_first;

	(void)state;
	for (int i = 1; i < VNIC_LEASES_MAX; i++) {
		assert_int_equal(lease(&w->leaver), 0);
		blocks[i] = leased;
	}
	restart();
	serve(server_claim_thread, &w->stayer);
	assert_int_equal(w->stayer.who.leases, 1);
	/* No other process gets a claimable block, not even another survivor. */
	w->server.sw.leases.last = lease_block(blocks[1]) - 1;
	assert_int_equal(lease(&w->stayer), 0);
	assert_null(owner_of(blocks[1]));
	/* One claim gets all blocks of the process. */
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	assert_int_equal(w->leaver.who.leases, VNIC_LEASES_MAX);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	for (int i = 1; i < VNIC_LEASES_MAX; i++)
		assert_ptr_equal(owner_of(blocks[i]), owner_of(first));
	assert_int_equal(lease(&w->leaver), -ENOSPC);
	vnic_driver_abandon(w->leaver.driver);
}

static const struct remote_qp_key elsewhere = {.gid = {0xfe, 0x80, [15] = 9}, .qpn = 0x1234};

static void *register_thread(void *arg)
{
	struct server_process *p = arg;

	p->status = vnic_driver_register(p->driver, p->who.qpn_first, elsewhere.gid, elsewhere.qpn);
	atomic_store(&p->done, true);
	return NULL;
}

static void connect_process(struct server_process *p)
{
	serve(register_thread, p);
	assert_int_equal(p->status, 0);
}

/* May the process send UC packets to the remote QP? That is the process that registered first. */
static bool is_first(const struct server_process *p)
{
	const struct switch_port *port = owner_of(p->who.qpn_first);

	return remote_qp_acl_check_other_host(&w->server.sw.remotes, &port->remotes, REMOTE_QP_UC,
					      &elsewhere) == REMOTE_QP_GRANTED;
}

/* After a restart, a process cannot take the remote QP of a process that claims later. */
static void survivor_keeps_its_remote_qps(void **state)
{
	(void)state;
	connect_process(&w->leaver);
	restart();
	serve(server_claim_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
	connect_process(&w->stayer);
	assert_false(is_first(&w->stayer));
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	assert_false(is_first(&w->stayer));
	assert_true(is_first(&w->leaver));
	connect_process(&w->leaver);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	assert_false(is_first(&w->stayer));
	assert_true(is_first(&w->leaver));
	vnic_driver_abandon(w->leaver.driver);
}

static void unclaimed_remote_qps_are_free_after_the_claim_time(void **state)
{
	(void)state;
	connect_process(&w->leaver);
	restart();
	serve(server_claim_thread, &w->stayer);
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	connect_process(&w->stayer);
	assert_true(is_first(&w->stayer));
}

/* A program that ends while it is frozen, and another one that loses its connection. */
static void remote_qps_of_a_frozen_program_that_ends_are_free(void **state)
{
	const uint64_t later = T0 + 2 * SESSION_CLAIM_NS;
	struct lease_store *store = &w->server.lease_store;
	struct server_process newcomer;
	int claim;

	(void)state;
	connect_process(&w->leaver);
	restart();
	frozen = true;
	w->server.sessions.is_frozen = is_frozen;
	claim = server_send_claim(&w->server, &w->stayer);
	take_events();
	sessions_tick(&w->server.sessions, T0 + SESSION_CLAIM_NS);
	serve(server_attach_thread, &newcomer);
	store->entries[lease_block(w->leaver.who.qpn_first)].start++;
	lease_store_prune_claims(store);
	close(claim);
	reap_all();
	sessions_tick(&w->server.sessions, later);
	frozen = false;
	connect_process(&newcomer);
	assert_true(is_first(&newcomer));
	vnic_driver_abandon(newcomer.driver);
	claim_again(&w->stayer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(newcomer_waits_for_claims_of_survivors, setup,
						teardown),
		cmocka_unit_test_setup_teardown(newcomer_waits_at_most_the_claim_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_claim_time_begins_when_the_daemon_serves, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frozen_program_claims_late, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_token_claims_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_claim_without_a_reader_is_made_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_claim_without_its_descriptors_is_made_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_process_that_gives_up_a_request_claims_its_leases,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_process_that_ends_after_its_connection_frees_its_blocks_soon, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_demanded_block_is_leased, setup, teardown),
		cmocka_unit_test_setup_teardown(a_block_of_another_process_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_block_is_leased_again_after_the_end_of_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(a_block_of_another_user_is_not_leased_soon, setup,
						teardown),
		cmocka_unit_test_setup_teardown(blocks_per_process_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(later_leases_can_be_claimed_too, setup, teardown),
		cmocka_unit_test_setup_teardown(survivor_keeps_its_remote_qps, setup, teardown),
		cmocka_unit_test_setup_teardown(unclaimed_remote_qps_are_free_after_the_claim_time,
						setup, teardown),
		cmocka_unit_test_setup_teardown(remote_qps_of_a_frozen_program_that_ends_are_free,
						setup, teardown),
		cmocka_unit_test_setup_teardown(port_changes_are_sent_to_processes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(port_changes_are_sent_when_there_is_memory_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(port_changes_are_sent_when_the_socket_drains, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
