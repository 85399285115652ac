/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "packet/place_fd.h"

#include <netdev/packet_port.h>

static int (*place_new)(int fd);

void packet_port_place_fds(int (*place)(int fd))
{
	place_new = place;
}

int packet_place_fd(int fd)
{
	return place_new ? place_new(fd) : fd;
}
