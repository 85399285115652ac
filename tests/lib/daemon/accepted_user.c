/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "accepted_user.h"

#include <sys/socket.h>

_Thread_local uid_t accepted_uid;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc = __real_getsockopt(fd, level, name, value, len);

	if (!rc && level == SOL_SOCKET && name == SO_PEERCRED && accepted_uid)
		((struct ucred *)value)->uid = accepted_uid;
	return rc;
}
