/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The remote queue pairs to which this process's queue pairs are connected. The daemon forwards RC
 * and UC packets to registered ones only, because such packets do not name their source queue
 * pair. uverbs/cmd_qp.c registers them.
 */
#ifndef URXE_VERBS_DAEMON_REMOTE_QP_H
#define URXE_VERBS_DAEMON_REMOTE_QP_H

#include <stdint.h>
#include <sys/queue.h>

struct vnic_driver;

struct remote {
	uint32_t local_qpn; /* of this process's queue pair */
	uint8_t dgid[16];
	uint32_t qpn;
	uint32_t daemon; /* port.daemons of the one that knows of it */
	LIST_ENTRY(remote) link;
};
LIST_HEAD(remote_list, remote);

/* Without the port's lock, since the daemon is asked. -ENOSPC: the user has too many. */
int remote_register(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		    struct remote **remote);
/* With the port's lock: it is no longer needed. Nothing for NULL. */
void remote_release(struct remote *remote);
/* Without the lock: tells the daemon what was released. For an open context. */
void remote_flush(void);
/* With the lock: the daemon that was to be told has gone. */
void remote_forget_released(void);
/* With the lock: tells a new daemon of all that there are. */
void remote_register_all(struct vnic_driver *nic);

#endif
