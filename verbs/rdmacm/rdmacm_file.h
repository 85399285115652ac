/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An open /dev/infiniband/rdma_cm and a command on it, as all files of this folder share them. */
#ifndef URXE_VERBS_RDMACM_RDMACM_FILE_H
#define URXE_VERBS_RDMACM_RDMACM_FILE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include <cm/attach_protocol.h>

#include "rdmacm/rdmacm.h"

struct rdmacm_ids;
struct rdmacm_reply_cache;

struct rdmacm_file {
	struct fd_object fd;
	/*
	 * Protects all members that follow, but `opening`, `pid`, and those of rdmacm_files_lock. A
	 * command holds it from its start to its end, except while it waits for an event or for
	 * another daemon.
	 * Rank 1 of docs/locking.md; two files' locks only by rdmacm_lock_both().
	 */
	pthread_mutex_t lock;
	pthread_cond_t reconnected; /* with `lock`; signalled when the file is connected again,
				       gives up, or is closed */
	atomic_uint opening;        /* odd while open; changes at each open and close, and in a
				       forked child */
	pid_t pid;                  /* of the process that opened it; a child's commands fail */

	int socket;       /* the socket to the daemon; -1: not connected */
	int reserve;      /* a spare descriptor, closed if the next connection finds no free one
			     (EMFILE); -1: none */
	uint32_t n_due;   /* replies that the daemon owes at `socket` */
	int event_set;    /* duplicate of the program's descriptor, an epoll set; -1: closed */
	int event_reader; /* socket with a packet for each event, from the daemon; -1: closed */
	int event_writer; /* its other end, which the daemon has, too; -1: no more events */
	bool daemon_gone; /* the file has given up: it connects to no further daemon */
	uint64_t lost_at; /* clock_monotonic() (ns) at the end of the last connection; 0: none has
			     ended */
	uint64_t token;   /* the daemon's name for this file */
	uint64_t fetched; /* cm_attach_event.sequence of the last fetched event */
	uint64_t to_skip[CM_ATTACH_TO_SKIP]; /* `sequence` of cancelled events whose packets may
						still come */
	uint32_t n_to_skip;
	int kernel;             /* descriptor of the kernel's own rdma_cm; -1: there is none yet */
	uint32_t n_waiting;     /* threads that wait for events of the daemon alone */
	bool kernel_first;      /* the kernel is asked for the next event before the daemon */
	struct rdmacm_ids *ids; /* rdmacm/ids.h; NULL: no ID yet */
	struct rdmacm_reply_cache *reply_cache; /* rdmacm/reply_cache.h; NULL: empty */

	/* Only a thread that holds rdmacm_files_lock accesses these. */
	bool in_use;
	bool added; /* the file is one of the reconnecting thread: rdmacm_reconnect_add() */

	struct rdmacm_file *next; /* constant once the file is in the list; NULL: the last file */
};

/*
 * rdmacm_lock_files blocks all signals but SIGSYS and takes rdmacm_files_lock, a static lock of
 * rdmacm_file.c; rdmacm_unlock_files releases it and restores the signal mask. The lock protects
 * additions to the list of files, and the state of the reconnecting thread. pthread_atfork handlers
 * hold it around fork. Rank 2 of docs/locking.md. Without blocked signals, a signal handler that
 * forks would deadlock: the pthread_atfork handler would wait for the lock of its own thread.
 */
void rdmacm_lock_files(sigset_t *signals);
void rdmacm_unlock_files(const sigset_t *signals);
/*
 * The first of all files, open or closed; file->next is the next one. Takes no lock, so that a
 * checkpointer, which holds adapter_open_lock, does not wait for a thread that forks: fork takes
 * rdmacm_files_lock, and may wait for adapter_open_lock meanwhile.
 */
struct rdmacm_file *rdmacm_files_first(void);

struct rdmacm_request {
	struct cm_attach_command command;
	/* The command; zeros follow, so a whole structure can be read of a command that is too
	 * short. The daemon or the kernel refuses the command. */
	uint8_t in[CM_ATTACH_BYTES + CM_ATTACH_OPTION];
	unsigned int opening;     /* file->opening when the program gave the command */
	struct rdmacm_file *from; /* MIGRATE_ID: the file that has the ID; else the file itself */
};

struct rdmacm_response {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

/* Whether the file has been neither closed nor reused since the request. With file->lock. */
static inline bool rdmacm_is_open(const struct rdmacm_file *file,
				  const struct rdmacm_request *request)
{
	return file->opening % 2 && file->opening == request->opening;
}

/* Closes *fd unless it is -1, and sets it to -1. */
static inline void rdmacm_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Takes the locks of both files, or the one lock if they are the same. While it waits for one lock
 * it does not hold the other. */
void rdmacm_lock_both(struct rdmacm_file *a, struct rdmacm_file *b);
void rdmacm_unlock_both(struct rdmacm_file *a, struct rdmacm_file *b);

/*
 * For checkpoint/, whose thread takes locks against the order of ranks. Takes file->lock by
 * attempts, so that the thread takes part in no deadlock. False: another thread had the lock until
 * `deadline` (clock_monotonic()).
 */
bool rdmacm_lock_until(struct rdmacm_file *file, uint64_t deadline);

/*
 * Opens the kernel's rdma_cm, if the file has none: the kernel may load it after the program has
 * opened the file, with the first RDMA device. Wakes threads that wait for events. Returns whether
 * the file has it. With file->lock.
 */
bool rdmacm_open_kernel(struct rdmacm_file *file);

/* --- layout.c: members that many commands of rdma/rdma_user_cm.h have in common */

/* "unknown": there is no such command. */
const char *rdmacm_command_name(uint32_t command);
#define RDMACM_NOWHERE 0xffff
/* The offset, in the command, of the address for its response; RDMACM_NOWHERE: it has no
 * response. */
uint32_t rdmacm_response_at(uint32_t command);
/* The offset, in the command, of the number of its ID (LEAVE_MCAST: of its group); RDMACM_NOWHERE:
 * it has none. */
uint32_t rdmacm_id_at(uint32_t command);
/* Sets *number to that of the ID or group. False: the command has none, or is too short. */
bool rdmacm_id_of(const struct rdmacm_request *request, uint32_t *number);
/* Makes a request for a command that this library itself gives: `size` bytes at `in`, and room for
 * `out` bytes of the response. */
struct rdmacm_request rdmacm_request_make(struct rdmacm_file *file, uint32_t command,
					  const void *in, uint32_t size, uint32_t out);

#endif
