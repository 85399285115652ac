/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's replacement for the kernel's rdma_ucm module. Programs that have opened
 * /dev/infiniband/rdma_cm send commands on a socket and get responses and events
 * (cm/attach_protocol.h, with the layouts of rdma/rdma_user_cm.h). The IDs of a program end with
 * the program, but survive a restart of the daemon: a slot file records them. Only the daemon's
 * thread calls this.
 */
#ifndef URXE_URXED_CM_UCMA_H
#define URXE_URXED_CM_UCMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <cm/attach_protocol.h>
#include <rdma/rdma_user_cm.h>

#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/accept_pause.h"
#include "urxed/cm/cma.h"
#include "urxed/session/process_info.h"
#include "urxed/session/slot_file.h"

#define UCMA_BACKLOG_MAX 1024 /* net.rdma_ucm.max_backlog */
/*
 * 1/8 of a backlog is kept for senders whose MAC was confirmed by ARP or neighbour discovery.
 * Otherwise senders with invented addresses could fill the whole backlog.
 */
#define UCMA_RESERVE 8
/* Limit of the groups that all IDs have joined; a user has a quota (quota.h). */
#define UCMA_GROUPS 4096
/*
 * How many IDs and events of an ended program the daemon destroys in one step: other programs wait
 * meanwhile.
 */
#define UCMA_END_STEP 512
/*
 * Limit of the connections that are accepted at a time: clients that connect without end must not
 * keep the daemon from other work.
 */
#define UCMA_ACCEPTS 16
/* An ID with so many unfetched events may not resolve another address. */
#define UCMA_EVENTS_MAX 64
/*
 * Limit of the unfetched events of all IDs. If a user's quota (quota.h) is used up, none of the
 * user's IDs may resolve another address.
 */
#define UCMA_EVENTS 131072
/*
 * Limit of the requests that one user's programs have neither accepted nor rejected. It also
 * applies to users without quota, because other hosts send the requests.
 */
#define UCMA_REQUESTS_MAX 16384
#define UCMA_STORE_NAME   "urxed.ids"
/*
 * How long a new daemon keeps the IDs that an earlier one has recorded for running programs. Also
 * how long it keeps them after a claim whose connection ended before the program's first command.
 */
#define UCMA_CLAIM_TIME_NS 3000000000ull

/* How long, from the end of a program that was frozen, the daemon keeps the program's IDs. */
#define UCMA_DEPARTED_NS (CM_ATTACH_DEPARTED_S * UINT64_C(1000000000))

struct ucma_file;
struct ucma_ctx;

/* A multicast group that an ID has joined. */
struct ucma_group {
	struct ucma_ctx *ctx;
	uid_t user;      /* counted in ucma.groups, also after a move to another user's file */
	uint32_t number; /* the `id` in the program's LEAVE_MCAST command */
	uint64_t uid;    /* the program's user context, returned in its events */
	uint32_t events_reported;
	uint32_t slot; /* in ucma.store */
	LIST_ENTRY(ucma_group) link;
};
LIST_HEAD(ucma_group_list, ucma_group);

struct ucma_event;
TAILQ_HEAD(ucma_event_list, ucma_event);

/* One rdma_cm ID of a program. */
struct ucma_ctx {
	struct ucma_file *file;
	struct cma_id *id;
	uint64_t uid; /* the program's user context; 0 = a request that was not accepted yet */
	uint32_t events_reported;
	uint32_t backlog; /* listener: how many more requests may wait */
	uint32_t reserve; /* places of the backlog that only known senders get */
	uint32_t n_events;
	struct ucma_event_list events; /* queued events that count for this ID, in their order */
	struct ucma_event *request; /* the queued CONNECT_REQUEST that created this ID, or NULL */
	struct ucma_group_list groups;
	uint32_t slot; /* in ucma.store */
	bool dirty;    /* changed since its slot was written */
	LIST_ENTRY(ucma_ctx) link;
	LIST_ENTRY(ucma_ctx) dirty_link;
};
LIST_HEAD(ucma_ctx_list, ucma_ctx);

