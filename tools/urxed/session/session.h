/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions: one for each connection of a process to the daemon, from accept to hang-up. Events of a
 * session's sockets in the daemon's epoll set have the session as data; those of its NIC's doorbell
 * have none, and only wake the daemon. Only the thread of the daemon's main loop calls these
 * functions.
 */
#ifndef URXE_URXED_SESSION_SESSION_H
#define URXE_URXED_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/server.h>

#include "common/log.h"
#include "urxed/hostnet/host.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/session/lease_store.h"
#include "urxed/switch/switch.h"
#include "urxed/uplink/direct_uplink.h"

struct session {
	struct session *next;
	struct vnic_server_client *conn;
	struct switch_port port;
	struct neigh_waiter waiter;
	bool resolving; /* an address resolution for the process has no result yet */
	/* The process has sent HELLO, but other processes may still claim leases. The answer waits
	 * until they have, or until claims_until. */
	bool awaits_welcome;
	bool joined;             /* the process has a lease, and its port is in the switch */
	bool asked;              /* it was sent the last request for its state (state_query.c) */
	bool port_unsent;        /* the state of the port is still to be sent to it */
	uint32_t blocks;         /* number of leased blocks of QPNs */
	uint64_t token;          /* the process claims its blocks from the next daemon with it */
	bool demands;            /* its HELLO demands a block by number, and claims no blocks */
	bool claims;             /* its HELLO claims the blocks of an earlier connection */
	bool has_uplink_socket;  /* the process has packet sockets on the uplink */
	bool uplink_asked;       /* the process has requested packet sockets on this connection */
	uint32_t uplink_members; /* uplinks of the sockets: direct_uplink_find() at their start */
	/* Time at which session_may_end first had to wait for frames of the process, ns; 0 = not
	 * yet. */
	uint64_t ends_at;
	bool unwatched;   /* epoll does not report its messages while frames wait for receivers */
	uint32_t drained; /* number of its frames forwarded before its next message */
	/* Limits how often it may request inboxes of other processes (INTRODUCE). */
	struct token_bucket introductions;
	uint64_t inbox_check; /* token of fd_guard_check_inbox for the process's inbox from an
				 earlier daemon; 0 = none */
	/* The session is closed. sessions_reap frees it later, because the present batch of epoll
	 * events may refer to it. */
	bool closed;
	/* Valid if `closed`: the process lives, and may claim its blocks again. */
	bool lost;
};

/* The filter for packets that processes receive by packet sockets (direct_uplink.h): the switch
 * does not receive packets to these blocks of QPNs. */
struct session_exclusion {
	uint32_t members;    /* direct_uplink_find() when the filter was set; 0: set it anew */
	uint32_t generation; /* direct_uplink_generation() when the filter was set */
	uint32_t n;
	uint16_t blocks[PACKET_PORT_QPN_BLOCKS_MAX];
};

/* The filter of the uplink on the HCA's interface, while an HCA backs the device: the uplink
 * receives only packets to QP1 and to these blocks of QPNs. Others are for the HCA's queue pairs.
 */
struct session_admission {
	struct uplink *uplink; /* NULL: no uplink has such a filter */
	uint32_t generation;   /* of the uplink when the filter was set */
	uint32_t n;
	uint16_t blocks[PACKET_PORT_QPN_BLOCKS_MAX];
};

struct sessions {
	struct session *list;
	uint32_t n;
	uint32_t n_unwatched; /* number of ending sessions that sessions_tick_ends looks at */
	int epoll_fd;
	const struct host *host;
	struct vswitch *sw;
	struct neigh *neigh;
	struct lease_store *lease_store;
	struct direct_uplink *direct_uplink;
	struct session_exclusion exclusion;
	struct session_admission admission;
	bool indirect;         /* no frame may bypass the switch, because a capture runs */
	uint64_t claims_until; /* ns; until then clients of an earlier daemon may claim leases */
	/* True after claims_until: from then on only frozen programs, and those that have lost
	 * their connection to this daemon, may claim leases. */
	bool claims_ended;
	uint32_t n_late;     /* number of blocks that such programs may claim, at the last check,
				plus those lost since */
	uint64_t late_check; /* time of the next check of n_late, ns */
	/* Whether a program is frozen, and so may claim late; NULL: no program is frozen. */
	lease_store_frozen_fn *is_frozen;
	void *is_frozen_ctx;
	/* For a block with added QPNs: 1 + the user whose process added the first one; 0: unknown.
	 * Unless the block is leased, it counts as one of this user's blocks. */
	uint64_t adders[LEASE_BLOCKS];
	uint64_t now;       /* time of the event being handled, ns */
	uint64_t resend_at; /* time of the next sessions_resend_port that sends, ns; 0 = none */
	struct session *speaking; /* the session whose message the daemon is handling */
	uint32_t limit;           /* maximum number of connections */
	uint64_t inbox_checks;    /* number of checks of inboxes that were started */
	struct log_ratelimit log; /* rate limit of lines about sessions */
	bool told_short_queue;    /* the log already has the line about net.core.rmem_max */
	/* Called for each process that attaches; NULL: no such function. */
	void (*attached)(void *ctx, struct session *s);
	void *attached_ctx;
	uint64_t counters[VNIC_COUNTER_COUNT]; /* sums of the NICs of closed sessions */
};

