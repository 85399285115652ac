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

/* Whether the process still lives, so that the PID is its own. False: ended, or unknown. */
bool vnic_credentials_alive(const struct vnic_credentials *peer);
#endif
