/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port: the engine, the vNIC and the inbox of this process, shared by all contexts.
 *
 * It is one static instance: a thread that uses a closed context still finds the lock and the flag
 * that says so. docs/locking.md has the rank of the lock.
 */
#ifndef URXE_VERBS_PORT_PORT_H
#define URXE_VERBS_PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/packet_port.h>
#include <rxe/rxe.h>
#include <rxe/state.h>
#include <samehost/peer.h>
#include <vnic/driver.h>

#include "daemon/local_qp.h"
#include "daemon/reconnect.h"
#include "daemon/remote_qp.h"
#include "engine/engine_thread.h"
#include "engine/lock.h"
#include "engine/tx.h"
#include "objects/comp_channel.h"
#include "objects/handle.h"
#include "objects/mr.h"
#include "objects/uverbs_file.h"
#include "poll/polling.h"
#include "port/port_hca.h"
#include "queues/cq.h"
#include "queues/qp.h"
#include <session/qpn_lease.h>

struct port {
	/*
	 * Protects all members, the engine, the vNIC, the inbox, all uverbs objects of the process
	 * and the table of peers. Rank 3 (docs/locking.md).
	 */
	struct lock lock;
	struct urxe_dev *dev; /* NULL: not attached */
	struct vnic_driver *nic;
	struct vnic_inbox *inbox; /* NULL: none */
	struct port_hca hca;
	struct packet_port *uplink;   /* the direct uplink; NULL: none */
	uint8_t uplink_generation;    /* vnic_attach_port.uplink when it was requested */
	bool uplink_inherited;        /* it is an earlier daemon's: this one has not been asked */
	bool inbox_broken;            /* port_inbox_broken was called */
	_Atomic bool inbox_populated; /* peers may send to the inbox, so its memory is populated */
	struct tx tx;
	struct vnic_attach_welcome welcome;
	bool dead; /* the device is dead, for good */
	struct reconnect reconnect;
	uint32_t daemons;   /* number of daemons to which the port was attached before */
	uint32_t nic_users; /* threads that wait for an answer of the daemon */
	_Atomic uint32_t reconnects_ended; /* reconnections that have ended, successfully or not;
					      for lock_wait */
	uint32_t last_pd;
	struct leases leases;
	struct cq_list dirty_cqs;
	struct qp_list dirty_qps;
	struct qp_flush_list flushing_qps;
	struct comp_channel_list waiting_channels;
	bool channel_waits; /* the engine thread does not poll(2) some waiting_channels yet */
	struct remote_qp_list remote_qps;
	struct remote_qp_list released_remote_qps; /* the daemon has not been told yet */
	struct local_qp_list local_qps;
	struct local_qp_list released_local_qps; /* the daemon has not been told yet */
	struct uverbs_file_list files;
	struct mr_list released_mrs; /* whose memory peers may still copy to or from */
	uint64_t registrations;      /* memory registrations so far */
	uint32_t on_demand_mrs;      /* regions with URXE_ACCESS_ON_DEMAND */
	uint64_t page_faults;        /* VNIC_DIRECT_PAGE_FAULTS */
	struct polling polling;
	struct engine_thread thread;
};
extern struct port port;

/* This thread holds port.lock, or waits for the lock: a signal handler that forks must not take it.
 */
extern __thread bool port_inside __attribute__((tls_model("initial-exec"), visibility("hidden")));
/*
 * In a child that a signal handler has forked while this thread held port.lock or waited for it
 * (port/port_fork.c): forgets the parent's port.
 */
void port_unlock_orphaned(void);

static inline void port_lock(void)
{
	port_inside = true;
	lock_take(&port.lock);
}

/* For the engine thread: threads that poll or post without end do not pass it. */
static inline void port_claim(void)
{
	port_inside = true;
	lock_claim(&port.lock);
}

static inline bool port_trylock(void)
{
	port_inside = true;
	if (lock_try(&port.lock))
		return true;
	port_inside = false;
	return false;
}

static inline void port_unlock(void)
{
	if (__builtin_expect(port.lock.orphaned, 0))
		port_unlock_orphaned();
	else
		lock_release(&port.lock);
	port_inside = false;
}

/* The other processes of this host that the port knows. */
extern struct peers port_peers;
/* The first call attaches the process to its daemon; each call needs a port_close. */
int port_open(void);
void port_close(void);

