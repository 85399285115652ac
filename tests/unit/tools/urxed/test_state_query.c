/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests for the states of processes: each user's processes answer on a socket of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/driver.h>

#include "lan.h"
#include "server.h"
#include "urxed/report/state_query.h"

#define T0         1000000000ull
#define PROCESSES  3
#define OTHER_USER 1234

static struct server server;
static struct server_process processes[PROCESSES];

/* The last process belongs to another user, if this one may become another user. */
static void become_other_user(const struct server_process *p)
{
	/* The thread alone, unlike seteuid(3). */
	if (p == &processes[PROCESSES - 1] && !geteuid())
		syscall(SYS_setresuid, -1, OTHER_USER, -1);
}

static void *attach_thread(void *arg)
{
	become_other_user(arg);
	return server_attach_thread(arg);
}

static void take_events(void)
{
	server_take_events(&server, T0);
}

static int setup(void **state)
{
	char socket[sizeof(server.run_dir) + sizeof(VNIC_SOCKET_NAME)];
	uint32_t i;

	(void)state;
	server_open(&server);
	snprintf(socket, sizeof(socket), "%s/%s", server.run_dir, VNIC_SOCKET_NAME);
	assert_int_equal(chmod(server.run_dir, 0711) || chmod(socket, 0666), 0);
	server_begin(&server, T0);
	for (i = 0; i < PROCESSES; i++) {
		server_call(attach_thread, &processes[i], take_events);
		assert_int_equal(processes[i].status, 0);
	}
	return 0;
}

static int teardown(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < PROCESSES; i++)
		vnic_driver_abandon(processes[i].driver);
	server_end(&server);
	server_close(&server);
	return 0;
}

static int question_of(uint32_t process)
{
	struct vnic_attach_port port;
	int question;

	vnic_driver_notice(processes[process].driver, &port, &question);
	assert_true(question >= 0);
	return question;
}

/* True: the packet arrives on the socket. */
static bool reaches(int from, int to)
{
	char byte;

	assert_int_equal(send(from, "x", 1, MSG_DONTWAIT), 1);
	return recv(to, &byte, 1, MSG_DONTWAIT) == 1;
}

static void processes_of_one_user_share_a_socket(void **state)
{
	struct control_sockets sockets = {.n = 0};
	int questions[PROCESSES], of_other, of_own;
	uint32_t i, users = geteuid() ? 1 : 2;

	(void)state;
	state_query_send(&server.sessions, &sockets);
	assert_int_equal(sockets.n, users);
	for (i = 0; i < PROCESSES; i++)
		questions[i] = question_of(i);
	/* The newest process is the first one of the list. */
	of_other = sockets.fds[0];
	of_own = sockets.fds[users - 1];
	/* One user sends as much as the socket takes. */
	while (send(questions[PROCESSES - 1], "x", 1, MSG_DONTWAIT) == 1 && users > 1)
		;
	for (i = 0; i < PROCESSES - 1; i++)
		assert_true(reaches(questions[i], of_own));
	assert_int_equal(recv(of_other, &i, 1, MSG_DONTWAIT), 1);
	for (i = 0; i < PROCESSES; i++)
		close(questions[i]);
	for (i = 0; i < users; i++)
		close(sockets.fds[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(processes_of_one_user_share_a_socket),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
