/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "qemu/qemu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error_text.h"
#include "unix_path.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define PREFIX "qemu:"

/* RFC 791: IPv4 hosts accept 576 bytes. QEMU's NICs accept jumbo frames of 9000. */
#define MTU_MIN     576
#define MTU_MAX     9000
#define MTU_DEFAULT 1500

/* An Ethernet header and one 802.1Q tag. */
#define FRAME_OVERHEAD (14 + 4)

void qemu_set_mtu(struct qemu_port *port, uint32_t mtu)
{
	port->mtu = mtu ? mtu : MTU_DEFAULT;
	if (port->mtu > MTU_MAX)
		port->mtu = MTU_MAX;
	port->frame_max = port->mtu + FRAME_OVERHEAD;
}

uint32_t qemu_count_fitting(const struct qemu_port *port, const struct netdev_frame *frames,
			    uint32_t n)
{
	uint32_t count = 0;

	while (count < n && count < QEMU_BURST && frames[count].len <= port->frame_max)
		count++;
	return count;
}

uint32_t qemu_mtu(const struct netdev *port)
{
	return ((const struct qemu_port *)port)->mtu;
}

void qemu_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	memcpy(counters, ((struct qemu_port *)port)->counters,
	       sizeof(*counters) * NETDEV_COUNTER_COUNT);
}

/* --- The socket's file */

static const struct netdev_qemu_files *files;

void netdev_qemu_set_files(const struct netdev_qemu_files *new)
{
	files = new;
}

/* Makes the kernel refuse descriptors (SCM_RIGHTS) on the socket. Before Linux 6.16 it cannot. */
static void refuse_fds(int fd)
{
	const int off = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

int qemu_bind(struct qemu_port *port, const struct sockaddr_un *path, int type, char *error,
	      uint32_t error_size)
{
	int err = unix_path_clear(path, type, error, error_size);

	if (err)
		return err;
	port->socket = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (port->socket >= 0)
		refuse_fds(port->socket);
	/* Linux creates the file with the socket's mode, so other users can connect at no moment.
	 */
	if (port->socket < 0 || fchmod(port->socket, 0600) ||
	    bind(port->socket, (const struct sockaddr *)path, sizeof(*path)) ||
	    stat(path->sun_path, &port->file)) {
		err = -errno;
		if (port->socket >= 0)
			close(port->socket);
		port->socket = -1;
		return error_text_set(error, error_size, err, "%s", strerror(-err));
	}
	port->path = *path;
	return 0;
}

static int connect_socket(const struct sockaddr_un *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)path, sizeof(*path)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int qemu_connect(const struct sockaddr_un *path)
{
	int fd = files ? files->connect(path) : connect_socket(path);

	if (fd >= 0)
		refuse_fds(fd);
	return fd;
}

void qemu_unbind(struct qemu_port *port)
{
	struct stat file;

	if (port->socket >= 0 && files) {
		files->remove(&port->path, &port->file);
		close(port->socket);
		return;
	}
	if (port->socket < 0)
		return;
	if (!stat(port->path.sun_path, &file) && file.st_ino == port->file.st_ino &&
	    file.st_dev == port->file.st_dev)
		unlink(port->path.sun_path);
	close(port->socket);
}

/* --- The specification */

static bool is_option(const char *option, size_t length, const char *name)
{
	return length == strlen(name) && !memcmp(option, name, length);
}

static bool has_key(const char *option, size_t length, const char *key)
{
	return length > strlen(key) && !memcmp(option, key, strlen(key));
}

static int parse_mtu(struct qemu_spec *spec, const char *digits, size_t length)
{
	char *end;
	unsigned long mtu = strtoul(digits, &end, 10);

	if (*digits < '0' || *digits > '9' || end != digits + length || mtu < MTU_MIN ||
	    mtu > spec->mtu_max)
		return -EINVAL;
	spec->mtu = (uint32_t)mtu;
	return 0;
}

static int parse_option(const char *text, struct qemu_spec *spec, const char *option, size_t length,
			char *error, uint32_t error_size)
{
	if (is_option(option, length, "connect")) {
		spec->connect = true;
	} else if (is_option(option, length, "dgram")) {
		spec->dgram = true;
	} else if (has_key(option, length, "remote=")) {
		if (unix_path_set(&spec->remote, option + 7, length - 7))
			return error_text_set(error, error_size, -ENAMETOOLONG,
					      "%s: the path of remote= is too long for a socket",
					      text);
	} else if (has_key(option, length, "mtu=")) {
		if (parse_mtu(spec, option + 4, length - 4))
			return error_text_set(error, error_size, -EINVAL,
					      "%s: mtu= is a number from %d to %u", text, MTU_MIN,
					      spec->mtu_max);
	} else {
		return error_text_set(
			error, error_size, -EINVAL,
			"%s: unknown option '%.*s'; known ones: connect, dgram, remote=PATH, "
			"mtu=N",
			text, (int)length, option);
	}
	return 0;
}

static int parse_spec(const char *text, struct qemu_spec *spec, char *error, uint32_t error_size)
{
	const char *at = text + strlen(PREFIX);
	size_t length = strcspn(at, ",");
	int err = unix_path_set(&spec->path, at, length);

	if (err)
		return error_text_set(error, error_size, err,
				      err == -EINVAL ? "%s: the path of a socket is missing"
						     : "%s: the path is too long for a socket",
				      text);
	for (at += length; *at && !err; at += length) {
		length = strcspn(++at, ",");
		err = parse_option(text, spec, at, length, error, error_size);
	}
	if (!err && spec->connect && spec->dgram)
		err = error_text_set(
			error, error_size, -EINVAL,
			"%s: connect and dgram exclude each other, as datagrams have no "
			"connection",
			text);
	if (!err && spec->remote.sun_family && !spec->dgram)
		err = error_text_set(error, error_size, -EINVAL, "%s: remote= needs dgram", text);
	return err;
}

int netdev_qemu_open(const char *text, uint32_t mtu, struct netdev **port, char *error,
		     uint32_t error_size)
{
	struct qemu_spec spec = {.mtu = mtu, .mtu_max = mtu && mtu < MTU_MAX ? mtu : MTU_MAX};
	char reason[128] = "out of memory";
	int err;

	if (strncmp(text, PREFIX, strlen(PREFIX)))
		return error_text_set(error, error_size, -EINVAL, "%s: does not start with " PREFIX,
				      text);
	err = parse_spec(text, &spec, error, error_size);
	if (err)
		return err;
	err = spec.dgram ? qemu_dgram_open(&spec, port, reason, sizeof(reason))
			 : qemu_stream_open(&spec, port, reason, sizeof(reason));
	return err ? error_text_set(error, error_size, err, "%s: cannot open its socket: %s", text,
				    reason)
		   : 0;
}