/*
 * Token bucket of a process's INTRODUCE requests: VNIC_BLOCKS at once, one for each possible
 * process of the host, and then 100 a second. It is limited, because for a request the daemon may
 * have to read /proc, or ask a helper process that does (namespace_query.h). If the bucket is
 * empty, the daemon answers that it knows no peer, and packets take the switch.
 */
#define SESSION_INTRODUCTIONS   VNIC_BLOCKS
#define SESSION_INTRODUCTION_NS 10000000ull

/*
 * Longest time that a new daemon waits for the clients of an earlier one to claim their leases, ns.
 */
#define SESSION_CLAIM_NS 3000000000ull
/*
 * Time for which a process that has lost its connection to this daemon may claim its leases, ns. It
 * is longer than the 10 s after which a device process tries again if the daemon has not answered.
 * Other processes try again at once.
 */
#define SESSION_LOST_NS 30000000000ull

/*
 * Time for which the daemon goes on forwarding the frames of a process that has ended, while they
 * wait for receivers, ns. The switch drops frames to a full receiver sooner, as those of a living
 * process.
 */
#define SESSION_END_NS 1000000000ull

/* Restores from the lease store what processes had under an earlier daemon: remote QPs
 * (remote_qp_acl.h), added QPNs (qpn_table.h), and leases, which they may claim. The caller has set
 * the pointers of *sessions. */
void sessions_start(struct sessions *sessions);
/*
 * Call it when the daemon begins to serve clients: these may claim leases for SESSION_CLAIM_NS from
 * `now` on. Before this call no claim expires: the start of a daemon may take longer than that on a
 * busy machine, and no client can claim during the start.
 */
void sessions_begin_claims(struct sessions *sessions, uint64_t now);
/*
 * Accepts a pending connection. Returns 0 if the process has a session, or if the quota of its user
 * forbids one and the connection is closed. Returns -EAGAIN if no connection is pending. Other
 * errors: the daemon had no descriptor or memory for the connection, and may have closed it.
 */
int session_accept(struct sessions *sessions, int listen_fd);
/* Handles an epoll event of one of the session's descriptors. */
void session_event(struct sessions *sessions, uint64_t now, struct session *s);
/* Whether the process's vNIC takes multicast frames, as while a queue pair is in a group. */
bool session_wants_multicast(const struct session *s);
/*
 * Sends the state of the port and its GID table to every session. If a session's socket is full,
 * the session gets the newest state when its socket drains. If the kernel has no memory for the
 * notice, sessions_tick sends it later.
 */
void sessions_send_port(struct sessions *sessions);
/* Allows or forbids that all present and future sessions send frames past the switch, by inboxes
 * and by packet sockets on the uplink. For frames that sockets receive see sessions_update_uplink.
 */
void sessions_allow_bypass(struct sessions *sessions, bool on);
/* Gives sessions the inboxes that they had under an earlier daemon, after fd_guard.h has checked
 * them. Call it when fd_guard_fd is readable. */
void sessions_take_inboxes(struct sessions *sessions);
/* A switch_introduce_fn: sends a process the inbox of another one, to which it may then send frames
 * without the switch. */
