/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests for the states of processes: each process answers on a socket of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/driver.h>

#include "common/unix_packet.h"
#include "descriptor_limit.h"
#include "lan.h"
#include "server.h"
#include "urxed/report/control.h"
#include "urxed/report/state_query.h"

#define T0        1000000000ull
#define PROCESSES 3

static struct server server;
static struct server_process processes[PROCESSES];

static void take_events(void)
{
	server_take_events(&server, T0);
}

static int setup(void **state)
{
	uint32_t i;

	(void)state;
	server_open(&server);
	server_begin(&server, T0);
	for (i = 0; i < PROCESSES; i++) {
		server_call(server_attach_thread, &processes[i], take_events);
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

static void each_process_has_its_own_socket(void **state)
{
	struct control_processes packet;
	const struct session *s;
	int ends[2], fds[PROCESSES], question;
	uint32_t i;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	state_query_send(&server.sessions, ends[1]);
	assert_int_equal(unix_packet_recv_fds(ends[0], &packet, sizeof(packet), fds, PROCESSES),
			 sizeof(packet));
	assert_int_equal(packet.n, PROCESSES);
	/* The newest process is the first one of the list. */
	for (s = server.sessions.list, i = 0; i < PROCESSES; s = s->next, i++) {
		question = question_of(PROCESSES - 1 - i);
		assert_true(s->asked);
		assert_int_equal(packet.ports[i], s->port.number);
		assert_true(reaches(question, fds[i]));
		/* It sends as much as its socket takes. */
		while (send(question, "x", 1, MSG_DONTWAIT) == 1)
			;
		close(question);
	}
	for (i = 0; i < PROCESSES; i++)
		close(fds[i]);
	close(ends[0]);
	close(ends[1]);
}

/* `urxe run` only connects. */
static void connection_without_a_device_gets_no_socket(void **state)
{
	const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct control_processes packet;
	int ends[2], fds[PROCESSES];
	struct sockaddr_un address;
	uint32_t i;

	(void)state;
	assert_int_equal(unix_packet_address(&address, server.run_dir, VNIC_SOCKET_NAME), 0);
	assert_int_equal(connect(connection, (const struct sockaddr *)&address, sizeof(address)),
			 0);
	take_events();
	assert_int_equal(server.sessions.n, PROCESSES + 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	state_query_send(&server.sessions, ends[1]);
	assert_int_equal(unix_packet_recv_fds(ends[0], &packet, sizeof(packet), fds, PROCESSES),
			 sizeof(packet));
	assert_int_equal(packet.n, PROCESSES);
	for (i = 0; i < PROCESSES; i++)
		close(fds[i]);
	close(ends[0]);
	close(ends[1]);
	close(connection);
	take_events();
}

/* Makes all but n system calls that need a new descriptor fail. Returns the former limit. */
static struct rlimit leave_descriptors(uint32_t n)
{
	int fds[2 * PROCESSES];
	struct rlimit former;
	uint32_t i;

	for (i = 0; i < n; i++) {
		fds[i] = dup(0);
		assert_true(fds[i] >= 0);
	}
	former = descriptor_limit_reach();
	for (i = 0; i < n; i++)
		close(fds[i]);
	return former;
}

static void each_process_is_asked_with_few_descriptors(void **state)
{
	const struct session *s;
	struct rlimit limit;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	limit = leave_descriptors(2 * (PROCESSES - 1));
	state_query_send(&server.sessions, ends[1]);
	descriptor_limit_restore(&limit);
	for (s = server.sessions.list; s; s = s->next)
		assert_true(s->asked);
	close(ends[0]);
	close(ends[1]);
}

static void nobody_is_asked_for_a_client_that_is_gone(void **state)
{
	const struct session *s;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	close(ends[0]);
	state_query_send(&server.sessions, ends[1]);
	for (s = server.sessions.list; s; s = s->next)
		assert_false(s->asked);
	close(ends[1]);
}

/*
 * A stopped process is asked a few times only: the kernel limits the descriptors of the daemon's
 * user in unread messages, and each question has one. A process that reads is asked again.
 */
static void process_that_reads_nothing_is_asked_few_times(void **state)
{
	const struct session *s = server.sessions.list; /* the newest process */
	int fds[PROCESSES], ends[2], asked = 0;
	struct control_processes packet;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	for (int i = 0; i < 30; i++) {
		state_query_send(&server.sessions, ends[1]);
		asked += s->asked;
		assert_int_equal(
			unix_packet_recv_fds(ends[0], &packet, sizeof(packet), fds, PROCESSES),
			sizeof(packet));
		for (uint32_t j = 0; j < PROCESSES; j++)
			close(fds[j]);
	}
	assert_in_range(asked, 1, 4);
	close(question_of(PROCESSES - 1));
	state_query_send(&server.sessions, ends[1]);
	assert_true(s->asked);
	close(ends[0]);
	close(ends[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_process_has_its_own_socket),
		TEST(connection_without_a_device_gets_no_socket),
		TEST(each_process_is_asked_with_few_descriptors),
		TEST(nobody_is_asked_for_a_client_that_is_gone),
		TEST(process_that_reads_nothing_is_asked_few_times),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
