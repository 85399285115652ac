/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "place_fd.h"

#include <vnic/driver.h>

static int (*place_new)(int fd);

void vnic_driver_place_fds(int (*place)(int fd))
{
	place_new = place;
}

int vnic_place_fd(int fd)
{
	return place_new ? place_new(fd) : fd;
}
