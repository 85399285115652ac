/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device process's session with urxed (vnic/attach_protocol.h), beside its port of the switch:
 * it gets the numbers of its queue pairs, which are unique on the host, and answers `urxe show`
 * with its state. The session has a vNIC, like that of a program, but this vNIC carries no frames.
 *
 * Without a session, as for a user that urxed refuses, the machine works, and PVRDMA chooses the
 * numbers itself. If the daemon ends, the session looks for the next one, and claims the same
 * numbers there. It tries again after each error, at least once a minute, unless the daemon is of
 * another version or host, or has given the numbers away. One thread uses the session. Calls that
 * ask the daemon wait for each answer, for 5 s at most.
 */
#ifndef URXE_VM_HOST_MACHINE_SESSION_H
#define URXE_VM_HOST_MACHINE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <session/qpn_lease.h>
#include <vnic/driver.h>

#include "vm/host/daemon_pause.h"

struct session_queries {
	/* Sends the JSON document for `urxe show` (state_document.h) on `socket`, and closes it. */
	void (*state)(void *ctx, int socket);
	/* Begins a recording of the engine in that ring (vnic/record_ring.h), which the callee
	 * owns; -1: ends it. */
	void (*record)(void *ctx, int ring);
	void *ctx;
};

struct vm_session {
	const char *run_dir;
	uint8_t mac[6]; /* of the machine */
	struct session_queries queries;
	int epoll_fd;                       /* readable when vm_session_event has something to do */
	struct vnic_driver *nic;            /* NULL = no daemon */
	struct vnic_attach_welcome welcome; /* of the last attachment; qpn_first is 0 before any */
	bool unwatched;                     /* the daemon's descriptors are not in epoll_fd yet */
	uint32_t attachments;               /* number of attachments so far */
	struct leases leases;
	uint32_t log_lines; /* failed requests that were logged, at most 8 */
	/* The inbox that later daemons get; NULL: none. The caller of vm_session_make_inbox owns
	 * it. */
	struct vnic_inbox *inbox;
	uint64_t retry_at; /* next look for a daemon, ns */
	struct daemon_pause pause;
	uint64_t refused_ns; /* pause after the last refusal, ns; 0: none since the last
				attachment */
	int refusal; /* the last error that was logged, until an attachment succeeds; 0: none */
	/* The numbers belong to the replaced process until it ends: between vm_session_demand_later
	 * and vm_session_demand_now. */
	bool demand_deferred;
	bool demanded; /* the demand has ended, with or without success, and
			  vm_session_has_demanded has not told that yet */
	/* When the session next asks the daemon for the numbers of a replaced process (0 = it does
	 * not ask), and when it gives up; ns. */
	uint64_t demand_at, demand_until;
	/* The session attaches to no daemon any more: urxed has refused for good, or another
	 * process has the numbers now. */
	bool final_detach;
};

/* Attaches to the daemon, if there is one. Logs a refusal of the daemon, and returns 0 all the
 * same. A negative errno value: there is no descriptor for epoll_fd. */
int vm_session_open(struct vm_session *s, const char *run_dir, const uint8_t mac[6],
		    const struct session_queries *queries);
/* Accepts a zeroed structure. */
void vm_session_close(struct vm_session *s);

/* Leaves the daemon, which may then give the numbers to another process. vm_session_tick attaches
 * again and claims them, unless s->final_detach. */
void vm_session_detach(struct vm_session *s);
/*
 * For a process that replaces another one: until the other process ends, the numbers belong to it.
 * After vm_session_demand_later, vm_session_demand_qpn takes numbers without asking the daemon.
 * After vm_session_demand_now, vm_session_tick asks the daemon for all of them, for 2 s at most.
 * `now` in ns.
 */
void vm_session_demand_later(struct vm_session *s);
void vm_session_demand_now(struct vm_session *s, uint64_t now);
/*
 * True once after vm_session_demand_now: when the daemon has given all numbers, when there is no
 * daemon, or after the 2 s.
 */
bool vm_session_has_demanded(struct vm_session *s);

/* When epoll_fd is readable: handles the daemon's messages and its end. */
void vm_session_event(struct vm_session *s);
/*
 * Looks for a daemon if there is none, and asks it for the numbers of a replaced process if that is
 * due. While epoll_fd has no room for the daemon's descriptors, calls vm_session_event. Returns the
 * time of the next call, UINT64_MAX = none.
 */
uint64_t vm_session_tick(struct vm_session *s, uint64_t now);

/*
 * Makes an inbox, which later daemons get, too; the caller owns it, and keeps it until
 * vm_session_close. -ENOTCONN: no daemon; else as vnic_driver_make_inbox.
 */
int vm_session_make_inbox(struct vm_session *s, struct vnic_inbox **inbox);

/* Takes a free number for a new queue pair, and leases more if necessary; 0: there is none. */
uint32_t vm_session_take_qpn(struct vm_session *s);
/* Gives a number of vm_session_take_qpn or vm_session_demand_qpn back. */
void vm_session_free_qpn(struct vm_session *s, uint32_t qpn);
/*
 * Takes the number of a queue pair that comes from another host. The session logs (8 times) if the
 * daemon does not admit the number, because another process of this host has it, for example, or if
 * no daemon runs. Then only peers of this host notice: their messages go in packets. -EADDRINUSE: a
 * queue pair of the machine has the number; -ENOMEM.
 */
int vm_session_demand_qpn(struct vm_session *s, uint32_t qpn);

#endif