struct ucma_event {
	struct ucma_ctx *ctx;     /* the ID whose events_reported counts it */
	struct ucma_group *group; /* its events_reported counts it too; NULL: none */
	struct ucma_ctx *child;   /* CONNECT_REQUEST: the new ID; NULL once destroyed */
	struct rdma_ucm_event_resp resp;
	uint64_t sequence; /* increases from event to event */
	uint32_t slot;     /* in ucma.store */
	bool sent;         /* in a packet to the program, which may not have read it yet */
	bool cancelled;    /* has no ID any more; the program skips its packet */
	TAILQ_ENTRY(ucma_event) link;     /* in the events of the file */
	TAILQ_ENTRY(ucma_event) ctx_link; /* in the events of the ID */
};

/* Values of ucma_save_cursor.kind beside enum ucma_record_kind. */
#define UCMA_SAVE_COMPLETE (UINT32_MAX - 1) /* all records were saved */
#define UCMA_SAVE_BROKEN   UINT32_MAX /* an ID was destroyed meanwhile, or a record is missing */

/* The record that CM_ATTACH_SAVE returned last for a frozen file. All 0: none. */
struct ucma_save_cursor {
	uint32_t kind;        /* of that record; 0: none; or one of UCMA_SAVE_* */
	struct ucma_ctx *ctx; /* of that record, or the ID of its group */
	struct ucma_group *group;
	struct ucma_event *event;
};

