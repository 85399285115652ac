/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process of one vhost: uplink, as urxed sees it: urxed lets its spawner (vhost_spawner.h)
 * start the process, reads its log, and starts it again after its end. The uplink owns this
 * structure and the port in shared memory (netdev/shm.h) that joins the two processes.
 *
 * The process reads a virtual machine's rings with DPDK, which a hostile machine can crash and
 * perhaps take over. So urxed believes nothing that the process writes. urxed waits for the
 * process only at the start of the uplink, and up to 1 s after urxed has killed the process.
 */
#ifndef URXE_URXED_VHOST_VHOST_PROCESS_H
#define URXE_URXED_VHOST_VHOST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <netdev/netdev.h>
#include <netdev/vhost.h>

#include "common/log.h"

#define VHOST_PROCESS_ERROR 256
#define VHOST_PROCESS_LINE  200

struct vhost_process {
	const char *spec;                  /* as the user wrote it */
	char text[NETDEV_VHOST_PATH + 16]; /* the same with an absolute path, for the process */
	struct netdev *port;
	int epoll_fd; /* the daemon's; -1 = not watched yet */
	void *what;   /* data of the events */
	pid_t pid;    /* 0 = none runs */
	int pid_fd, log_fd;
	bool is_killed; /* urxed has sent SIGKILL */
	bool is_up;     /* urxed's log says that the process serves the port */
	uint64_t started_at;
	uint32_t taken;      /* frames that the process had taken at the last check */
	uint64_t hangs_at;   /* ns; when a process that has taken no frame is killed; UINT64_MAX: no
				frame waited at the last check */
	uint64_t restart_at; /* valid if pid is 0 */
	uint64_t delay;      /* of the latest restart, ns */
	struct log_ratelimit budget;
	char line[VHOST_PROCESS_LINE]; /* the part of a line that has arrived */
	uint32_t line_len;
};

/*
 * Makes the port, starts the process, and waits until it is ready (60 s at most). The caller keeps
 * `spec`. Returns 0 or a negative errno value. On error `error` has one sentence, and nothing is
 * left to stop.
 */
int vhost_process_start(struct vhost_process *process, const char *spec, uint32_t mtu,
			char error[VHOST_PROCESS_ERROR]);
/* Kills the process and removes its socket. The port stays, without a peer. */
void vhost_process_stop(struct vhost_process *process);

/*
 * From now on epoll_fd reports events of the process with `what` as data; call vhost_process_event
 * then. Returns 0, or a negative errno value and a sentence in `error`.
 */
int vhost_process_watch(struct vhost_process *process, int epoll_fd, void *what,
			char error[VHOST_PROCESS_ERROR]);
void vhost_process_event(struct vhost_process *process, uint64_t now);
/* Handles expired timers and a broken port; returns the time of the next timer in ns. */
uint64_t vhost_process_tick(struct vhost_process *process, uint64_t now);

#endif
