/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests of sessions over a real socket: the test's thread is the daemon, and two processes are
 * attached. Other threads make the driver's calls, which wait for the daemon's answers.
 */
#ifndef URXE_TEST_SESSION_PAIR_H
#define URXE_TEST_SESSION_PAIR_H

#include <stdlib.h>

#include "lan.h"
#include "server.h"

#define MTU 1500
#define T0  1000000000ull

/* Of the running test. */
static struct session_pair {
	struct server server;
	struct server_process leaver, stayer;
} * w;

static void take_events(void)
{
	server_take_events(&w->server, T0);
	sessions_tick(&w->server.sessions, T0);
}

/* Removes all sessions whose processes have hung up. */
static void reap_all(void)
{
	take_events();
	while (sessions_reap(&w->server.sessions))
		;
}

static void serve(void *(*call)(void *), struct server_process *p)
{
	server_call(call, p, take_events);
}

static void attach_both(void)
{
	w->server.host.mtu = MTU;
	server_begin(&w->server, T0);
	serve(server_attach_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	serve(server_attach_thread, &w->stayer);
	assert_int_equal(w->stayer.status, 0);
}

/* Setup of cmocka: opens the daemon, and attaches both processes. */
static int session_pair_open(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	server_open(&w->server);
	attach_both();
	return 0;
}

/* The test has ended or detached the leaver. */
static void session_pair_close(void)
{
	vnic_driver_abandon(w->stayer.driver);
	server_end(&w->server);
	server_close(&w->server);
	free(w);
}

#endif