/* The reply to a command, as the program receives it. */
struct ucma_answer {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

/*
 * One open file of /dev/infiniband/rdma_cm in a program. A claimant is the file of a new connection
 * by which a program claims its restored or departed (forget_at) file.
 */
struct ucma_file {
	struct ucma *ucma;
	int fd;       /* command socket; -1: restored and not yet claimed, departed, or ended */
	int event_fd; /* a packet for each event; -1 before the hello */
	uint32_t n_events;
	uint32_t sent;             /* how many events, from the first, are sent */
	struct ucma_event *unsent; /* the first event that is not sent; NULL: none */
	bool ended;     /* given up: ucma_tick destroys its IDs and events, then the file */
	bool frozen;    /* saved or restored, until the thaw: sends no events, and runs only the
			   commands of ucma_checkpoint.c */
	bool restoring; /* frozen, because the program restores it from records */
	/*
	 * The program has claimed the file, and has given no command since: it may not have
	 * received the welcome.
	 */
	bool unconfirmed;
	/*
	 * ns; when the daemon gives up a departed file; 0: not departed. A file departs if its
	 * program ended while frozen, or may not have received the welcome to its claim.
	 */
	uint64_t forget_at;
	struct ucma_save_cursor save_cursor;
	struct ucma_answer answer; /* to the last command */
	/* Bytes of `answer` if the kernel had no memory to send it; 0: the program has it. */
	uint32_t answer_len;
	uint32_t stale;       /* number of sent packets that the current command has made invalid */
	uint32_t n_cancelled; /* events that the current command has cancelled */
	uint64_t cancelled[CM_ATTACH_CANCELLED]; /* their sequence numbers */
	uint32_t to_skip;   /* cancelled events that the program has not skipped yet */
	bool send_queued;   /* in ucma.to_send */
	bool event_fd_full; /* the event socket is full, and watched for EPOLLOUT */
	uint64_t fetched;   /* of a claimant: sequence number of the last event that the program has
			       fetched */
	pid_t pid;
	uid_t user;
	char name[PROCESS_NAME];
	/* The process had CAP_NET_BIND_SERVICE when it opened the device, and belongs to root or to
	 * the daemon's user. */
	bool low_ports;
	uint64_t token; /* by which the program claims the file from the next daemon */
	uint64_t start; /* process_identity(); 0 = unknown */
	uint32_t slot;  /* in ucma.store */
	/*
	 * Of a claimant: the file that gets the claimant's connection, once the program has claimed
	 * its QPNs.
	 */
	struct ucma_file *claimed_file;
	uint32_t n_ctxs;
	uint32_t n_requests; /* of these, requests that were not accepted yet */
	struct ucma_ctx_list ctxs;
	struct ucma_event_list events;
	LIST_ENTRY(ucma_file) link;
	LIST_ENTRY(ucma_file) send_link;
};
LIST_HEAD(ucma_file_list, ucma_file);

struct ucma_ops {
	struct cma_ops cma; /* `event` and `request`: ucma_on_event, ucma_on_request */
	/*
	 * True: the process may name the QPN in a message. It has leased or added the QPN, or the
	 * QPN is in block 0, which is never leased, and no HCA's queue pair has it. Processes in
	 * PID namespaces that the daemon does not see all have the PID 0, so the daemon
	 * distinguishes their users only.
	 */
	bool (*may_name_qpn)(void *ctx, pid_t pid, uid_t user, uint32_t qpn);
	/* True: the process has leases of an earlier daemon that it has not claimed yet. */
	bool (*has_claimable_leases)(void *ctx, pid_t pid);
};

struct ucma {
	struct cma cma;
	const struct ucma_ops *ops;
	void *ctx;
	int listen_fd;
	struct accept_pause pause;
	int epoll_fd;   /* the daemon watches it, and calls ucma_input */
	uint32_t n;     /* files that are connected */
	uint32_t limit; /* of n (quota.h) */
	uint32_t n_ended;
	uint32_t n_departed;       /* files that are departed (forget_at) */
	uint32_t next_group;       /* bits 0 to 30: the number to try for the next group */
	struct user_counts groups; /* multicast groups that the IDs of each user have joined */
	struct log_ratelimit log;  /* for refused processes */
	struct ucma_file_list files;
	struct slot_file store;
	struct ucma_ctx_list dirty;
	struct ucma_file_list to_send; /* files that have unsent events, or an unsent answer */
	uint64_t next_sequence;        /* sequence number of the next event */
	/*
	 * ns; when ucma_tick gives up the files that no program has claimed: a file ends, or
	 * departs (ucma_file.forget_at) if its program may be restored or may claim it again. A
	 * file whose process has ended is given up earlier. UINT64_MAX: before ucma_begin_claims,
	 * or if no file but departed ones is unclaimed.
	 */
	uint64_t claim_deadline;
	uint64_t next_claim_check; /* ns; when to end the unclaimed files of ended processes */
};

/*
 * Restores what an earlier daemon has recorded, and listens. u is zeroed. Returns 0 or a negative
 * errno value; on error nothing is left to close.
 */
int ucma_open(struct ucma *u, const char *run_dir, uint64_t now, const struct host *host,
	      struct neigh *neigh, const struct ucma_ops *ops, void *ctx);
/* Call it when the daemon begins to serve programs: for UCMA_CLAIM_TIME_NS from `now` on they may
 * claim the files that ucma_open has restored. */
void ucma_begin_claims(struct ucma *u, uint64_t now);
/*
 * Closes all files, after it has recorded the state of all programs for the next daemon. A zeroed
 * structure is accepted.
 */
void ucma_close(struct ucma *u, const char *run_dir);
/* Handles the events of epoll_fd. */
void ucma_input(struct ucma *u, uint64_t now);
/* Handles expired timers; returns the time of the next call in ns, UINT64_MAX = never. */
uint64_t ucma_tick(struct ucma *u, uint64_t now);
struct ucma_file *ucma_file_new(struct ucma *u);
/*
 * Returns a file of that user whose IDs ucma_tick destroys: for IDs that cannot be destroyed at
 * once. NULL: no memory.
 */
struct ucma_file *ucma_ended_file(struct ucma *u, uid_t user);
/* The file with that token, if its program is connected and was sent the welcome; NULL: none. */
struct ucma_file *ucma_find_file(const struct ucma *u, uint64_t token);
/*
 * True: the process has a frozen file without a connection, other than one that it restores from
 * records. Then it may claim its QPN leases later than other processes. The process may have ended.
 */
bool ucma_has_frozen_file(const struct ucma *u, pid_t pid);
/*
 * Whether the file's frozen program has ended, and the daemon keeps the file's IDs for the
 * program's restoration. For a file of an earlier daemon this function itself looks whether the
 * process lives, because ucma_tick looks only every 50 ms.
 */
bool ucma_file_awaits_restoration(const struct ucma_file *file);
/* Destroys a file that awaits its restoration, in one call. The daemon sends nothing to the peers
 * of the file's IDs. */
void ucma_file_forget(struct ucma_file *file);

/* --- ucma_ctx.c: IDs and multicast groups. */
/* For ucma_ops.cma: queue events for the program that has the ID. */
void ucma_on_event(struct cma_id *id, const struct cma_event *cma_event);
bool ucma_on_request(struct cma_id *listener, struct cma_id *id, const struct cma_event *request);
/*
 * Adds an ID to the file; uid 0 = a request that was not accepted yet. The caller sets the result's
 * `id`. NULL: no memory.
 */
struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid);
/* Call it when cma_accept has accepted a request: the ID's events carry this user context from now
 * on, and the ID no longer counts as a request. */
