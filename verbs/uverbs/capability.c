/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uverbs/capability.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

bool capability_net_raw(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(CAP_NET_RAW)].effective & CAP_TO_MASK(CAP_NET_RAW);
}
