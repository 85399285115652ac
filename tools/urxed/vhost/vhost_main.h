/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program of the process that serves one vhost: uplink. The spawner (vhost_spawner.h) executes
 * urxed's program with VHOST_MAIN_OPTION and the specification of the uplink, with an absolute path
 * (vhost_process.c); main.c then calls vhost_main.
 */
#ifndef URXE_URXED_VHOST_VHOST_MAIN_H
#define URXE_URXED_VHOST_VHOST_MAIN_H

#define VHOST_MAIN_OPTION "--vhost-port"

/* Descriptors that the process gets, as in struct netdev_shm_fds; the log is standard error. */
enum { VHOST_FD_KICK = 0, VHOST_FD_MEMORY = 3, VHOST_FD_WAKE = 4 };

/* Serves the port that `text` specifies until urxed ends; returns the exit status. */
int vhost_main(const char *text);

#endif
