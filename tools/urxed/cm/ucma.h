/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's replacement for the kernel's rdma_ucm module. Programs that have opened
 * /dev/infiniband/rdma_cm send commands on a socket, and get responses and events
 * (cm/attach_protocol.h, with the layouts of rdma/rdma_user_cm.h). The IDs of a program end with
 * the program, but survive a restart of the daemon: a slot file records them. Only the daemon's
 * thread calls these functions.
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

#define UCMA_BACKLOG_MAX 1024 /* as the kernel's default of net.rdma_ucm.max_backlog */
/* 1/8 of a listener's backlog is reserved for senders whose MAC was confirmed by ARP or neighbour
 * discovery. Otherwise requests with invented sender addresses could fill the whole backlog. */
#define UCMA_RESERVE 8
/* Limit of the multicast groups that all IDs have joined; each user has a quota of it (quota.h). */
#define UCMA_GROUPS 4096
/* Number of IDs and events of an ended program that the daemon destroys in one step. It is limited,
 * because other programs wait meanwhile. */
#define UCMA_END_STEP 512
/* Number of connections that the daemon accepts in one call: clients that connect without end must
 * not keep the daemon from other work. */
#define UCMA_ACCEPTS 16
/* An ID with this many events that its program has not fetched may not resolve another address. */
#define UCMA_EVENTS_MAX 64
/* Limit of the events of all IDs that programs have not fetched. If a user's quota of it (quota.h)
 * is used up, none of the user's IDs may resolve another address. */
#define UCMA_EVENTS 131072
/* Limit of the new IDs of requests that the programs of one user have neither accepted nor
 * destroyed. It also applies to users without quota, because other hosts cause the requests. */
#define UCMA_REQUESTS_MAX 16384
#define UCMA_STORE_NAME   "urxed.ids"
/*
 * Time for which a new daemon keeps the IDs that an earlier one has recorded for running programs,
 * and for which it keeps them after a claim whose connection ended before the program's first
 * command.
 */
#define UCMA_CLAIM_TIME_NS 3000000000ull

/* Time for which the daemon keeps the IDs of a program that has ended while frozen. */
#define UCMA_DEPARTED_NS (CM_ATTACH_DEPARTED_S * UINT64_C(1000000000))

struct ucma_file;
struct ucma_ctx;

/* A multicast group that an ID has joined. */
struct ucma_group {
	struct ucma_ctx *ctx;
	uid_t user;      /* the user whose quota counts the group, even in another user's file */
	uint32_t number; /* the `id` in the program's LEAVE_MCAST command */
	uint64_t uid;    /* the program's user context, returned in the group's events */
	uint32_t events_reported;
	uint32_t slot; /* number of its slot in ucma.store */
	LIST_ENTRY(ucma_group) link;
};
LIST_HEAD(ucma_group_list, ucma_group);

struct ucma_event;
TAILQ_HEAD(ucma_event_list, ucma_event);

/* One rdma_cm ID of a program. */
struct ucma_ctx {
	struct ucma_file *file;
	struct cma_id *id;
	uint64_t uid; /* the program's user context; 0 = the ID of a request not yet accepted */
	uint32_t events_reported;
	uint32_t backlog; /* listener: number of further requests that may wait */
	uint32_t reserve; /* listener: the places of the backlog that only confirmed senders get */
	uint32_t n_events;
	struct ucma_event_list events; /* queued events that count for this ID, oldest first */
	struct ucma_event *request; /* the queued CONNECT_REQUEST that created this ID, or NULL */
	struct ucma_group_list groups;
	uint32_t slot; /* number of its slot in ucma.store */
	bool dirty;    /* changed since its slot was written */
	LIST_ENTRY(ucma_ctx) link;
	LIST_ENTRY(ucma_ctx) dirty_link;
};
LIST_HEAD(ucma_ctx_list, ucma_ctx);

struct ucma_event {
	struct ucma_ctx *ctx;     /* the ID whose events_reported counts the event */
	struct ucma_group *group; /* the group whose events_reported also counts it; NULL = none */
	struct ucma_ctx *child;   /* CONNECT_REQUEST: the new ID; NULL = it is destroyed */
	struct rdma_ucm_event_resp resp;
	uint64_t sequence; /* increases from event to event */
	uint32_t slot;     /* number of its slot in ucma.store */
	bool sent;         /* a packet with the event is in the program's socket, read or not */
	bool cancelled;    /* the event's ID or group is gone; the program will skip the packet */
	TAILQ_ENTRY(ucma_event) link;     /* in the events of the file */
	TAILQ_ENTRY(ucma_event) ctx_link; /* in the events of the ID */
};