/* What a process had when it was saved (checkpoint/). */
struct port_saved {
	const uint32_t *blocks; /* first QPNs of its blocks, in their order */
	uint32_t n_blocks;      /* 1 to VNIC_LEASES_MAX */
	/* Of the port: */
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
	bool up;
	const uint8_t *engine; /* stream of urxe_state_save */
	size_t engine_length;
	const struct urxe_state_restore *how;
};

/*
 * Attaches a process that has no open device to its daemon, with the blocks of QPNs and the engine
 * of a saved process; no thread runs the engine yet. After success one of the other two functions
 * follows, in the same thread. Without the lock. -EBUSY: the process has an open device; errors of
 * vnic_driver_demand and urxe_state_restore.
 */
int port_restore_begin(const struct port_saved *saved);
void port_restore_abort(void);
/*
 * The port has the contexts and their objects: starts the engine. `users` is the number of
 * contexts. After an error the port is detached.
 */
int port_restore_end(const struct port_saved *saved, uint32_t users);

/* The next hop to dgid. Blocks for seconds at most, without the lock. For an open context. */
int port_resolve_next_hop(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop);

/*
 * Leases more queue pair numbers, if all are taken. Blocks, without the lock. -EINVAL: the process
 * has the maximum of queue pairs; -ENOSPC: the daemon has no more numbers for the process.
 */
int port_lease_qpns(void);
/*
 * Tells the daemon that a QP is connected to a remote QP, or no longer. Blocks, without the lock.
 */
int port_register_remote_qp(struct remote_qp *remote, bool connected);
/* Tells the daemon that the process has a QP with that number, or no longer. Blocks, without the
 * lock. */
int port_add_qpn(struct local_qp *local, bool exists);
/*
 * 0: the peer of a connection is a queue pair of this host that can be reached without the HCA.
 * Blocks, without the lock.
 */
int port_query_qpn(const uint8_t dgid[16], uint32_t qpn);
/*
 * Asks the daemon for the inbox of the process of this host that has the QPN of the device with
 * that MAC, if there may be one. Blocks, without the lock. For an open context.
 */
void port_request_inbox(const uint8_t mac[6], uint32_t qpn);
/*
 * The daemon has sent the inbox of that QPN's process unasked. The port takes the descriptors; the
 * lock is free meanwhile.
 */
void port_add_inbox(uint32_t qpn, const int fds[VNIC_INBOX_FDS]);
/* A sender has broken the inbox: all frames come by the NIC from now on. */
void port_inbox_broken(void);

/* The daemon's uplink is another one than that of the port's packet socket, or none. */
bool port_uplink_stale(void);
/*
 * Asks the daemon for a packet socket on its uplink, and replaces the port's. Blocks, and releases
 * the lock meanwhile. In the engine thread, or before it starts.
 */
void port_renew_uplink(void);
/* The port has leased QPNs: the packet socket receives their packets, too. */
void port_accept_uplink(void);
void port_close_uplink(void);

/* Counters of the process, as `urxe show counter` prints them. */
uint64_t port_counter(enum vnic_direct_counter counter);

/* Shows the program all completions of the engine. */
void port_publish(void);
/*
 * Declares the device dead: each context gets the event, and outstanding requests complete in
 * error. `reason` is for the log.
 */
void port_fail(const char *reason);

/* Whether the port has a daemon. */
static inline bool port_connected(void)
{
	return !port.dead && !port.reconnect.active;
}

/*
 * Whether the engine runs: the port has a daemon, or its direct uplink goes on until the next one.
 */
static inline bool port_running(void)
{
	return !port.dead && (!port.reconnect.active || port.uplink);
}

/*
 * Replaces the NIC by a NIC of the next daemon, with the same leases. For daemon/reconnect.c: with
 * the lock, which is released meanwhile. -ESTALE: that daemon serves another host; -EBUSY: not now.
 */
int port_reattach(void);
/* The reconnection has ended: wakes threads that wait to ask the daemon. */
void port_wake_waiters(void);

/* A QP has joined or left multicast groups: the NIC receives multicast while any QP is in one. */
static inline void port_update_multicast(void)
{
	vnic_driver_set_multicast(port.nic, urxe_mcast_heard(port.dev));
}

/* Without the lock: whether an entry of the GID table is in use. */
bool port_gid_valid(uint32_t index);
/* The daemon has sent new attributes of the port: contexts get events for the changes. */
void port_changed(const struct vnic_attach_port *now);
/* EUI-64 of the MAC address, as in IPv6's interface identifier; network byte order. */
void port_guid(uint8_t guid[8]);
/* The largest path MTU whose packets the link carries. */
enum urxe_mtu port_mtu(void);

#endif
