/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The switch's ports for virtual machines, whose device processes (urxe vm) join while the daemon
 * runs (vm_port_protocol.h). The daemon's main loop calls these functions.
 *
 * A process of root, of the daemon's user, or of a user that --vm-user names may have a port. With
 * it the process can do what a station on the Ethernet can. It shares with the daemon only the
 * memory of its port, and the daemon checks each word that it reads there (netdev/shm.h).
 */
#ifndef URXE_URXED_UPLINK_VM_PORT_SET_H
#define URXE_URXED_UPLINK_VM_PORT_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/log.h"
#include "urxed/accept_pause.h"
#include "urxed/session/user_list.h"
#include "urxed/switch/switch.h"
#include "urxed/uplink/mac_store.h"

#define VM_PORT_SET_ERROR 256
/* Limit of the ports of all users together; each user has a quota of it (quota.h). */
#define VM_PORTS (SWITCH_SLOTS - SWITCH_UPLINKS)

/*
 * The connection of a device process. Its index in `at` is also the slot of its port in the switch.
 */
struct vm_port {
	int socket; /* -1 = free */
	uid_t user;
	pid_t pid;
	bool joined;   /* the port exists; false: the process has not sent its request yet */
	bool confined; /* may send from its own MAC only, as only --vm-user trusts its user */
	char name[SWITCH_PORT_NAME];
	uint8_t mac[ETHER_MAC_LEN]; /* the MAC in its request */
	uint32_t mac_slot;          /* in vm_port_set.macs, while joined */
};

struct vm_port_set {
	const char *run_dir;
	struct vswitch *sw;
	const struct user_list *trusted; /* the users that --vm-user names */
	/* Called after a machine has joined or left. */
	void (*changed)(void *ctx);
	void *ctx;
	int epoll_fd; /* readable when vm_port_set_event has something to do; -1 = closed */
	int listen_fd;
	struct accept_pause pause;
	struct mac_store macs; /* MACs of all ports, for the next daemon */
	uint32_t first;        /* slot of the first port */
	uint32_t n;            /* number of present connections */
	uint32_t carriers;     /* bit mask of the uplinks that had a link at the last tick */
	/* Time of the last change of each uplink's link, ns; 0 = none since the start. */
	uint64_t carrier_changed_at[SWITCH_UPLINKS];
	struct log_ratelimit log;
	struct vm_port at[SWITCH_SLOTS];
};

/* Initializes the set, which does not listen yet. The pointers must stay valid. */
void vm_port_set_init(struct vm_port_set *all, struct vswitch *sw, const struct user_list *trusted,
		      void (*changed)(void *ctx), void *ctx);
/*
 * Reads the MACs of an earlier daemon's machines, and listens in run_dir. group: its members may
 * connect, too; 0 = none. Returns 0, or a negative errno value and a sentence in `error`; the
 * caller calls vm_port_set_close even then.
 */
int vm_port_set_open(struct vm_port_set *all, const char *run_dir, gid_t group,
		     char error[VM_PORT_SET_ERROR]);
void vm_port_set_close(struct vm_port_set *all);

/* Whether a machine of this set has a port in the switch; a connection has one only after its
 * request. */
bool vm_port_set_has_machine(const struct vm_port_set *all);

/*
 * Call it when epoll_fd is readable: accepts a connection, answers requests, and removes the ports
 * of ended processes after it has forwarded the frames that these have sent. Then call switch_run.
 */
void vm_port_set_event(struct vm_port_set *all, uint64_t now);
/*
 * Notes links of uplinks that came or went. Removes ports whose process has broken their rings, or
 * whose MAC is that of a station on an uplink. Drops kept MACs whose time is over. Returns the
 * time of the next call in ns; UINT64_MAX = none needed.
 */
uint64_t vm_port_set_tick(struct vm_port_set *all, uint64_t now);

#endif
