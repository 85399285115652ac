/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/standard_fds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/command_line.h"
#include "common/log.h"

void standard_fds_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void check_output(int status, void *arg)
{
	(void)arg;
	if (!fflush(stdout) && !ferror(stdout))
		return;
	log_line("cannot write to standard output");
	_exit(status ? status : STATUS_FAILED);
}

void standard_fds_check_output(void)
{
	on_exit(check_output, NULL);
}
