/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends urxed a descriptor whose close blocks, and stays connected until its standard input ends:
 *
 *   hostile_fd RUN_DIR SOCKET KIND PLACE
 *
 * SOCKET is urxed.sock, urxed.cm or urxed.ctl. KIND is tcp, a socket with SO_LINGER and unsent
 * data, or fuse, a locked file whose server answers no other process. PLACE is first or second, the
 * message that has the descriptor; or unread, behind a message for which urxed ends the connection.
 *
 * Prints "sent" or "refused" (by the kernel). Exit status 77: this machine cannot do that.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cm/attach_protocol.h>
#include <vnic/attach_protocol.h>

#include "blocking_file.h"
#include "require.h"
#include "send_fds.h"

#define LINGER_SECONDS 600

static bool equals(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* --- A TCP connection whose last close(2) waits ten minutes for a peer that reads nothing */

static int make_tcp(void)
{
	const struct linger linger = {1, LINGER_SECONDS};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	static uint8_t bytes[65536];

	require(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
	require(!listen(listener, 1));
	require(!getsockname(listener, (struct sockaddr *)&address, &len));
	require(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
	require(accept(listener, NULL, NULL) >= 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	require(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	return fd;
}

/* --- A locked file, whose last close unlocks it and waits for the file's server */

static int make_fuse(void)
{
	int fd = blocking_file_open();

	require(!flock(fd, LOCK_EX));
	return fd;
}

/* --- The messages */

static int connect_to(const char *run_dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", run_dir, name);
	require(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* False: the kernel refuses the descriptor, or the connection has ended. */
static bool send_with_fd(int to, const void *text, size_t len, int fd)
{
	return send_fds(to, text, len, &fd, 1) >= 0;
}

/* Sends the first message of the protocol, with a descriptor if fd is not -1. */
static bool send_hello(int to, const char *name, int fd)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	const struct cm_attach_hello cm = {.version = CM_ATTACH_VERSION};
	const bool is_cm = equals(name, CM_ATTACH_SOCKET_NAME);
	const void *text = is_cm ? (const void *)&cm : &hello;
	size_t len = is_cm ? sizeof(cm) : sizeof(hello);

	return fd < 0 ? send(to, text, len, MSG_NOSIGNAL) >= 0 : send_with_fd(to, text, len, fd);
}

/* What comes before the message with the descriptor. */
static void prepare(int to, const char *name, const char *place)
{
	uint8_t welcome[4096];

	/* urxed.ctl does not know this hello, and ends the connection. */
	if (equals(place, "second") && send_hello(to, name, -1))
		(void)!recv(to, welcome, sizeof(welcome), 0);
}

static bool attack(int to, const char *name, const char *place, int fd)
{
	if (equals(place, "first"))
		return send_hello(to, name, fd);
	if (equals(place, "unread"))
		require(send(to, "?", 1, 0) == 1);
	return send_with_fd(to, "!", 1, fd);
}

int main(int argc, char **argv)
{
	bool sent;
	char byte;
	int fd, to;

	require(argc == 5);
	fd = equals(argv[3], "tcp") ? make_tcp() : make_fuse();
	to = connect_to(argv[1], argv[2]);
	prepare(to, argv[2], argv[4]);
	puts("connected");
	fflush(stdout);
	/* The test stops urxed until the message alone has the descriptor. */
	require(read(STDIN_FILENO, &byte, 1) == 1);
	sent = attack(to, argv[2], argv[4], fd);
	/* Now the message has the last copy. */
	if (sent)
		close(fd);
	puts(sent ? "sent" : "refused");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return 0;
}
