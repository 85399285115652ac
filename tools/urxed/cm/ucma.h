/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel's rdma_ucm module does with /dev/infiniband/rdma_cm, for the programs
 * that have it open: commands in, responses and events out (cm/attach.h, and the layouts of
 * rdma/rdma_user_cm.h). A program that goes takes its IDs with it.
 */
#ifndef URXE_URXED_CM_UCMA_H
#define URXE_URXED_CM_UCMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <cm/attach.h>
#include <rdma/rdma_user_cm.h>

#include "common/log.h"
#include "urxed/cm/cma.h"
#include "urxed/session/process_info.h"
#include "urxed/session/slot_file.h"

#define UCMA_BACKLOG_MAX 1024 /* net.rdma_ucm.max_backlog */
#define UCMA_STORE_NAME  "urxed.ids"
/* How long a new daemon keeps what survivors of the one before have. */
#define UCMA_CLAIM_NS 3000000000ull

struct ucma_file;
struct ucma_ctx;

/* A group that an ID has joined. */
struct ucma_group {
	struct ucma_ctx *ctx;
	uint32_t number; /* by which the program leaves it */
	uint64_t uid;
	uint32_t events_reported;
	uint32_t slot; /* on record */
	LIST_ENTRY(ucma_group) link;
};
LIST_HEAD(ucma_group_list, ucma_group);

/* An ID, as the program has it. */
struct ucma_ctx {
	struct ucma_file *file;
	struct cma_id *id;
	uint64_t uid; /* the program's name for it; 0 = it has none yet */
	uint32_t events_reported;
	uint32_t backlog;           /* requests that may still wait for a listener */
	uint32_t events;            /* of its own that nobody has fetched yet */
	struct ucma_event *request; /* that it came with, as long as nobody has fetched it */
	struct ucma_group_list groups;
	uint32_t slot; /* on record */
	bool dirty;    /* it is not what is on record */
	LIST_ENTRY(ucma_ctx) link;
	LIST_ENTRY(ucma_ctx) dirty_link;
};
LIST_HEAD(ucma_ctx_list, ucma_ctx);

struct ucma_event {
	struct ucma_ctx *ctx;     /* whose event it is */
	struct ucma_group *group; /* and counts as this one's, if it is still joined; else NULL */
	struct ucma_ctx *child;   /* CONNECT_REQUEST: the new ID, if it is still there */
	struct rdma_ucm_event_resp resp;
	uint64_t order; /* counts up */
	uint32_t slot;  /* on record */
	bool sent;      /* its packet is out */
	TAILQ_ENTRY(ucma_event) link;
};
TAILQ_HEAD(ucma_event_list, ucma_event);

/* An open device. */
struct ucma_file {
	struct ucma *ucma;
	int fd;                    /* of commands; -1: whose it was may still claim it */
	int event_fd;              /* -1 before the hello; a packet for each event */
	uint32_t sent;             /* events whose packets are out, the first ones */
	struct ucma_event *unsent; /* the next one; NULL: all are out */
	uint32_t stale; /* packets that are out and are to be taken back, of this command's doing */
	bool send_queued;   /* it is in the list of those */
	bool event_fd_full; /* the bell has no room, and is watched for it */
	uint64_t fetched;   /* by the hello of who claims a file */
	pid_t pid;
	uid_t user;
	char name[PROCESS_NAME];
	bool low_ports; /* by user and capabilities of the process when it opened the device */
	uint64_t token;
	uint64_t start;           /* of the process, in clock ticks since boot; 0 = unknown */
	uint32_t slot;            /* on record */
	struct ucma_file *claims; /* which one this is to be, once its queue pairs are there */
	uint32_t n_ctxs;
	struct ucma_ctx_list ctxs;
	struct ucma_event_list events;
	LIST_ENTRY(ucma_file) link;
	LIST_ENTRY(ucma_file) send_link;
};
LIST_HEAD(ucma_file_list, ucma_file);

struct ucma_ops {
	/* The connection manager's way out. */
	void (*send)(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN]);
	/* Whether a process holds a queue pair number, which it may then connect. */
	bool (*holds)(void *ctx, pid_t pid, uint32_t qpn);
	/* Whether a process may still claim queue pair numbers that an earlier daemon gave it. */
	bool (*awaited)(void *ctx, pid_t pid);
};

struct ucma {
	struct cma cma;
	const struct ucma_ops *ops;
	void *ctx;
	int listen_fd;
	int epoll_fd;   /* to be watched by the daemon */
	uint32_t n;     /* of files that somebody has */
	uint32_t limit; /* of n, for users who have a share */
	uint32_t last_group;
	struct log_ratelimit log; /* for those who are refused */
	struct ucma_file_list files;
	struct slot_file store;
	struct ucma_ctx_list dirty;
	struct ucma_file_list to_send; /* that have events for which no packet is out */
	uint64_t last_event;           /* its order */
	uint64_t claims_until; /* when files that nobody has claimed go; UINT64_MAX: there are none
				*/
	uint64_t look_at;      /* when to look which of those processes have ended */
};

/*
 * With what an earlier daemon has left on record. 0, or a negative errno value; then nothing is
 * left. u is all 0.
 */
