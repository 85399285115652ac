/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of the process, behind which no thread of ours runs any more: what peers wait for
 * leaves before. exit(3) comes by the destructor.
 */
#include <stdlib.h>
#include <unistd.h>

#include "progress.h"
#include "real.h"

static __attribute__((destructor)) void at_exit(void)
{
	progress_end();
}

#define EXIT(name)                       \
	void name(int status)            \
	{                                \
		progress_end();          \
		REAL(name)(status);      \
		__builtin_unreachable(); \
	}

EXIT(_exit)
EXIT(_Exit)
