/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's clients over a real socket: this thread is the daemon, and others
 * make the driver's calls that wait for its answers.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/netdev.h>
#include <rxe/packet.h>
#include <vnic/driver.h>

#include "client.h"
#include "craft.h"
#include "switch_run.h"

#define MTU          1500
#define T0           1000000000ull
#define UD_SEND_ONLY 0x64
#define FRAMES       100 /* more than the switch moves at a time, and less than a ring holds */

struct process {
	struct vnic_attach_welcome who;
	struct vnic_driver *driver;
	int status;
	atomic_bool done;
};

struct world {
	char run_dir[32];
	int listen_fd;
	struct host host;
	struct neigh neigh;
	struct vswitch sw;
	struct record record;
	struct clients clients;
	struct process leaver, stayer;
};

static struct world *w;

static const struct neigh_ops no_ops;

static void *attach_thread(void *arg)
{
	struct process *p = arg;

	p->status = vnic_driver_attach(w->run_dir, &p->who, &p->driver);
	atomic_store(&p->done, true);
	return NULL;
}

static void *claim_thread(void *arg)
{
	struct process *p = arg;
	const struct vnic_attach_welcome was = p->who;

	p->status = vnic_driver_claim(w->run_dir, &was, &p->who, &p->driver);
	atomic_store(&p->done, true);
	return NULL;
}

static void *detach_thread(void *arg)
{
	struct process *p = arg;

	vnic_driver_detach(p->driver);
	atomic_store(&p->done, true);
	return NULL;
}

/* Takes what sockets have, as the daemon does between two runs of the switch. */
static void take_events(void)
{
	struct client *c;

	while (!client_accept(&w->clients, w->listen_fd))
		;
	for (c = w->clients.list; c; c = c->next)
		client_event(&w->clients, T0, c);
	client_tick(&w->clients, T0);
}

/* Runs a driver's call in a thread, and answers it. */
static void serve(void *(*call)(void *), struct process *p)
{
	pthread_t thread;

	atomic_store(&p->done, false);
	assert_int_equal(pthread_create(&thread, NULL, call, p), 0);
	while (!atomic_load(&p->done)) {
		take_events();
		usleep(100);
	}
	pthread_join(thread, NULL);
}

/* A daemon begins, with what another one may have left in the run directory. */
static void begin(void)
{
	assert_int_equal(record_open(&w->record, w->run_dir), 0);
	neigh_init(&w->neigh, &w->host, &no_ops, NULL);
	assert_int_equal(switch_init(&w->sw, &w->host, &w->neigh, NULL, 0), 0);
	w->clients = (struct clients){.epoll_fd = epoll_create1(0),
				      .host = &w->host,
				      .sw = &w->sw,
				      .neigh = &w->neigh,
				      .record = &w->record};
	client_begin(&w->clients, T0);
	assert_true(w->clients.epoll_fd >= 0);
}

static void end(void)
{
	record_close(&w->record, w->run_dir);
	client_close_all(&w->clients);
	switch_fini(&w->sw);
	close(w->clients.epoll_fd);
}