switch_introduce_fn session_introduce;
/* Sends the result of this address resolution to the process that requested it. */
void session_resolved(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop);
/* Whether process pid of `user` has leased or added the QPN (qpn_table.h). */
bool sessions_hold_qpn(const struct sessions *sessions, pid_t pid, uid_t user, uint32_t qpn);
/*
 * Frees closed sessions, and closes and frees those whose NIC is broken. All processes wait
 * meanwhile, so one call does at most SESSIONS_REAP_STEP units of work: the removal of a remote or
 * added QPN is one unit, the freeing of a session 32. Returns whether it has freed anything. The
 * main loop calls it between two batches of epoll events.
 */
#define SESSIONS_REAP_STEP 512
bool sessions_reap(struct sessions *sessions);
/* Closes all sessions at the end of the daemon. Leaves the filters of uplinks in place, because
 * processes go on with their packet sockets, and no switch delivers their packets. */
void sessions_close_all(struct sessions *sessions);
/* Sums the counters of all NICs, also of closed sessions. */
void sessions_counters(const struct sessions *sessions, uint64_t sums[VNIC_COUNTER_COUNT]);

/* --- session_lease.c */
/*
 * Ends claims when their time is over, and welcomes processes that waited for the claims of others.
 * Calls sessions_resend_port and sessions_tick_ends. Returns the time of the next call in ns,
 * UINT64_MAX: no timer runs.
 */
uint64_t sessions_tick(struct sessions *sessions, uint64_t now);

/*
 * Callbacks of vnic/server.h that session.c installs: session_welcome handles a HELLO,
 * session_lease_more a LEASE. ctx is the struct sessions. They return as struct vnic_server_ops
 * says.
 */
int session_welcome(void *ctx, struct vnic_server_client *conn,
		    const struct vnic_attach_hello *hello, struct vnic_attach_welcome *w);
int session_lease_more(void *ctx, struct vnic_server_client *conn, uint32_t *qpn);
/* Adds a QPN to the process, for session.c. Returns as switch_add_qpn; also -EACCES if the block is
 * quiet (lease_is_quiet), and -ENOSPC if the user has as many blocks as the quota allows. */
int session_add_qpn(struct sessions *sessions, struct session *s, uint32_t qpn, uint32_t flags);
/*
 * Whether the process of a session whose connection has ended may claim its leases again: it lives,
 * and may not have received an answer of the daemon, so it may have given up this connection. rc:
 * the error of vnic_server_event.
 */
bool session_is_lost(const struct sessions *sessions, const struct session *s, int rc);
/* Ends the leases of a session that is being freed. The process of a lost session may claim them
 * for SESSION_LOST_NS. */
void session_end_leases(struct sessions *sessions, struct session *s);
/*
 * Frees the lock of the process's inbox if its holder, another process, has died without a
 * connection, as while no daemon ran. Such a holder has no lease when all claims have ended. But if
 * a process has not claimed its lease in time, yet lives, it may still write to the inbox: then the
 * lock stays.
 */
void session_free_dead_lock(const struct sessions *sessions, struct session *s);

/* --- session.c, for session_lease.c */
/*
 * Sends the state of the port again to the sessions that lack it, if it is time for that. Returns
 * the time of the next call in ns; UINT64_MAX: no resend is due. The main loop calls it when
 * sessions_send_port may have failed since sessions_tick.
 */
uint64_t sessions_resend_port(struct sessions *sessions);
/*
 * Handles the messages and hang-ups that waited for frames of their process, if the receivers have
 * taken the frames by now, or if SESSION_END_NS is over. Returns the time of the next call in ns,
 * UINT64_MAX: none waits; an earlier call has an effect only after frames have moved.
 */
uint64_t sessions_tick_ends(struct sessions *sessions, uint64_t now);
/* Returns the session of a connection, which must exist. */
struct session *sessions_find_conn(struct sessions *sessions,
				   const struct vnic_server_client *conn);
/*
 * Forwards the frames that the process posted before its message or hang-up, up to
 * SWITCH_RUN_FRAMES frames in a call. Returns false if there may be more: then the caller calls
 * again before it handles the message. But after a full ring of frames it returns true, because
 * the process may go on posting. `now` in ns.
 */
bool session_forward_frames(struct sessions *sessions, uint64_t now, struct session *s);
/*
 * Call it after session_forward_frames, when the process has ended or stops its NIC. Returns
 * whether the session may end now. Returns false while frames wait for their receivers; the caller
 * then asks again. After SESSION_END_NS it drops the frames that still wait, and returns true.
 */
bool session_may_end(struct sessions *sessions, uint64_t now, struct session *s);

#endif
