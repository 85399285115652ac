/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port: the engine and the vNIC of this process, shared by all contexts.
 *
 * One instance, which never moves, so that whoever comes late to a closed
 * context finds a lock to take and a flag to read.
 */
#ifndef URXE_VERBS_ENGINE_PORT_H
#define URXE_VERBS_ENGINE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <vnic/driver.h>

#include "daemon/qpn_lease.h"
#include "daemon/reconnect.h"
#include "daemon/remote_qp.h"
#include "engine/engine_thread.h"
#include "engine/lock.h"
#include "engine/tx.h"
#include "memory/mr.h"
#include "queues/comp_channel.h"
#include "queues/cq.h"
#include "queues/qp.h"
#include "uverbs/ucontext.h"

struct port {
	struct lock lock;     /* owner of everything below, and of the engine and the vNIC */
	struct urxe_dev *dev; /* NULL: not attached */
	struct vnic_driver *nic;
	struct vnic_inbox *inbox; /* NULL: there is none */
	bool inbox_broken;        /* and that was told */
	_Atomic bool inbox_met;   /* others may send to it: it has all its memory */
	struct egress egress;
	struct vnic_attach_welcome who;
	bool gone; /* port_lost was called: the device is dead */
	struct outage outage;
	uint32_t daemons;      /* that this port has had before */
	uint32_t nic_users;    /* threads that ask the daemon something */
	_Atomic uint32_t back; /* outages that have ended; lock_tell */
	uint32_t last_pd;
	struct leases leases;
	struct cq_list dirty_cqs;
	struct qp_list dirty_qps;
	struct qp_flush_list flushing_qps;
	struct channel_list waiting_channels;
	struct remote_list remotes;
	struct remote_list released_remotes; /* of which the daemon is still to be told */
	struct file_list files;
	struct mr_list released_mrs; /* whose memory peers may still copy to or from */
	uint64_t registrations;      /* so far */
	struct progress progress;
};
extern struct port port;

static inline void port_lock(void)
{
	lock_take(&port.lock);
}

/* For the engine's thread: threads that poll or post without end have to let it do its work. */
static inline void port_claim(void)
{
	lock_claim(&port.lock);
}

static inline bool port_trylock(void)
{
	return lock_try(&port.lock);
}

static inline void port_unlock(void)
{
	lock_release(&port.lock);
}

/*
 * Releases the lock when peers copy no longer by rights that were withdrawn, and does not hold it
 * while it waits for that. At the end of each call after which memory is the program's own again.
 */
void port_unlock_settled(void);

/* Attaches this process to its urxed, at the first call; each needs a port_close. */
int port_open(void);
void port_close(void);

/* The next hop to dgid; may block for seconds, so without the lock. For an open context. */
int port_resolve(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop);

/*
 * Leases more queue pair numbers, where all are taken; blocks, so without the lock. -EINVAL: the
 * process has as many queue pairs as may be; -ENOSPC: the daemon has no more for it.
 */
int port_lease(void);
/* A QP is connected to a remote one, or no longer; blocks, so without the lock. */
int port_register(struct remote *remote, bool connected);
/*
 * Opens the straight way to the process of this host that has a QPN, where the daemon
 * introduces us. May block, so without the lock. For an open context.
 */
void port_meet(uint32_t qpn);
/* The daemon has opened it unasked; the descriptors are the port's. The lock is free meanwhile. */
void port_met(uint32_t qpn, const int fds[VNIC_INBOX_FDS]);
/* A sender has broken the inbox: all comes by the NIC from now on. */
void port_inbox_broken(void);

/* Counters of the process, as `urxe show counter` prints them. */
uint64_t port_counter(enum vnic_direct_counter counter);

/* Shows the application all that the engine has completed. */
void port_publish(void);
/*
 * The device is dead, for that reason: every context hears of it, and what is
 * outstanding ends in errors.
 */
void port_lost(const char *why);

/* Whether there is a daemon behind the NIC. */
static inline bool port_connected(void)
{
	return !port.gone && !port.outage.on;
}

/*
 * Takes a NIC from the daemon that is there now, with the same leases, and puts it in
 * the place of the old one. For daemon/reconnect.c: with the lock, which is free meanwhile.
 * -ESTALE: that daemon is another host; -EBUSY: not now.
 */
int port_attach_again(void);
/* The outage has ended: threads that wait to ask the daemon something go on. */
void port_tell_waiting(void);

/* A QP has joined or left multicast groups: the NIC hears multicast while any QP is in one. */
static inline void port_groups_changed(void)
{
	vnic_driver_set_multicast(port.nic, urxe_mcast_heard(port.dev));
}

/* Without the lock: whether an entry of the GID table is in use. */
bool port_gid_valid(uint32_t index);
/* The daemon has told what the port is now: every context hears what that changes. */
void port_changed(const struct vnic_attach_port *now);
/* EUI-64 of the MAC, as IPv6's interface identifier; network byte order. */
void port_guid(uint8_t guid[8]);
/* The largest path MTU whose packets the link carries. */
enum urxe_mtu port_mtu(void);

#endif