static int setup(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	strcpy(w->run_dir, "/tmp/test-client-XXXXXX");
	assert_non_null(mkdtemp(w->run_dir));
	w->listen_fd = vnic_server_listen(w->run_dir);
	assert_true(w->listen_fd >= 0);
	host_init(&w->host);
	w->host.mtu = MTU;
	assert_int_equal(host_add_text(&w->host, "10.0.0.1/24", HOST_NO_UPLINK), 0);
	begin();
	serve(attach_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	serve(attach_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
	return 0;
}

static int teardown(void **state)
{
	char path[64];

	(void)state;
	vnic_driver_abandon(w->stayer.driver);
	end();
	close(w->listen_fd);
	snprintf(path, sizeof(path), "%s/" RECORD_NAME, w->run_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, w->run_dir);
	unlink(path);
	rmdir(w->run_dir);
	free(w);
	return 0;
}

/* A datagram for the stayer, with its number at the end. */
static void post(uint32_t number)
{
	static const uint8_t payload[32];
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.dest_qpn = w->stayer.who.qpn_first,
		.deth.src_qpn = w->leaver.who.qpn_first,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 1),
		.payload = payload,
		.payload_len = sizeof(payload),
	};
	struct vnic_frame frame;
	uint8_t room[CRAFT_MAX];

	memcpy(p.dmac, w->host.mac, 6);
	memcpy(p.smac, w->host.mac, 6);
	assert_int_equal(vnic_driver_tx_reserve(w->leaver.driver, &frame, 1), 1);
	frame.len = craft_frame(room, &p);
	memcpy(frame.data, room, frame.len);
	memcpy(frame.data + frame.len - 4, &number, 4);
	vnic_driver_tx_commit(w->leaver.driver, &frame, 1);
}

static void stayer_has_all(void)
{
	struct vnic_frame frame;
	uint32_t n = 0, number;

	while (vnic_driver_rx(w->stayer.driver, &frame, 1)) {
		memcpy(&number, frame.data + frame.len - 4, 4);
		assert_int_equal(number, n++);
		vnic_driver_rx_release(w->stayer.driver, 1);
	}
	assert_int_equal(n, FRAMES);
}

/* Its doorbell and its hang-up are seen together: the daemon was busy, or had no core. */
static void who_hangs_up_is_still_heard(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++)
		post(i);
	vnic_driver_abandon(w->leaver.driver);
	take_events();
	assert_true(client_reap(&w->clients));
	assert_int_equal(w->clients.n, 1);
	switch_run(&w->sw, T0);
	stayer_has_all();
}

static void who_detaches_is_still_heard(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++)
		post(i);
	serve(detach_thread, &w->leaver);
	take_events();
	assert_true(client_reap(&w->clients));
	switch_run(&w->sw, T0);
	stayer_has_all();
}

static void changes_are_told(void **state)
{
	struct vnic_attach_port port;
	int question;

	(void)state;
	assert_int_equal(w->stayer.who.mtu, HOST_MTU);
	assert_int_equal(w->stayer.who.port.link_mtu, MTU);
	assert_int_equal(w->stayer.who.port.up, 1);
	assert_false(vnic_driver_notice(w->stayer.driver, &port, &question));
	w->host.up = false;
	client_notice(&w->clients);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.up, 0);
	vnic_driver_abandon(w->leaver.driver);
}

/* Who let its notices fill the socket hears the newest once it reads, without another change. */
static void changes_are_told_late(void **state)
{
	struct vnic_attach_port port;
	struct epoll_event event;
	struct client *c;
	int question;

	(void)state;
	for (c = w->clients.list; c && !c->stale;)
		client_notice(&w->clients);
	w->host.mtu = 1000;
	client_notice(&w->clients);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.link_mtu, MTU);
	assert_int_equal(epoll_wait(w->clients.epoll_fd, &event, 1, 0), 1);
	client_event(&w->clients, T0, event.data.ptr);
	assert_true(vnic_driver_notice(w->stayer.driver, &port, &question));
	assert_int_equal(port.link_mtu, 1000);
	assert_int_equal(w->clients.n, 2);
	vnic_driver_abandon(w->leaver.driver);
}

/* The daemon is replaced under both processes. */
static void restart(void)
{
	end();
	begin();
	assert_int_equal(w->clients.n, 0);
	vnic_driver_abandon(w->leaver.driver);
	vnic_driver_abandon(w->stayer.driver);
}

