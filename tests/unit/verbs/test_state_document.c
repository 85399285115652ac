/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of the document, whose descriptor the owner of the process places. */
#include "session/state_document.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PLACE 200

static int placed;

static int place(int fd)
{
	const int at = fcntl(fd, F_DUPFD_CLOEXEC, PLACE);

	assert_true(at >= PLACE);
	close(fd);
	placed++;
	return at;
}

/* The asking program gets memory, and this process keeps no descriptor. */
static void the_memory_has_the_number_of_its_owner(void **state)
{
	struct state_document document = {.program = "test"};
	char bytes[256], control[64];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	document.socket = ends[1];
	state_document_place_fds(place);
	state_document_send(&document, true);
	assert_int_equal(placed, 1);
	assert_int_equal(fcntl(PLACE, F_GETFD), -1);
	assert_int_equal(fcntl(ends[1], F_GETFD), -1);
	assert_true(recvmsg(ends[0], &header, MSG_DONTWAIT) > 0);
	assert_non_null(CMSG_FIRSTHDR(&header));
	assert_int_equal(CMSG_FIRSTHDR(&header)->cmsg_type, SCM_RIGHTS);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_memory_has_the_number_of_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
