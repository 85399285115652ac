/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process at the other end of a connection, as the kernel recorded it at the connection. */
#ifndef URXE_VNIC_DEVICE_CREDENTIALS_H
#define URXE_VNIC_DEVICE_CREDENTIALS_H

#include <stdbool.h>
#include <sys/types.h>

struct vnic_credentials {
	pid_t pid; /* 0 = unknown: the peer is in a PID namespace that is invisible here */
	uid_t uid;
	int pidfd; /* -1 = unknown */
};

void vnic_credentials_read(struct vnic_credentials *peer, int socket);
void vnic_credentials_close(struct vnic_credentials *peer);

/*
 * Whether the two processes may write to each other's memory: they have the same user in the same
 * user namespace, and both live. In another user namespace the same number is another user,
 * possibly its root. False if the answer is unknown.
 */
bool vnic_credentials_same_user(const struct vnic_credentials *a, const struct vnic_credentials *b);

#endif
