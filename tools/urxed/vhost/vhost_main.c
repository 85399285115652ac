/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/vhost/vhost_main.h"

#include <stdio.h>

#include <netdev/shm.h>
#include <netdev/vhost.h>
#include <session/sched_slice.h>

#include "common/command_line.h"
#include "urxed/vhost/vhost_forward.h"
#include "urxed/vhost/vhost_sandbox.h"

/* Prints the error on standard error, which urxed writes to its log. Returns the exit status. */
static int report_failure(const char *error)
{
	fprintf(stderr, "%s\n", error);
	return STATUS_FAILED;
}

/*
 * Opens the port to the machine. Before that the process gives up its rights, because a machine can
 * send its first message as soon as the socket exists. Returns 0, or a negative errno value and a
 * sentence in `error`.
 */
static int open_port(const char *text, const struct netdev_shm_peer *daemon, struct netdev **port,
		     char *error, uint32_t error_size)
{
	struct netdev_vhost_spec spec;
	size_t size;
	void *memory = netdev_shm_buffers(daemon, &size);

	vhost_sandbox_prepare();
	return netdev_vhost_parse(text, &spec, error, error_size)
		       ?: netdev_vhost_start(error, error_size)
		       ?: vhost_sandbox_enter(&spec, error, error_size)
		       ?: netdev_vhost_open(&spec, netdev_shm_mtu(daemon), memory, size, port,
					    error, error_size)
		       ?: vhost_sandbox_close(&spec, error, error_size);
}

int vhost_main(const char *text)
{
	const struct netdev_shm_fds fds = {
		.memory = VHOST_FD_MEMORY, .wake = VHOST_FD_WAKE, .kick = VHOST_FD_KICK};
	struct netdev_shm_peer *daemon;
	struct netdev *port;
	char error[256];

	if (netdev_shm_attach(&fds, &daemon))
		return report_failure("only urxed can start the process of a vhost port");
	sched_request_short_slice();
	if (open_port(text, daemon, &port, error, sizeof(error)))
		return report_failure(error);
	netdev_shm_set_link(daemon, false);
	netdev_shm_set_ready(daemon);
	vhost_forward_run(port, daemon, fds.kick);
	return 0;
}
