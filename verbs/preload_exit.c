/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interposed libc functions that end the program without exit()'s handlers. */
#include <stdlib.h>
#include <unistd.h>

#include "port.h"
#include "real.h"

void _exit(int status)
{
	port_farewell();
	REAL(_exit)(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}