void ucma_ctx_accept(struct ucma_ctx *ctx, uint64_t uid);
/* False: the file's user has used up the quota of CMA_IDS (quota.h). */
bool ucma_can_create_id(const struct ucma_file *creator);
/* False: the file's user has used up the quota of UCMA_EVENTS (quota.h). */
bool ucma_can_queue_event(const struct ucma_file *file);
/* Destroys an ID: ctx->id, its groups and events, and the new IDs of its queued requests; these
 * later if QP1's queue has no room. */
void ucma_ctx_destroy(struct ucma_ctx *ctx);
/* Moves an ID, its events, and the new IDs of its queued requests to another file. */
void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to);
/*
 * Joins an ID to a group, whose number it sets, and queues the event MULTICAST_JOIN. -ENOSPC: the
 * user's quota of groups is used up; -ENOMEM.
 */
int ucma_group_join(struct ucma_ctx *ctx, uint64_t uid, const uint8_t mgid[16], uint32_t *number);
/*
 * Adds a group that the ID has joined, and queues no event. Errors as of ucma_group_join. slot: of
 * a group of an earlier daemon, for which the quota does not matter; else SLOT_FILE_NONE.
 */
int ucma_group_add(struct ucma_ctx *ctx, uint32_t number, uint64_t uid, uint32_t events_reported,
		   uint32_t slot);
/* NULL: no ID of this file has joined a group with that number. */
struct ucma_group *ucma_find_group(const struct ucma_file *file, uint32_t number);
void ucma_group_leave(struct ucma_group *group);
/* Removes a queued event, and destroys the ID of the request that it reports: at once, or by
 * ucma_tick if QP1's queue has no room for the refusal. */
void ucma_drop_event(struct ucma_file *file, struct ucma_event *event);

/* --- ucma_events.c: the queue of events, and packets to the programs. */
void ucma_event_add(struct ucma_file *file, struct ucma_event *event);
/*
 * Queues an event that an earlier daemon has recorded, by its sequence number; such events come in
 * any order.
 */
void ucma_event_restore(struct ucma_file *file, struct ucma_event *event);
/* Takes an event out of the queue; the caller frees it or adds it elsewhere. */
void ucma_event_withdraw(struct ucma_file *file, struct ucma_event *event);
/*
 * Removes an event from its ID for good. Frees it now, or once the program has skipped the packet
 * that was sent.
 */
void ucma_event_cancel(struct ucma_file *file, struct ucma_event *event);
/*
 * Call it when the event changes. If the event is in a sent packet, all packets that the program
 * has not fetched become invalid, and are sent again.
 */
void ucma_event_resend(struct ucma_file *file, const struct ucma_event *event);
/*
 * Call it when a command changes the ID: sent packets become invalid and are sent again if they
 * carry replies (ucma_reply_cache.c) about the ID.
 */
void ucma_ctx_resend_events(struct ucma_ctx *ctx);
/*
 * Removes all events up to that sequence number, which the program has fetched, and counts them in
 * events_reported.
 */
void ucma_drop_fetched_events(struct ucma_file *file, uint64_t sequence);
/* Makes the next ucma_flush send the file's unsent events. */
void ucma_events_queue_send(struct ucma_file *file);
/*
 * Records all changes, then sends the events, and the answers that are late: a program must not see
 * an unrecorded change, unless the change cannot be written. Returns the time of the next call in
 * ns if changes could not be written, or something could not be sent for lack of memory or of
 * epoll watches; else UINT64_MAX.
 */
uint64_t ucma_flush(struct ucma *u);
/*
 * Sends file->answer. If the kernel lacks memory for it, ucma_flush sends it later; the program
 * waits, because the command was executed and must not be repeated. Returns 0, or a negative errno
 * value: the caller closes the file.
 */
int ucma_send_answer(struct ucma_file *file);
/* Handles EPOLLOUT of an event socket. False: `what`, the epoll data, is not the tag of one. */
bool ucma_events_epoll(struct ucma *u, void *what);
/*
 * Makes the event socket. The program gets both ends (enum cm_attach_fd); the daemon's is also
 * file->event_fd. The caller closes ends[CM_ATTACH_EVENTS]. Returns 0 or a negative errno value.
 */
int ucma_events_open(struct ucma_file *file, int ends[UNIX_PACKET_FDS]);
void ucma_events_close(struct ucma_file *file);