/* Values of ucma_save_cursor.kind beside enum ucma_record_kind. */
#define UCMA_SAVE_COMPLETE (UINT32_MAX - 1) /* all records were saved */
/* An ID has left the file meanwhile, or a record could not be written. */
#define UCMA_SAVE_BROKEN UINT32_MAX

/* The record that CM_ATTACH_SAVE last returned for a frozen file. All 0: it has returned none. */
struct ucma_save_cursor {
	uint32_t kind;        /* kind of that record; 0 = none; or one of UCMA_SAVE_* */
	struct ucma_ctx *ctx; /* the ID of that record, or of its group */
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
 * by which the program claims its restored or departed file (forget_at); the claimed file then
 * takes over that connection.
 */
struct ucma_file {
	struct ucma *ucma;
	int fd;       /* command socket; -1: restored and not yet claimed, departed, or ended */
	int event_fd; /* event socket, with a packet for each event; -1 before the welcome */
	uint32_t n_events;
	uint32_t sent;             /* number of sent events, which are the first ones */
	struct ucma_event *unsent; /* the first event that is not yet sent; NULL = none */
	bool ended;     /* given up: ucma_tick destroys the file's IDs and events, then the file */
	bool frozen;    /* saved or restored, until the thaw: sends no events, and runs only the
			   commands of ucma_checkpoint.c */
	bool restoring; /* frozen, because the program restores it from records */
	/* The program has claimed the file, but has sent no command since, so it may not have
	 * received the welcome. If the connection ends now and the program lives, the file departs,
	 * so that the program can claim it again. */
	bool unconfirmed;
	/* Time at which the daemon gives up a departed file, ns; 0: not departed. A file departs if
	 * its program ended while frozen, or may not have received the welcome to its claim. */
	uint64_t forget_at;
	struct ucma_save_cursor save_cursor;
	struct ucma_answer answer; /* the reply to the last command */
	/* Bytes of `answer` that the daemon still has to send, because the kernel had no memory; 0:
	 * none. */
	uint32_t answer_len;
	uint32_t stale;       /* sent packets that the current command has made invalid */
	uint32_t n_cancelled; /* events that the current command has cancelled */
	uint64_t cancelled[CM_ATTACH_CANCELLED]; /* their sequence numbers */
	uint32_t to_skip;   /* cancelled events whose packets the program has yet to skip */
	bool send_queued;   /* in ucma.to_send */
	bool event_fd_full; /* the event socket is full, and watched for EPOLLOUT */
	uint64_t fetched;   /* claimant: sequence number of the last event the program fetched */
	pid_t pid;
	uid_t user;
	char name[PROCESS_NAME];
	/* The process had CAP_NET_BIND_SERVICE when it opened the device, and runs as root or as
	 * the daemon's user, so it may bind ports below CMA_PORT_UNPRIVILEGED. */
	bool low_ports;
	uint64_t token; /* names the file in the program's claim at the next daemon */
	uint64_t start; /* process_identity() of the process; 0 = unknown */
	uint32_t slot;  /* number of its slot in ucma.store */
	/* Claimant: the file that takes over the claimant's connection once the program has claimed
	 * its QPN leases. */
	struct ucma_file *claimed_file;
	uint32_t n_ctxs;
	uint32_t n_requests; /* those of n_ctxs that are of requests not yet accepted */
	struct ucma_ctx_list ctxs;
	struct ucma_event_list events;
	LIST_ENTRY(ucma_file) link;
	LIST_ENTRY(ucma_file) send_link;
};
LIST_HEAD(ucma_file_list, ucma_file);

struct ucma_ops {
	struct cma_ops cma; /* `event` and `request`: ucma_on_event, ucma_on_request */
	/*
	 * Whether the process may name the QPN in a message. It may if it has leased or added the
	 * QPN. It also may if the QPN is in block 0, which is never leased, and no process has
	 * added it. If another urxed may use this device as its HCA, it also may name other QPNs
	 * that no process has (rdmacm.c). All processes in PID namespaces that the daemon does not
	 * see have the PID 0, so among these the daemon distinguishes only the users.
	 */
	bool (*may_name_qpn)(void *ctx, pid_t pid, uid_t user, uint32_t qpn);
	/* Whether the process has leases that it may claim, and has not claimed yet. */
	bool (*has_claimable_leases)(void *ctx, pid_t pid);
};

struct ucma {
	struct cma cma;
	const struct ucma_ops *ops;
	void *ctx;
	int listen_fd;
	struct accept_pause pause;
	int epoll_fd;   /* the daemon watches it, and calls ucma_input when it is readable */
	uint32_t n;     /* number of files that are connected */
	uint32_t limit; /* maximum of n (quota.h) */
	uint32_t n_ended;
	uint32_t n_departed;       /* number of departed files (forget_at) */
	uint32_t next_group;       /* bits 0 to 30: the number to try for the next group */
	struct user_counts groups; /* multicast groups that the IDs of each user have joined */
	struct log_ratelimit log;  /* for refused processes */
	struct ucma_file_list files;
	struct slot_file store;
	struct ucma_ctx_list dirty;
	struct ucma_file_list to_send; /* files that have unsent events, or an unsent answer */
	uint64_t next_sequence;        /* sequence number of the next event */
	/*
	 * Time at which ucma_tick gives up the files that no program has claimed, ns: such a file
	 * ends, or departs (ucma_file.forget_at) if its program may be restored or may claim it
	 * again. If its process has ended, ucma_tick gives the file up earlier. UINT64_MAX: before
	 * ucma_begin_claims, or if only departed files are unclaimed.
	 */
	uint64_t claim_deadline;
	uint64_t next_claim_check; /* next search for unclaimed files of dead processes, ns */
};

/* Restores what an earlier daemon has recorded, and listens for programs. u is zeroed. Returns 0 or
 * a negative errno value; on error the caller has nothing to close. */
int ucma_open(struct ucma *u, const char *run_dir, uint64_t now, const struct host *host,
	      struct neigh *neigh, const struct ucma_ops *ops, void *ctx);
/* Call it when the daemon begins to serve programs: for UCMA_CLAIM_TIME_NS from `now` on they may
 * claim the files that ucma_open has restored. */
void ucma_begin_claims(struct ucma *u, uint64_t now);
/* Records the state of all programs for the next daemon, then closes all files. Accepts a zeroed
 * structure. */
void ucma_close(struct ucma *u, const char *run_dir);
/* Handles the events of u->epoll_fd. */
void ucma_input(struct ucma *u, uint64_t now);
/* Handles expired timers; returns the time of the next call in ns, UINT64_MAX: no timer runs. */
uint64_t ucma_tick(struct ucma *u, uint64_t now);
struct ucma_file *ucma_file_new(struct ucma *u);
/* Returns an ended file of that user, which takes IDs that cannot be destroyed at once: ucma_tick
 * destroys them with the file. NULL: memory is lacking. */
struct ucma_file *ucma_ended_file(struct ucma *u, uid_t user);
/*
 * Returns the file with that token whose program is connected and was sent the welcome; NULL: none.
 */
struct ucma_file *ucma_find_file(const struct ucma *u, uint64_t token);
/*
 * Returns whether the process, which may have ended, has a frozen file without a connection, other
 * than one that it restores from records. Such a process may claim its QPN leases later than
 * others.
 */
bool ucma_has_frozen_file(const struct ucma *u, pid_t pid);
/*
 * Whether the file's program has ended while frozen, and the daemon keeps the file's IDs so that
 * the program can be restored. For a file of an earlier daemon this function itself checks whether
 * the process lives, because ucma_tick checks only every 50 ms.
 */
bool ucma_file_awaits_restoration(const struct ucma_file *file);
/* Destroys a file that awaits its restoration, with all its IDs in one call. The daemon sends
 * nothing to the peers of the IDs. */
void ucma_file_forget(struct ucma_file *file);

/* --- ucma_ctx.c: IDs and multicast groups. */
/* For ucma_ops.cma: these queue an event for the program that owns the ID or the listener. */
void ucma_on_event(struct cma_id *id, const struct cma_event *cma_event);
bool ucma_on_request(struct cma_id *listener, struct cma_id *id, const struct cma_event *request);
/* Adds an ID to the file; uid 0 = the ID of a request not yet accepted. The caller sets the
 * result's `id`. NULL: memory is lacking. */
struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid);
/* Call it when cma_accept has accepted a request: from now on the ID's events carry the user
 * context `uid`, and the ID no longer counts as a request. */
