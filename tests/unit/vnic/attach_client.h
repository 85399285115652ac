/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A client process, and the daemon side of its connection, for tests of vnic/attach_protocol.h. */
#ifndef URXE_TEST_ATTACH_CLIENT_H
#define URXE_TEST_ATTACH_CLIENT_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <vnic/driver.h>

#include "daemon.h"

#define ECHOES 20000
#define BURST  32
#define CHECK(ok)                                                               \
	do {                                                                    \
		if (!(ok)) {                                                    \
			fprintf(stderr, "child: line %d: %s\n", __LINE__, #ok); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

/* Answers the client's messages until its device is in `state`, and returns 0; or until
 * vnic_server_event returns an error, and returns that. */
static inline int serve_until(struct daemon *d, enum vnic_device_state state)
{
	int ret = 0;

	while (!ret) {
		struct vnic_device *dev = vnic_server_device(d->client);

		if (dev && vnic_device_state(dev) == state)
			break;
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		ret = vnic_server_event(d->client, &ops, d);
	}
	return ret;
}

static inline int serve_to_end(struct daemon *d)
{
	int ret = 0;

	while (!ret) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		ret = vnic_server_event(d->client, &ops, d);
	}
	return ret;
}

static inline pid_t spawn(struct daemon *d, void (*body)(const char *run_dir))
{
	d->child = fork();
	assert_true(d->child >= 0);
	if (d->child == 0) {
		close(d->listen_fd);
		body(d->run_dir);
		_exit(0);
	}
	return d->child;
}

static inline void expect_exit(struct daemon *d, int code)
{
	int status;

	assert_int_equal(waitpid(d->child, &status, 0), d->child);
	d->child = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

#endif