static void survivors_come_before_newcomers(void **state)
{
	struct process newcomer = {.status = -1};
	uint32_t leavers = w->leaver.who.qpn_first, stayers = w->stayer.who.qpn_first;
	pthread_t thread;

	(void)state;
	restart();
	assert_int_equal(pthread_create(&thread, NULL, attach_thread, &newcomer), 0);
	while (!w->clients.n || !w->clients.list->greeting)
		take_events();
	serve(claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	assert_int_equal(w->leaver.who.qpn_first, leavers);
	assert_false(atomic_load(&newcomer.done));
	serve(claim_thread, &w->stayer);
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

static void newcomers_wait_for_so_long(void **state)
{
	struct process newcomer = {.status = -1};
	pthread_t thread;

	(void)state;
	restart();
	assert_int_equal(pthread_create(&thread, NULL, attach_thread, &newcomer), 0);
	while (!w->clients.n || !w->clients.list->greeting)
		take_events();
	assert_in_range(client_tick(&w->clients, T0), T0 + 1, T0 + CLIENT_CLAIM_NS);
	assert_int_equal(client_tick(&w->clients, T0 + CLIENT_CLAIM_NS - 1), T0 + CLIENT_CLAIM_NS);
	assert_false(w->clients.list->joined);
	client_tick(&w->clients, T0 + CLIENT_CLAIM_NS);
	while (!atomic_load(&newcomer.done)) {
		take_events();
		usleep(100);
	}
	pthread_join(thread, NULL);
	assert_int_equal(newcomer.status, 0);
	/* Others may still send to the numbers that survivors had. */
	assert_true(newcomer.who.qpn_first > w->leaver.who.qpn_first);
	assert_true(newcomer.who.qpn_first > w->stayer.who.qpn_first);
	vnic_driver_abandon(newcomer.driver);

	serve(claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, -EPERM);
	w->stayer.driver = NULL;
}

static void a_wrong_token_claims_nothing(void **state)
{
	struct process thief;

	(void)state;
	restart();
	thief = w->leaver;
	thief.who.token ^= 1;
	serve(claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	thief = w->leaver;
	thief.who.qpn_first = w->stayer.who.qpn_first;
	serve(claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	serve(claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	/* Who has it cannot be claimed from. */
	thief = w->leaver;
	serve(claim_thread, &thief);
	assert_int_equal(thief.status, -EPERM);
	vnic_driver_abandon(w->leaver.driver);
	w->stayer.driver = NULL;
}

static const uint8_t elsewhere[16] = {0xfe, 0x80, [15] = 9};

static void *register_thread(void *arg)
{
	struct process *p = arg;

	p->status = vnic_driver_register(p->driver, elsewhere, 0x1234);
	atomic_store(&p->done, true);
	return NULL;
}

/* Who is quicker after a restart of the daemon does not get another's peer. */
static void survivors_keep_whom_they_speak_to(void **state)
{
	(void)state;
	serve(register_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	restart();
	serve(claim_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
	serve(register_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EADDRINUSE);
	serve(claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	serve(register_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EADDRINUSE);
	serve(register_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	client_tick(&w->clients, T0 + CLIENT_CLAIM_NS);
	serve(register_thread, &w->stayer);
	assert_int_equal(w->stayer.status, -EADDRINUSE);
	vnic_driver_abandon(w->leaver.driver);
}

static void who_does_not_claim_keeps_nobody(void **state)
{
	(void)state;
	serve(register_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	restart();
	serve(claim_thread, &w->stayer);
	client_tick(&w->clients, T0 + CLIENT_CLAIM_NS);
	serve(register_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
}

static int start_dpdk(void **state)
{
	char why[256];

	(void)state;
	return netdev_dpdk_start(why, sizeof(why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_hangs_up_is_still_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(who_detaches_is_still_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(survivors_come_before_newcomers, setup, teardown),
		cmocka_unit_test_setup_teardown(newcomers_wait_for_so_long, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wrong_token_claims_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(survivors_keep_whom_they_speak_to, setup, teardown),
		cmocka_unit_test_setup_teardown(who_does_not_claim_keeps_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_are_told_late, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start_dpdk, NULL);
}