void ucma_ctx_accept(struct ucma_ctx *ctx, uint64_t uid);
/* Returns false if the file's user has used up the quota of CMA_IDS (quota.h). */
bool ucma_can_create_id(const struct ucma_file *creator);
/* Returns false if the file's user has used up the quota of UCMA_EVENTS (quota.h). */
bool ucma_can_queue_event(const struct ucma_file *file);
/* Destroys an ID: ctx->id, its groups and events, and the new IDs of its queued requests. If QP1's
 * queue has no room, ucma_tick destroys these new IDs later. */
void ucma_ctx_destroy(struct ucma_ctx *ctx);
/* Moves an ID, its events, and the new IDs of its queued requests to another file. */
void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to);
/* Joins an ID to a group, sets *number to the group's number, and queues the event MULTICAST_JOIN.
 * Returns -ENOSPC if the user's quota of groups is used up, or -ENOMEM. */
int ucma_group_join(struct ucma_ctx *ctx, uint64_t uid, const uint8_t mgid[16], uint32_t *number);
/*
 * Adds a group that the ID has already joined, and queues no event. Errors as of ucma_group_join.
 * slot: the slot of a group that an earlier daemon recorded, which ignores the quota; otherwise
 * SLOT_FILE_NONE.
 */
int ucma_group_add(struct ucma_ctx *ctx, uint32_t number, uint64_t uid, uint32_t events_reported,
		   uint32_t slot);
