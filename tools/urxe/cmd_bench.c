/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe bench: executes urxe-bench (bench/bench.c), a program of its own because DPDK loads slowly.
 */
#include "urxe/cmd.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/command_line.h"
#include "common/install_paths.h"
#include "common/log.h"

int cmd_bench(int argc, char **argv)
{
	char path[PATH_MAX];
	int rc = install_path_bench(path);

	(void)argc;
	if (!rc) {
		execv(path, argv);
		rc = -errno;
	}
	log_line("cannot run %s (%s): build or install urxe anew", path, strerror(-rc));
	return STATUS_FAILED;
}