int ucma_open(struct ucma *u, const char *run_dir, uint64_t now, const struct host *host,
	      struct neigh *neigh, const struct ucma_ops *ops, void *ctx);
/* Leaves on record what programs have. Also for one that is all 0. */
void ucma_close(struct ucma *u, const char *run_dir);
/* Handles what its descriptors have. */
void ucma_input(struct ucma *u, uint64_t now);
/* Does what is due; returns when to call again, UINT64_MAX = never. */
uint64_t ucma_tick(struct ucma *u, uint64_t now);

/* For ucma_cmd.c. */
struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid);
/* Whether the file's user may have another ID: each has a share of CMA_IDS. */
bool ucma_may_have_id(const struct ucma_file *asker);
/* Destroys the ID, too. */
void ucma_ctx_destroy(struct ucma_ctx *ctx);
/* Moves an ID and its events. */
void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to);
/* Joins an ID to a group; its event follows. NULL: no memory. */
struct ucma_group *ucma_group_join(struct ucma_ctx *ctx, uint64_t uid, const uint8_t mgid[16]);
/* NULL: there is none, or it is another program's. */
struct ucma_group *ucma_group_find(const struct ucma_file *file, uint32_t number);
void ucma_group_leave(struct ucma_group *group);
struct ucma_file *ucma_file_by_token(const struct ucma *u, uint64_t token);

/* --- ucma_bell.c: events on their way. */
/* The event is there from now on. */
void ucma_event_add(struct ucma_file *file, struct ucma_event *event);
/* It is not any more, and nobody has fetched it; the caller frees it. */
void ucma_event_withdraw(struct ucma_file *file, struct ucma_event *event);
/* Its packet would tell what is not so any more. */
void ucma_event_outdated(struct ucma_file *file, const struct ucma_event *event);
/* A command changes the ID: answers that are on their way with its events may not be so any more.
 */
void ucma_ctx_outdate_events(struct ucma_ctx *ctx);
/* The program has fetched all up to that one. */
void ucma_events_fetched(struct ucma_file *file, uint64_t order);
/* The file has another bell, or more events. */
void ucma_events_queue_send(struct ucma_file *file);
/* What is new on record, and then the packets of all events that are. */
void ucma_flush(struct ucma *u);
/* epoll has something for a bell: `what` of its event. False: that is none. */
bool ucma_events_epoll(struct ucma *u, void *what);
void ucma_events_close(struct ucma_file *file);

/* --- ucma_record.c: what is there on record, so that it survives the daemon. */
int ucma_store_open(struct ucma *u, const char *run_dir);
void ucma_store_close(struct ucma *u, const char *run_dir);
void ucma_store_file(struct ucma_file *file);
void ucma_store_group(struct ucma_group *group);
void ucma_store_event(struct ucma_event *event);
/* The ID is going to be recorded by ucma_store_write_dirty, before anybody hears of its change. */
void ucma_store_mark_dirty(struct ucma_ctx *ctx);
void ucma_store_write_dirty(struct ucma *u);
/* For it. */
struct ucma_file *ucma_file_new(struct ucma *u);
void ucma_file_close(struct ucma_file *file);

/* A command, and where its response goes. */
struct ucma_command {
	struct ucma_file *file;
	uint32_t number;
	const uint8_t *in;
	uint32_t in_size;
	uint64_t token;
	uint8_t *out; /* CM_ATTACH_BYTES of room */
	uint32_t out_size;
	uint32_t out_len;                 /* what there is of it; set by the command */
	struct ucma_file *withdrawn_from; /* whose packets are to be taken back; likewise */
};

/* --- ucma_cmd.c: 0, or a negative errno value. */
int ucma_run_command(struct ucma_command *c);

/*
 * --- ucma_reply_cache_fill.c: answers to what the program asks next, once it has that event.
 * Returns how many bytes there are, of CM_ATTACH_CACHED.
 */
uint32_t ucma_reply_cache_fill(const struct ucma_event *event, uint8_t *out);
/* Whose answers those are; NULL: it has none. */
const struct ucma_ctx *ucma_reply_cache_ctx(const struct ucma_event *event);

/* --- ucma_fill.c: what programs are told. */
void ucma_fill_event(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		     const struct cma_event *event);
/* Of a group that was joined. */
void ucma_fill_join(struct rdma_ucm_event_resp *resp, const struct cma_id *id,
		    const uint8_t mgid[16]);
void ucma_fill_route(struct rdma_ucm_query_route_resp *resp, const struct cma_id *id);
void ucma_fill_addr(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* The addresses as AF_IB has them. */
void ucma_fill_gid(struct rdma_ucm_query_addr_resp *resp, const struct cma_id *id);
/* How many paths there are, 0 or 1. */
uint32_t ucma_fill_path(struct rdma_ucm_query_path_resp *resp, struct ib_path_rec_data *data,
			const struct cma_id *id);
/* What counts of a path that a program gives. -EINVAL: none of the n leads there and back. */
int ucma_read_path(const struct ib_path_rec_data *data, uint32_t n, uint8_t *traffic_class);
/* -EINVAL: the connection is not so far. */
int ucma_fill_qp_attr(struct ib_uverbs_qp_attr *attr, const struct cma_id *id, uint32_t state);

#endif
