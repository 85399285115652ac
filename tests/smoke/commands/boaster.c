/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that answers urxe show with a document of its own making: BOASTER RUN_DIR FILE. show.py
 * runs it.
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static int read_document(const char *path)
{
	int from = open(path, O_RDONLY), to = memfd_create("boast", MFD_ALLOW_SEALING);
	char bytes[65536];
	ssize_t n;

	if (from < 0 || to < 0)
		err(1, "%s", path);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			err(1, "write");
	if (fcntl(to, F_ADD_SEALS, SEALS))
		err(1, "seals");
	close(from);
	return to;
}

static void answer(int socket, int document)
{
	struct vnic_attach_state reply = {.status = 0};
	struct iovec iov = {&reply, sizeof(reply)};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr header = {.msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = &ancillary,
				      .msg_controllen = sizeof(ancillary)};

	memcpy(CMSG_DATA(&ancillary.header), &document, sizeof(int));
	if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
		err(1, "answer");
	close(socket);
}

int main(int argc, char **argv)
{
	struct vnic_attach_port port;
	struct pollfd pfd = {.events = POLLIN};
	int document, question;
	struct raw raw;

	if (argc != 3)
		errx(2, "usage: boaster RUN_DIR FILE");
	document = read_document(argv[2]);
	raw_open(&raw, argv[1]);
	puts("attached");
	fflush(stdout);
	pfd.fd = vnic_driver_notice_fd(raw.drv);
	while (poll(&pfd, 1, -1) == 1 && !(pfd.revents & POLLHUP)) {
		vnic_driver_notice(raw.drv, &port, &question);
		if (question >= 0)
			answer(question, document);
	}
	return 0;
}
