/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process of one vhost: uplink, as urxed sees it. urxed lets its spawner (vhost_spawner.h)
 * start the process, reads the process's log, and lets it start again after its end. The uplink
 * owns this structure, and the port in shared memory (netdev/shm.h) that joins urxed and the
 * process.
 *
 * The process reads a virtual machine's rings with DPDK, which a hostile machine can crash and
 * perhaps take over. So urxed trusts nothing that the process writes. urxed waits for the process
 * only at the start of the uplink, and up to 1 s after urxed has killed it.
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
	const char *spec;                  /* the specification, as the user wrote it */
	char text[NETDEV_VHOST_PATH + 16]; /* spec with an absolute path, for the process */
	struct netdev *port;
	int epoll_fd; /* the daemon's epoll set; -1 = not watched yet */
	void *what;   /* data of the epoll events */
	pid_t pid;    /* 0 = none runs */
	int pid_fd, log_fd;
	bool is_killed; /* urxed has sent SIGKILL */
	bool is_up;     /* urxed's log says that the process serves the port */
	uint64_t started_at;
	uint32_t taken;      /* number of frames that the process had taken at the last check */
	uint64_t hangs_at;   /* ns; when urxed kills the process if it takes no frame before;
				UINT64_MAX: no frame waited at the last check */
	uint64_t restart_at; /* ns; valid if pid is 0 */
	uint64_t delay;      /* delay of the latest restart, ns */
	struct log_ratelimit budget;
	char line[VHOST_PROCESS_LINE]; /* the part of a log line that has arrived */
	uint32_t line_len;
};

/*
 * Makes the port, starts the process, and waits until it is ready (60 s at most). The caller keeps
 * `spec`. Returns 0 or a negative errno value; on error `error` has one sentence, and the caller
 * has nothing to stop.
 */
int vhost_process_start(struct vhost_process *process, const char *spec, uint32_t mtu,
			char error[VHOST_PROCESS_ERROR]);
/* Kills the process and removes its socket. The port stays open, without a process at its other
 * end. */
void vhost_process_stop(struct vhost_process *process);

/* Adds the process's descriptors to epoll_fd, with `what` as data of their events: call
 * vhost_process_event for each. Returns 0, or a negative errno value and a sentence in `error`. */
int vhost_process_watch(struct vhost_process *process, int epoll_fd, void *what,
			char error[VHOST_PROCESS_ERROR]);
void vhost_process_event(struct vhost_process *process, uint64_t now);
/* Handles expired timers, and a port whose rings the process has broken; returns the time of the
 * next timer in ns. */
uint64_t vhost_process_tick(struct vhost_process *process, uint64_t now);

#endif
