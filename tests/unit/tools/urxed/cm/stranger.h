/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections of another user to the daemon of ucma_programs.h. */
#ifndef URXE_TESTS_STRANGER_H
#define URXE_TESTS_STRANGER_H

#include <sys/stat.h>
#include <unistd.h>

#include "ucma_programs.h"

#define STRANGER 65534 /* usually the user nobody */

/* Skips the test unless it can connect as another user: only root can, and urxed's system call
 * filter forbids it. */
static inline void skip_without_root(void)
{
	if (seteuid(STRANGER))
		skip();
	assert_int_equal(seteuid(0), 0);
}

/*
 * Connects as another user; the daemon has not accepted the connection yet. Only root can change
 * its user, so tests that need this are skipped for other users.
 */
static inline int connect_as_stranger(void)
{
	struct sockaddr_un address;
	int fd;

	assert_int_equal(unix_packet_address(&address, loop.dir, CM_ATTACH_SOCKET_NAME), 0);
	assert_int_equal(chmod(loop.dir, 0711), 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	fd = loop_connect(&loop);
	assert_int_equal(seteuid(0), 0);
	return fd;
}

#endif
