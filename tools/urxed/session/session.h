/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes that are connected to the daemon, from accept to hang-up. Each
 * watches its own descriptors in the daemon's epoll set, the client itself as data.
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

struct session {
	struct session *next;
	struct vnic_server_client *conn;
	struct switch_port port;
	struct neigh_waiter waiter;
	bool waiting;
	bool greeting; /* waits to be welcomed, until survivors have claimed their leases */
	bool joined;
	bool asked;      /* the last question went to it */
	bool stale;      /* a notice did not fit its socket */
	uint32_t blocks; /* of QPNs that it has leased, */
	uint64_t token;  /* and what claims them */
	bool gone;       /* to be freed once no event can name it */
};

struct sessions {
	struct session *list;
	uint32_t n;
	int epoll_fd;
	const struct host *host;
	struct vswitch *sw;
	struct neigh *neigh;
	struct lease_store *record;
	bool indirect;                         /* all frames are to pass the switch */
	uint64_t claims_until;                 /* when survivors lose their leases */
	bool settled;                          /* they have lost them */
	uint64_t now;                          /* of the event that is being handled */
	uint32_t limit;                        /* on connections */
	struct log_ratelimit log;              /* for what clients do */
	uint64_t counters[VNIC_COUNTER_COUNT]; /* of the NICs of those that went */
};

/* How long a new daemon waits for the claims of those that survived the one before. */
#define SESSION_CLAIM_NS 3000000000ull

/* Begins, with what an earlier daemon has left on record. */
void sessions_start(struct sessions *sessions, uint64_t now);
/* Takes a connection that waits. -EAGAIN: there is none; -EMFILE and the like: not now. */
int session_accept(struct sessions *sessions, int listen_fd);
/* Handles what a client's sockets have. */
void session_event(struct sessions *sessions, uint64_t now, struct session *s);
/* Tells every client what the port is now, those that do not listen once they do. */
void sessions_send_port(struct sessions *sessions);
/* Whether clients, also those to come, may send to each other without the switch. */
void sessions_set_direct(struct sessions *sessions, bool on);
/* Asks all that listen what they have, to be answered on `socket`; marks whom it has asked. */
void sessions_ask_state(struct sessions *sessions, int socket);
/* For the switch: introduces two of them. */
switch_introduce_fn session_introduce;
/* Answers the client that w is of. */
void session_resolved(struct neigh_waiter *w, int status, const struct vnic_next_hop *hop);
/* Whether a process holds a QPN. */
bool sessions_hold_qpn(const struct sessions *sessions, pid_t pid, uint32_t qpn);
/* Welcomes those that had to wait, once they need not; returns when to call again. */
uint64_t sessions_tick(struct sessions *sessions, uint64_t now);
/*
 * Frees those that went, and those whose NIC is broken; true where there were any.
 * Call it between two batches of events.
 */
bool sessions_reap(struct sessions *sessions);
void sessions_close_all(struct sessions *sessions);
/* What all NICs have counted, also those of clients that went. */
void sessions_counters(const struct sessions *sessions, uint64_t sums[VNIC_COUNTER_COUNT]);

#endif
