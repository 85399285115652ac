/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/syscall_filter.h"

/*
 * Leaves the helper `socket` as HELPER_SOCKET, and /dev/null as descriptors 0 to 2. If the helper
 * kept the daemon's standard error, and that is a pipe, the pipe's reader would not see the
 * daemon's end. dup2 clears close-on-exec, which does no harm: only vhost_spawner.c starts
 * programs, and it closes or replaces all descriptors in them.
 */
static void keep_one_socket(int socket)
{
	int null;

	if (socket != HELPER_SOCKET)
		dup2(socket, HELPER_SOCKET);
	close_range(HELPER_SOCKET + 1, ~0u, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < HELPER_SOCKET && null >= 0; fd++)
		dup2(null, fd);
	if (null > HELPER_SOCKET)
		close(null);
}

static void begin_helper(int socket, const char *name)
{
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	keep_one_socket(socket);
}

/* Forks. Returns 1 in the helper, where *socket is the helper's end of the socket. Returns in the
 * daemon as helper_start. */
static int fork_helper(struct helper *h, int *socket)
{
	int ends[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	h->pid = fork();
	if (!h->pid) {
		*socket = ends[1];
		return 1;
	}
	if (h->pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		rc = -errno;
	close(ends[1]);
	h->socket = ends[0];
	if (!rc)
		return 0;
	close(ends[0]);
	*h = (struct helper){.socket = -1};
	return rc;
}

int helper_start(struct helper *h, const char *name, uint64_t capabilities, void (*run)(void))
{
	int socket, rc = fork_helper(h, &socket);

	if (rc <= 0)
		return rc;
	begin_helper(socket, name);
	if (!capabilities_keep(capabilities) && !syscall_filter_install())
		run();
	_exit(0);
}

int helper_start_unfiltered(struct helper *h, const char *name, void (*run)(void))
{
	int socket, rc = fork_helper(h, &socket);

	if (rc <= 0)
		return rc;
	begin_helper(socket, name);
	run();
	_exit(0);
}

bool helper_ended(struct helper *h)
{
	/* waitpid(2) also fails if other code of the daemon has already reaped the process. */
	if (h->pid && waitpid(h->pid, NULL, WNOHANG))
		h->pid = 0;
	return !h->pid;
}

void helper_stop(struct helper *h)
{
	if (h->socket < 0)
		return;
	close(h->socket);
	/* A helper that still runs becomes init's child when the daemon ends. */
	(void)helper_ended(h);
	*h = (struct helper){.socket = -1};
}
