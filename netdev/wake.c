/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wake.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet_filter.h"
#include "packet_socket.h"

/*
 * The smallest receive buffer: after a frame or two it is full, and the kernel
 * turns further ones away at once.
 */
int wake_open(unsigned int ifindex)
{
	int fd = packet_socket_open(ifindex, packet_filter_roce);
	int one = 1, err;

	if (fd < 0 || !setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/*
 * An error such as ENETDOWN counts as a frame: it made the socket readable, and
 * taking it makes it quiet. The receive buffer holds far fewer than the limit.
 */
bool wake_drain(int fd)
{
	char byte;
	int i;

	for (i = 0; i < 64; i++)
		if (recv(fd, &byte, sizeof(byte), 0) < 0 && errno == EAGAIN)
			break;
	return i > 0;
}