/* Returns NULL if no ID of this file has joined a group with that number. */
struct ucma_group *ucma_find_group(const struct ucma_file *file, uint32_t number);
void ucma_group_leave(struct ucma_group *group);
/* Removes a queued event, and destroys the new ID of a request that the event reports. If QP1's
 * queue has no room for the rejection, ucma_tick destroys the ID later. */
void ucma_drop_event(struct ucma_file *file, struct ucma_event *event);

/* --- ucma_events.c: the queue of events, and packets to the programs. */
void ucma_event_add(struct ucma_file *file, struct ucma_event *event);
/* Queues an event that an earlier daemon has recorded. Such events come in any order, so this
 * function inserts the event by its sequence number. */
void ucma_event_restore(struct ucma_file *file, struct ucma_event *event);
/* Takes an event out of the queue; the caller then frees the event or adds it elsewhere. */
void ucma_event_withdraw(struct ucma_file *file, struct ucma_event *event);
/* Removes an event from its ID for good. If it was sent, makes the program skip its packet, and
 * frees the event after that. If the program cannot skip more packets, all packets that it has not
 * fetched become invalid, the other events are sent again, and the event is freed now. */
void ucma_event_cancel(struct ucma_file *file, struct ucma_event *event);
/* Call it when the content of the event changes. If a packet with the event was sent, all packets
 * that the program has not fetched become invalid, and are sent again. */
void ucma_event_resend(struct ucma_file *file, const struct ucma_event *event);
/* Call it when a command changes the ID. If sent packets carry replies (ucma_reply_cache.c) about
 * the ID, the packets become invalid and are sent again. */
void ucma_ctx_resend_events(struct ucma_ctx *ctx);
/* Removes all events up to that sequence number, because the program has fetched them, and counts
 * them in events_reported. */
void ucma_drop_fetched_events(struct ucma_file *file, uint64_t sequence);
/* Makes the next ucma_flush send the file's unsent events. */
void ucma_events_queue_send(struct ucma_file *file);
/*
 * Records all changes, then sends the queued events, and late replies: a program must see no change
 * that is not recorded, unless the record cannot be written. If records could not be written, or if
 * memory or epoll watches were lacking, returns the time of the next call in ns; else UINT64_MAX.
 */
uint64_t ucma_flush(struct ucma *u);
/*
 * Sends file->answer. If the kernel lacks memory for it, ucma_flush sends it later; the program
 * waits for it, because it must not repeat the command, which was executed. Returns 0, or a
 * negative errno value after which the caller closes the file.
 */
int ucma_send_answer(struct ucma_file *file);
/* Handles EPOLLOUT of an event socket. Returns false if `what`, the epoll data, is not an event
 * socket's tag. */