/* --- ucma_store.c: the slot file from which the next daemon restores files, IDs and events. */
int ucma_store_open(struct ucma *u, const char *run_dir);
void ucma_store_close(struct ucma *u, const char *run_dir);
void ucma_store_file(struct ucma_file *file);
void ucma_store_group(struct ucma_group *group);
void ucma_store_event(struct ucma_event *event);
/* Makes the next ucma_store_write_dirty record the ID. */
void ucma_store_mark_dirty(struct ucma_ctx *ctx);
/* Returns the time of the next call in ns if records could not be written; else UINT64_MAX. */
uint64_t ucma_store_write_dirty(struct ucma *u);

/* --- ucma_checkpoint.c: programs that are saved, and go on here or on another host. */
/* Runs a command from CM_ATTACH_FREEZE to CM_ATTACH_THAW; result as of ucma_run_command. */
struct ucma_command;
int ucma_run_checkpoint(struct ucma_command *c);
/*
 * Call it when an ID leaves the file, or a record of the file cannot be written. If CM_ATTACH_SAVE
 * has returned some records, but not all, that command fails with -EBUSY until the next
 * CM_ATTACH_FREEZE.
 */
void ucma_file_break_save(struct ucma_file *file);
/* Freezes all IDs of the file (cma_freeze), or thaws them; the file sends no events meanwhile. */
void ucma_file_freeze(struct ucma_file *file);
void ucma_file_thaw(struct ucma_file *file);

/* A command of a program, and the buffer for its response. */
struct ucma_command {
	struct ucma_file *file;
	uint32_t number;
	const uint8_t *in;
	uint32_t in_size;
	uint64_t token;
	bool again;        /* cm_attach_command.again */
	uint8_t *out;      /* CM_ATTACH_BYTES of room */
	uint32_t out_size; /* bytes of the program's buffer */
	uint32_t out_len;  /* set by the command: bytes of the response */
	/*
	 * The file whose `stale` the reply reports: `file`, or the one from which MIGRATE_ID takes
	 * an ID.
	 */
	struct ucma_file *withdrawn_from;
	/* Set by ucma_run_command: */
	const void *request; /* `in`, filled up with zeroes */
	/* The ID that the request names; NULL: the command finds it itself (ucma_cmd.c). */
	struct ucma_ctx *ctx;
};

/* --- ucma_cmd.c: returns 0 or a negative errno value, the status for the program. */
int ucma_run_command(struct ucma_command *c);

/*
 * --- ucma_reply_cache.c: replies that an event's packet carries to the commands that librdmacm
 * sends next, which saves their round trips to the daemon. Returns the bytes written, at most
 * CM_ATTACH_CACHED; 0: no replies.
 */
uint32_t ucma_reply_cache_fill(const struct ucma_event *event, uint8_t *out);
/* The ID that the event's cached replies are about; NULL: the event carries none. */
const struct ucma_ctx *ucma_reply_cache_ctx(const struct ucma_event *event);

/* --- ucma_resp.c: fills the structures of rdma/rdma_user_cm.h from an ID. */
void ucma_fill_event(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		     const struct cma_event *event);
/* Fills an event MULTICAST_JOIN. */
void ucma_fill_join(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		    const uint8_t mgid[16]);
void ucma_fill_route(struct rdma_ucm_query_route_resp *resp, const struct cma_id *id);
void ucma_fill_addr(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* Fills both addresses of the ID, as AF_IB. */
void ucma_fill_gid(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* Fills the path of the ID's route. Returns the number of paths, 0 or 1. */
uint32_t ucma_fill_path(struct rdma_ucm_query_path_resp *resp, struct ib_path_rec_data *data,
			const struct cma_id *id);
/*
 * Reads the traffic class of the path that a program sets. -EINVAL: none of the n paths is primary
 * and bidirectional.
 */
int ucma_read_path(const struct ib_path_rec_data *data, uint32_t n, uint8_t *traffic_class);
/*
 * For a UD ID, or an ID without a connection, fills the attributes of INIT, whatever `state` is;
 * else those of `state`: INIT, RTR or RTS. -EINVAL: the ID has no device, or is a listener for RC
 * or UC; there is no such state; with a connection also: another state, the connection has ended,
 * or, for RTR and RTS, the peer's QPN is not known yet.
 */
int ucma_fill_qp_attr(struct ib_uverbs_qp_attr *attr, const struct cma_id *id, uint32_t state);

#endif
