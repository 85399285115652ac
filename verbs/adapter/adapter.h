/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The adapter: this process's part of urxe0, with the engine, the vNIC and the inbox, shared by all
 * contexts. This folder has its data and its locks; poll/ runs the engine, attach/ begins and ends
 * the adapter.
 *
 * The adapter is a static variable: a thread that uses a context during or after its close still
 * finds a valid lock. docs/locking.md has the rank of the lock.
 */
#ifndef URXE_VERBS_ADAPTER_ADAPTER_H
#define URXE_VERBS_ADAPTER_ADAPTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <hca/hca.h>
#include <netdev/packet_port.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>
#include <samehost/peer.h>
#include <session/qpn_lease.h>
#include <vnic/driver.h>

#include "adapter/told_qp.h"
#include "engine/lock.h"
#include "engine/tx.h"

struct comp_channel;
struct cq;
struct mr;
struct qp;
struct uverbs_file;

LIST_HEAD(comp_channel_list, comp_channel);
LIST_HEAD(mr_list, mr);
LIST_HEAD(qp_flush_list, qp);
LIST_HEAD(uverbs_file_list, uverbs_file);
TAILQ_HEAD(cq_list, cq);
TAILQ_HEAD(qp_list, qp);

/*
 * The engine's take-over of the HCA's queue pairs (daemon/adapter_hca.h). Two threads may want it
 * at once; they share one attempt.
 */
struct adapter_take_over {
	uint8_t takers;        /* bits of enum hca_taker: the threads that want it */
	unsigned tries;        /* calls of urxe_offload_take_over() so far */
	uint64_t due;          /* time of the next call, ns */
	uint64_t uplink_until; /* until then the first call waits for the daemon to pass packets
				  of the uplink to the engine, ns; 0: this wait has not
				  begun */
	enum urxe_offload_reason waits_for; /* why the last attempt returned -EAGAIN */
};

/* The HCA that backs the device (daemon/adapter_hca.h). */
struct adapter_hca {
	struct hca *hca;        /* the open HCA; NULL: none */
	uint32_t generation;    /* vnic_attach_hca.generation of the HCA last opened or attempted */
	struct hca_retry retry; /* next attempt after a failed one; times of clock_now() */
	bool handled_down; /* URXE_HCA_GONE=engine: adapter_hca_renew has seen that the HCA's port
			      is down. `hca` is NULL, or still open because the engine could not
			      take over */
	/* recv_hook.c could not replace post_recv of a context, so the HCA gets receive requests
	 * late: each run of the engine reads the receive rings of such a context's offloaded queue
	 * pairs. */
	bool unhooked;
	/* The CQ that a thread of the program polls now: most polls take only the completions of
	 * this CQ from the HCA (hca_poll_cq). NULL: those of all CQs. */
	const struct urxe_cq *polled;
	struct adapter_take_over take_over;
	/* An abandoned take-over may have left queue pairs that neither the HCA nor the engine
	 * executes yet: the engine thread polls the HCA each millisecond. */
	atomic_bool qps_stopped; /* also read without adapter.lock */
};

#define DUE_EVENTS_MAX 16

struct due_event {
	struct comp_channel *channel; /* the event counts as one of its users */
	uint64_t element;
};

/*
 * Events of completion channels that the thread with adapter.lock sends after it has released the
 * lock (poll/due_events.h).
 */
struct due_events {
	uint32_t n;
	struct due_event list[DUE_EVENTS_MAX];
	uint32_t drains; /* threads between due_events_begin_drain() and due_events_end_drain() */
	/* Number of events that threads have taken from `list` and still send. */
	_Atomic uint32_t in_flight;
	/* due_events_unlock_and_send(), by a pointer because this folder may not include headers of
	 * poll/. NULL before the engine thread starts for the first time: until then
	 * comp_channel_send_later() sends events at once. */
	void (*unlock_and_send)(void);
};

