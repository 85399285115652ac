/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who is at the other end of a connection, as the kernel saw it when it connected. */
#ifndef URXE_VNIC_DEVICE_CREDENTIALS_H
#define URXE_VNIC_DEVICE_CREDENTIALS_H

#include <stdbool.h>
#include <sys/types.h>

struct vnic_credentials {
	pid_t pid; /* 0 = unknown: of a PID namespace that we do not see */
	uid_t uid;
	int pidfd; /* -1 = unknown */
};

void vnic_credentials_read(struct vnic_credentials *peer, int socket);
void vnic_credentials_close(struct vnic_credentials *peer);

/*
 * Whether the two may write to each other's memory: they are of one user, in one user
 * namespace, and both live. In another namespace the same number is another user, one
 * who may have been root there. False where it cannot be told.
 */
bool vnic_credentials_same_user(const struct vnic_credentials *a, const struct vnic_credentials *b);

#endif
