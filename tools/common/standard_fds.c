/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

void standard_fds_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