struct adapter {
	/*
	 * Protects all members, the engine, the vNIC, the inbox, all uverbs objects of the process
	 * and the table of peers. Rank 3 (docs/locking.md).
	 */
	struct lock lock;
	struct urxe_dev *dev; /* NULL: not attached */
	struct vnic_driver *nic;
	struct vnic_inbox *inbox; /* NULL: none */
	struct adapter_hca hca;
	atomic_bool hca_open;        /* hca.hca is not NULL; written with the lock, read without */
	struct packet_group *uplink; /* the direct uplink; NULL: none */
	uint32_t uplink_generation;  /* vnic_attach_port.uplink_generation at the last request */
	bool uplink_inherited;       /* an earlier daemon opened `uplink`; the present daemon has
					not been asked for one yet */
	uint64_t uplink_retry_at;    /* when to ask the daemon again, by clock_now(); 0: never */
	uint64_t uplink_retry_ns;   /* length of the wait until uplink_retry_at; 0: the last attempt
				       did not lack descriptors or memory */
	uint64_t uplink_look_at;    /* when to check for a stopped receive ring; 0: no uplink */
	bool uplink_stopped;        /* the last check found a stopped ring */
	uint64_t uplink_suspect_at; /* when a ring was last replaced that may only have been full */
	uint64_t uplink_stopped_at; /* when a check last found a stopped ring; 0: never */
	uint64_t uplink_stop_ns;    /* pause without an uplink after that stop, ns; 0: none */
	bool inbox_broken;          /* a peer has violated the protocol of this process's inbox */
	/* A checkpointer's thread does not save the process after all. So the engine thread
	 * publishes the peers' rights to copy again, which the checkpointer's thread has withdrawn,
	 * and abandons the take-over. Set without the lock. */
	_Atomic bool stop_abandoned;
	_Atomic bool inbox_populated; /* the inbox's pages are allocated, because peers may send */
	struct tx tx;
	struct vnic_attach_welcome welcome;
	bool dead; /* the device is dead, until the adapter's last user has closed it */
	/* The adapter looks for another daemon (daemon/reconnect.h). Also read without the lock. */
	atomic_bool reconnecting;
	/* Generation of the attachment: grows with each reconnection to a daemon, and in a forked
	 * child. Constant while nic_users is not 0. */
	uint32_t daemon_generation;
	uint32_t nic_users; /* threads that wait for an answer of the daemon */
	/* Number of reconnections that have ended, successfully or not. Commands that wait for the
	 * next daemon sleep until this number changes (lock_wait). */
	_Atomic uint32_t reconnects_ended;
	/* The largest number in the engine that a PD has had. */
	uint32_t last_pd;
	uint32_t reused_pd; /* the last number that was given again; 0: none yet (pd_new_number) */
	struct leases leases;
	struct cq_list dirty_cqs;
	struct qp_list dirty_qps;
	struct qp_flush_list flushing_qps;
	struct due_events due_events;
	/* Channels with events that wait: their sockets did not take them, or adapter_publish() has
	 * to send them. */
	struct comp_channel_list waiting_channels;
	bool events_due;    /* adapter_publish() has to flush waiting_channels */
	bool channel_waits; /* a channel has joined waiting_channels since the engine thread last
			       chose the descriptors of its poll(2) */
	uint32_t multicast_changes; /* how often the NIC's reception of multicast was switched */
	uint32_t multicast_applied; /* value of multicast_changes that the daemon has applied */
	struct told_qp_list remote_qps;
	struct told_qp_list added_qps;
	struct told_qp_list released_qps; /* ended; the daemon has not been told yet */
	/* A change of a QPN's flags could not be sent: the engine thread tries again each
	 * millisecond (daemon/uplink_qpns.h). Also read without the lock. */
	atomic_bool uplink_qpns_late;
	struct uverbs_file_list files;
	struct mr_list released_mrs; /* deregistered; peers may still copy to or from the memory */
	uint64_t registrations;      /* memory registrations so far */
	uint32_t on_demand_mrs;      /* number of regions with URXE_ACCESS_ON_DEMAND */
	uint64_t page_faults;        /* the counter VNIC_BYPASS_PAGE_FAULTS */
};
extern struct adapter adapter;

/*
 * Protects attachment, detachment and the number of users of the adapter. Rank 1 of
 * docs/locking.md. The handlers of fork hold it.
 */
extern pthread_mutex_t adapter_open_lock __attribute__((visibility("hidden")));
/*
 * Held by the thread that asks the daemon for more queue pair numbers. Rank 1 of
 * docs/locking.md. A forked child initialises it.
 */
extern pthread_mutex_t adapter_lease_lock __attribute__((visibility("hidden")));

/* This thread holds adapter.lock, or waits for it. If a signal handler of the thread forks, the
 * handlers of fork must not take the lock: they would wait for their own thread. */
extern __thread bool adapter_inside
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
/*
 * NULL but in a child that a signal handler has forked while its thread held adapter.lock or waited
 * for it. In such a child attach/fork.c sets it to a function that forgets the parent's adapter;
 * adapter_unlock calls that function.
 */
