/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/listen_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* QEMU connects once for each function. */
#define BACKLOG 4

/* 0: no process listens at the address; -EADDRINUSE: a process does; or another negative errno
 * value of connect(2), which then cannot tell. */
static int look_for_listener(const struct sockaddr_un *address, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	close(fd);
	switch (rc) {
	case ECONNREFUSED:
	case ENOENT: return 0;
	case 0:
	case EAGAIN: /* its backlog is full */
	case EPROTOTYPE: /* its socket has another type */ return -EADDRINUSE;
	default: return -rc;
	}
}

/* Removes the socket file of a process that has ended. 0, also without a file; -EEXIST: the file is
 * no socket; or an error of look_for_listener or unlink(2). */
static int remove_stale(const struct sockaddr_un *address, int type)
{
	struct stat file;
	int rc;

	if (lstat(address->sun_path, &file))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(file.st_mode))
		return -EEXIST;
	rc = look_for_listener(address, type);
	return rc ?: unlink(address->sun_path) ? -errno : 0;
}

static int bind_socket(struct listen_socket *s)
{
	/* bind(2) gives the file the socket's mode, so other users can never connect. */
	if (fchmod(s->fd, 0600) ||
	    bind(s->fd, (const struct sockaddr *)&s->address, sizeof(s->address)) ||
	    lstat(s->address.sun_path, &s->file) || listen(s->fd, BACKLOG))
		return -errno;
	return 0;
}

static int init_listen_socket(struct listen_socket *s, const char *path)
{
	*s = (struct listen_socket){.fd = -1, .address.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(s->address.sun_path))
		return -ENAMETOOLONG;
	strcpy(s->address.sun_path, path);
	return 0;
}

bool listen_socket_is_served(const char *path)
{
	struct listen_socket s;

	return !init_listen_socket(&s, path) &&
	       look_for_listener(&s.address, SOCK_STREAM) == -EADDRINUSE;
}

const char *listen_socket_error(int rc)
{
	switch (rc) {
	case -EADDRINUSE:
		return "another process listens there: end it, replace it by --take-over, or name "
		       "another --socket";
	case -EEXIST: return "the file is no socket: remove it, or name another --socket";
	default: return strerror(-rc);
	}
}

int listen_socket_open(struct listen_socket *s, const char *path, int type)
{
	int rc = init_listen_socket(s, path);

	if (!rc)
		rc = remove_stale(&s->address, type);
	if (rc)
		return rc;
	s->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	rc = bind_socket(s);
	if (rc)
		listen_socket_close(s);
	return rc;
}

/* Whether an option of the socket has the value. */
static bool has_option(int fd, int option, int value)
{
	int found;
	socklen_t size = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, option, &found, &size) && found == value;
}

int listen_socket_adopt(struct listen_socket *s, int fd, const char *path, int type)
{
	const int rc = init_listen_socket(s, path);

	if (rc)
		return rc;
	if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, type) ||
	    !has_option(fd, SO_ACCEPTCONN, 1) || fcntl(fd, F_SETFL, O_NONBLOCK))
		return -ENOTSOCK;
	s->fd = fd;
	return 0;
}

void listen_socket_own_file(struct listen_socket *s)
{
	/* If the file is gone already, listen_socket_close removes none. */
	if (lstat(s->address.sun_path, &s->file))
		s->file = (struct stat){0};
}

void listen_socket_close(struct listen_socket *s)
{
	struct stat file;

	if (s->fd < 0)
		return;
	if (s->file.st_ino && !lstat(s->address.sun_path, &file) && file.st_dev == s->file.st_dev &&
	    file.st_ino == s->file.st_ino)
		unlink(s->address.sun_path);
	close(s->fd);
	s->fd = -1;
}
