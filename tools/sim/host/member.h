/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Members of multicast groups (--members): UD QPs that send datagrams to groups, and join and leave
 * groups at random moments. A host may have several. check/multicast.c checks the deliveries.
 */
#ifndef URXE_SIM_HOST_MEMBER_H
#define URXE_SIM_HOST_MEMBER_H

#include <rxe/rxe.h>

#include "sim/rand.h"

#define MEMBER_GROUPS    3 /* one per network protocol */
#define MEMBER_MESSAGES  32
#define MEMBER_FIRST_QPN 0x400000

struct recv_queue;
struct simhost;
struct world;

/* Bits of the state of one message at one receiver. */
enum { MESSAGE_DUE = 1, MESSAGE_ARRIVED = 2 };

struct member {
	struct recv_queue *recv_queue; /* first, for SIMHOST_RECV_QUEUE */
	struct simhost *host;
	uint32_t number; /* in world.member; the QPN is MEMBER_FIRST_QPN + number */
	struct urxe_qp *qp;
	bool blocks_self; /* block_self_mcast */
	bool in_error;    /* the QP is in the error state, which flushes its receives */
	bool attached[MEMBER_GROUPS];
	uint64_t left[MEMBER_GROUPS]; /* when the member last left the group, ns */
	uint64_t lost[MEMBER_GROUPS]; /* frames to the group that the network lost for this host */
	uint64_t seed;                /* of the messages' content */
	uint64_t slots;               /* offset of the payloads in the host's memory */
	uint32_t posted, completed;   /* messages */
	struct {
		uint8_t group;
		uint32_t length;
		uint64_t posted; /* ns */
	} message[MEMBER_MESSAGES];
	uint8_t *seen; /* states of messages (MESSAGE_DUE, MESSAGE_ARRIVED): MEMBER_MESSAGES for
			  each sender */
};

struct members {
	struct rand rand;
	struct member *member;
	uint32_t n;
};

/* Chooses the hosts of the members, and reserves their memory. */
void members_plan(struct world *world);
/* Creates the QPs, and attaches them to some groups. */
void members_open(struct world *world);
void members_free(struct world *world);
/* The application's turn: the host's members may join or leave groups, and send. */
void members_turn(struct simhost *host);
/* The member with this QPN on this host; NULL = none. */
struct member *member_find(const struct simhost *host, uint32_t qpn);
/* The member whose QP has this context; NULL: no member's QP has it. */
struct member *member_of_context(const struct world *world, const void *ctx);
/* The state of message `message` of `from` at the receiver `member`: MESSAGE_DUE, MESSAGE_ARRIVED.
 */
uint8_t *member_seen(const struct member *member, const struct member *from, uint32_t message);

#endif
