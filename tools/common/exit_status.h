/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exit statuses of urxe and urxed. */
#ifndef URXE_COMMON_EXIT_STATUS_H
#define URXE_COMMON_EXIT_STATUS_H

enum exit_status {
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_BUSY = 3, /* urxed: another daemon serves the run directory */
	/* urxe run: as env(1) reports them */
	STATUS_CANNOT_EXEC = 126,
	STATUS_NOT_FOUND = 127,
};

#endif
