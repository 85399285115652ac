/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The loop of a vhost: uplink's process: moves frames between a virtual machine and urxed. */
#ifndef URXE_URXED_VHOST_VHOST_FORWARD_H
#define URXE_URXED_VHOST_VHOST_FORWARD_H

struct netdev;
struct netdev_shm_peer;

/*
 * Moves frames until urxed has ended. `machine`: a port of netdev_vhost_open. `kick_fd`: as in
 * struct netdev_shm_fds.
 */
void vhost_forward_run(struct netdev *machine, struct netdev_shm_peer *daemon, int kick_fd);

#endif