bool ucma_events_epoll(struct ucma *u, void *what);
/* Makes the event socket. The program gets both ends (enum cm_attach_fd); the daemon's end is also
 * file->event_fd. The caller closes ends[CM_ATTACH_EVENTS]. Returns 0 or a negative errno value. */
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
/* Writes the records of all dirty IDs. Returns the time of the next call in ns if some could not be
 * written; else UINT64_MAX. */
uint64_t ucma_store_write_dirty(struct ucma *u);

/* --- ucma_checkpoint.c: programs that are saved, and go on here or on another host. */
/* Runs a command from CM_ATTACH_FREEZE to CM_ATTACH_THAW; result as of ucma_run_command. */
struct ucma_command;
int ucma_run_checkpoint(struct ucma_command *c);
/*
 * Call it when an ID leaves the file, or a record of the file cannot be written. If CM_ATTACH_SAVE
 * has returned some records of the file but not all, further CM_ATTACH_SAVE fail with -EBUSY until
 * the next CM_ATTACH_FREEZE.
 */
void ucma_file_break_save(struct ucma_file *file);
/* ucma_file_freeze freezes all IDs of the file (cma_freeze), and ucma_file_thaw thaws them; in
 * between the file sends no events. */
void ucma_file_freeze(struct ucma_file *file);
void ucma_file_thaw(struct ucma_file *file);

/* A command of a program, and the buffer for its response. */
struct ucma_command {
	struct ucma_file *file;
	uint32_t number;
	const uint8_t *in;
	uint32_t in_size;
	uint64_t token;
	bool again;        /* the program repeats the command (cm_attach_command.again) */
	uint8_t *out;      /* room for CM_ATTACH_BYTES bytes */
	uint32_t out_size; /* size of the program's buffer, bytes */
	uint32_t out_len;  /* length of the response in bytes; the command sets it */
	/* The file whose `stale` the reply reports: `file`, or for MIGRATE_ID the file that loses
	 * an ID. */
	struct ucma_file *withdrawn_from;
	/* ucma_run_command sets the members below. */
	const void *request; /* `in`, extended by zeros */
	/* The ID that the request names; NULL: the command itself finds it (ucma_cmd.c). */
	struct ucma_ctx *ctx;
};

/* --- ucma_cmd.c: returns 0 or a negative errno value, the status for the program. */
int ucma_run_command(struct ucma_command *c);

/*
 * --- ucma_reply_cache.c: an event's packet also carries replies to the commands that librdmacm
 * sends next, which saves their round trips to the daemon. Returns the number of bytes written, at
 * most CM_ATTACH_CACHED; 0: no replies.
 */
uint32_t ucma_reply_cache_fill(const struct ucma_event *event, uint8_t *out);
/* Returns the ID that the event's cached replies are about; NULL: the event carries no replies. */
const struct ucma_ctx *ucma_reply_cache_ctx(const struct ucma_event *event);

/* --- ucma_resp.c: fills the structures of rdma/rdma_user_cm.h from an ID. */
void ucma_fill_event(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		     const struct cma_event *event);
/* Fills an event MULTICAST_JOIN. */
void ucma_fill_join(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		    const uint8_t mgid[16]);
void ucma_fill_route(struct rdma_ucm_query_route_resp *resp, const struct cma_id *id);
void ucma_fill_addr(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* Fills both addresses of the ID as AF_IB addresses. */
void ucma_fill_gid(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* Fills the path of the ID's route. Returns the number of paths, 0 or 1. */
uint32_t ucma_fill_path(struct rdma_ucm_query_path_resp *resp, struct ib_path_rec_data *data,
			const struct cma_id *id);
/* Reads the traffic class of the path record that a program sets. Returns -EINVAL if none of the n
 * path records has the flags IB_PATH_GMP, IB_PATH_PRIMARY and IB_PATH_BIDIRECTIONAL, and no
 * others. */
int ucma_read_path(const struct ib_path_rec_data *data, uint32_t n, uint8_t *traffic_class);
/*
 * Fills QP attributes. For a UD ID, or an ID without a connection, fills those of INIT, whatever QP
 * state `state` is; otherwise those of `state`: INIT, RTR or RTS. Returns -EINVAL if `state` is no
 * QP state, or if the ID has no device, or is a listener for RC or UC. With a connection, also
 * returns -EINVAL for another state, if the connection has ended, or, for RTR and RTS, if the
 * peer's QPN is not known yet.
 */
int ucma_fill_qp_attr(struct ib_uverbs_qp_attr *attr, const struct cma_id *id, uint32_t state);

#endif
