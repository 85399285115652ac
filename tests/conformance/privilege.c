/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "privilege.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rule.h"

static struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

bool privilege_held(int capability)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	MUST(!syscall(SYS_capget, &header, data));
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

void privilege_drop(int capability)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	MUST(!syscall(SYS_capget, &header, data));
	data[CAP_TO_INDEX(capability)].effective &= ~CAP_TO_MASK(capability);
	MUST(!syscall(SYS_capset, &header, data));
}
