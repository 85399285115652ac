/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The socket that occupies UDP port 4791. The test plays the kernel's release. */
#include "urxed/kernel/roce_port_guard.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <cmocka.h>

static const char *release;

int __wrap_uname(struct utsname *name);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);

int __wrap_uname(struct utsname *name)
{
	snprintf(name->release, sizeof(name->release), "%s", release);
	return 0;
}

/* Another process may have the port. */
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	return 0;
}

static int asks_for_gro(const char *of)
{
	struct roce_port_guard guard;
	char error[ROCE_PORT_GUARD_ERROR];
	socklen_t length = sizeof(int);
	int on = -1;

	release = of;
	assert_int_equal(roce_port_guard_open(&guard, "lo", error), 0);
	assert_int_equal(getsockopt(guard.fds[0], IPPROTO_UDP, UDP_GRO, &on, &length), 0);
	roce_port_guard_close(&guard);
	return on;
}

/* An earlier kernel drops joined packets where programs and virtual machines would receive them. */
static void only_a_kernel_that_passes_joined_packets_joins_them(void **state)
{
	(void)state;
	assert_int_equal(asks_for_gro("6.1.0-13-amd64"), 0);
	assert_int_equal(asks_for_gro("6.2.0"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_kernel_that_passes_joined_packets_joins_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
