/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/env.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_LEN 64

const char *env_get(const char *name)
{
	char full[NAME_MAX_LEN];

	if (snprintf(full, sizeof(full), "%s%s", env_prefix, name) >= (int)sizeof(full))
		return NULL;
	return getenv(full);
}
