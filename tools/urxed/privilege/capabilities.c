/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Arguments of capget(2) and capset(2), which urxed calls without libcap. The kernel splits each
 * set of 64 bits into two words of 32 bits. */
struct sets {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int read_sets(struct sets *s)
{
	s->header = (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capget, &s->header, s->data) ? -errno : 0;
}

uint64_t capabilities_get(void)
{
	struct sets s;

	return read_sets(&s) ? 0 : s.data[0].permitted | (uint64_t)s.data[1].permitted << 32;
}

int capabilities_keep(uint64_t keep)
{
	struct sets s;
	int rc = read_sets(&s);

	if (rc)
		return rc;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		s.data[i].permitted &= (uint32_t)(keep >> 32 * i);
		s.data[i].effective = s.data[i].permitted;
		s.data[i].inheritable = 0;
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &s.header, s.data) ? -errno : 0;
}