extern void (*adapter_unlock_orphaned)(void) __attribute__((visibility("hidden")));

/*
 * Generation of this process: a forked child adds 1 to its parent's value when the child drops the
 * parent's adapter. Otherwise constant in a process. Callers compare the value to find uses that
 * began in the parent.
 */
extern uint32_t adapter_fork_generation;

/*
 * Whether this is a child that a signal handler has forked since `generation` was read from
 * adapter_fork_generation. The use of the adapter that began then is the parent's.
 */
static inline bool adapter_is_parents(uint32_t generation)
{
	return generation != adapter_fork_generation || adapter.lock.orphaned;
}

static inline void adapter_lock(void)
{
	adapter_inside = true;
	lock_take(&adapter.lock);
}

/* Takes adapter.lock for the engine thread: no thread that comes later takes the lock first. */
static inline void adapter_claim(void)
{
	adapter_inside = true;
	lock_claim(&adapter.lock);
}

/* Call it when the thread has released adapter.lock, or lock_try has not got it. If a signal
 * handler has forked while adapter_inside was true, the child forgets the parent's adapter here. */
static inline void adapter_leave(void)
{
	adapter_inside = false;
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(adapter_unlock_orphaned && adapter.lock.orphaned, 0))
		adapter_unlock_orphaned();
}

static inline bool adapter_trylock(void)
{
	/* The caller is a signal handler, whose thread has the lock or waits for it. */
	if (adapter_inside)
		return false;
	adapter_inside = true;
	if (lock_try(&adapter.lock))
		return true;
	adapter_leave();
	return false;
}

static inline void adapter_unlock(void)
{
	if (__builtin_expect(adapter.lock.orphaned, 0))
		adapter_unlock_orphaned();
	else if (adapter.due_events.n)
		adapter.due_events.unlock_and_send();
	else
		lock_release(&adapter.lock);
	adapter_leave();
}

/*
 * adapter_note_death tells that the device has died (`dead` true), or that the process attaches
 * again. adapter_list_generation returns the device's generation, at first 0, for a program that
 * lists the devices. Its first call while the device is dead adds 1: libibverbs finds a new device
 * in the place of the dead one. Both functions: any thread, no lock.
 */
void adapter_note_death(bool dead);
uint32_t adapter_list_generation(void);

/* The other processes of this host that the adapter knows. */
extern struct peers adapter_peers;
/* Initialises adapter_peers; the caller has no peer yet. */
void adapter_init_peers(void);

/* The value of a counter, as `urxe show counter` prints it. With adapter.lock. */
uint64_t adapter_counter(enum vnic_bypass_counter counter);

/* Whether the adapter has a daemon. The adapter is open; the caller holds adapter.lock. */
static inline bool adapter_connected(void)
{
	return !adapter.dead && !adapter.reconnecting;
}

/*
 * Whether the engine may send and receive: the adapter has a daemon, or, until the next daemon
 * comes, a direct uplink. With adapter.lock.
 */
static inline bool adapter_running(void)
{
	return !adapter.dead && (!adapter.reconnecting || adapter.uplink);
}

/*
 * Call it after a QP has joined or left a multicast group: the NIC receives multicast frames while
 * any QP is in a group. adapter_apply_multicast tells the daemon, without adapter.lock.
 */
static inline void adapter_update_multicast(void)
{
	adapter.multicast_changes +=
		vnic_driver_choose_multicast(adapter.nic, urxe_mcast_any_attached(adapter.dev));
}

/* If any QP is in a multicast group, tells a new daemon so, and awaits its answer with adapter.lock
 * held. */
static inline void adapter_set_multicast(void)
{
	vnic_driver_set_multicast(adapter.nic, urxe_mcast_any_attached(adapter.dev));
	adapter.multicast_applied = adapter.multicast_changes;
}

/*
 * Whether entry `index` of the GID table can be the source of packets to dgid. 0: it can. -ENODATA:
 * the entry is empty. -EINVAL: the table has no such entry; or the entry is of RoCEv2, dgid is a
 * unicast address, and one of them is IPv4, the other IPv6. Takes adapter.lock, which must not be
 * held.
 */
int port_check_source(uint32_t index, const uint8_t dgid[16]);
/* The device's node GUID (vnic_node_guid), in network byte order. */
void adapter_guid(uint8_t guid[8]);
/* The largest path MTU whose packets fit the link MTU. */
enum urxe_mtu port_mtu(void);

#endif
