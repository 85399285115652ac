/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/member.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/host/content.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/network/address.h"
#include "sim/world.h"

#define DEPTH      4 /* outstanding datagrams of a member */
#define LENGTH_MAX 1024

static uint32_t get_length_max(const struct world *world)
{
	return world->size < LENGTH_MAX ? world->size : LENGTH_MAX;
}

/* --- Setup. */

static void plan_member(struct world *world, struct member *member, uint32_t number)
{
	struct rand *r = &world->members.rand;
	struct simhost *host = &world->host[rand_below(r, world->n_hosts)];

	*member = (struct member){.host = host, .number = number};
	member->blocks_self = rand_chance(r, 0.5);
	member->seed = rand_next(r);
	member->recv_queue = recv_queue_plan(host, false, RECV_QUEUE_DEPTH);
	member->slots = simhost_alloc(host, (uint64_t)DEPTH * get_length_max(world));
	member->seen = sim_calloc(world->members.n, MEMBER_MESSAGES);
}

void members_plan(struct world *world)
{
	struct members *members = &world->members;

	members->rand = (struct rand){world->scenario.seed ^ 0x6d656d62657273};
	members->n = (uint32_t)world->scenario.members;
	members->member = sim_calloc(members->n + 1, sizeof(*members->member));
	for (uint32_t i = 0; i < members->n; i++)
		plan_member(world, &members->member[i], i);
}

static void create_qp(struct member *member)
{
	struct simhost *host = member->host;
	const struct urxe_qp_init init = {
		.ctx = member,
		.type = URXE_QPT_UD,
		.sq_sig_all = true,
		.block_self_mcast = member->blocks_self,
		.pd = SIMHOST_PD,
		.qpn = MEMBER_FIRST_QPN + member->number,
		.send_cq = host->send_cq.cq,
		.recv_cq = host->recv_cq.cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = RECV_QUEUE_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = LAYOUT_MAX_SEGS},
	};
	struct urxe_qp_attr attr = {.port = 1, .qkey = SIMCONN_QKEY};

	sim_require(urxe_qp_create(host->dev, &init, &member->qp) == 0);
	member->recv_queue->rq = urxe_qp_rq(member->qp);
	for (uint8_t state = URXE_QPS_INIT; state <= URXE_QPS_RTS; state++) {
		attr.state = state;
		sim_require(urxe_qp_modify(member->qp, host->world->now, &attr,
					   simconn_step_mask(URXE_QPT_UD, state)) == 0);
	}
}

static void attach(struct member *member, uint8_t group)
{
	const struct urxe_gid gid = address_group((enum urxe_net)group);

	sim_require(urxe_mcast_attach(member->qp, &gid) == 0);
	member->attached[group] = true;
}

void members_open(struct world *world)
{
	struct members *members = &world->members;

	for (uint32_t i = 0; i < members->n; i++) {
		create_qp(&members->member[i]);
		for (uint8_t group = 0; group < MEMBER_GROUPS; group++)
			if (rand_chance(&members->rand, 0.5))
				attach(&members->member[i], group);
	}
}

void members_free(struct world *world)
{
	for (uint32_t i = 0; i < world->members.n; i++)
		free(world->members.member[i].seen);
	free(world->members.member);
}

/* --- Search. */

struct member *member_find(const struct simhost *host, uint32_t qpn)
{
	const struct members *members = &host->world->members;
	const uint32_t i = qpn - MEMBER_FIRST_QPN;

	return i < members->n && members->member[i].host == host ? &members->member[i] : NULL;
}

struct member *member_of_context(const struct world *world, const void *ctx)
{
	for (uint32_t i = 0; i < world->members.n; i++)
		if (ctx == &world->members.member[i])
			return &world->members.member[i];
	return NULL;
}

uint8_t *member_seen(const struct member *member, const struct member *from, uint32_t message)
{
	return &member->seen[from->number * MEMBER_MESSAGES + message];
}

/* --- Turns. */

/* Leaves the group. From now on the engine need not deliver datagrams to the group that are still
 * in the network. */
static void detach(struct member *member, uint8_t group)
{
	const struct urxe_gid gid = address_group((enum urxe_net)group);
	const struct members *members = &member->host->world->members;

	sim_require(urxe_mcast_detach(member->qp, &gid) == 0);
	member->attached[group] = false;
	member->left[group] = member->host->world->now;
	for (uint32_t i = 0; i < members->n; i++)
		for (uint32_t k = 0; k < members->member[i].posted; k++)
			if (members->member[i].message[k].group == group)
				*member_seen(member, &members->member[i], k) &=
					(uint8_t)~MESSAGE_DUE;
}

/* Joins or leaves a group; may attach an attached member again, which has no effect. */
static void change_membership(struct member *member)
{
	struct rand *r = &member->host->world->members.rand;
	const uint8_t group = (uint8_t)rand_below(r, MEMBER_GROUPS);

	world_note(member->host->world, "host %u qp %06x %s group %u", member->host->id,
		   MEMBER_FIRST_QPN + member->number, member->attached[group] ? "leaves" : "joins",
		   group);
	if (member->attached[group] && rand_chance(r, 0.8))
		detach(member, group);
	else
		attach(member, group);
}

/* Marks the message as due at each member that is in its group now; detach() removes the mark. */
static void expect_message(const struct member *from, uint32_t message)
{
	const struct members *members = &from->host->world->members;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *to = &members->member[i];

		if (to->attached[from->message[message].group] && !(to == from && to->blocks_self))
			*member_seen(to, from, message) |= MESSAGE_DUE;
	}
}

static void send_message(struct member *member)
{
	struct simhost *host = member->host;
	struct world *world = host->world;
	const uint32_t index = member->posted;
	const uint32_t length = rand_below(&world->members.rand, get_length_max(world) + 1);
	const uint8_t group = (uint8_t)rand_below(&world->members.rand, MEMBER_GROUPS);
	const uint64_t at = member->slots + (uint64_t)(index % DEPTH) * get_length_max(world);
	const struct urxe_seg seg = simhost_seg(host, at, length);
	struct urxe_path path = {
		.dgid = address_group((enum urxe_net)group),
		.sgid_index = SIMHOST_SGID(group),
		.hop_limit = 64,
	};
	const struct urxe_send_wr wr = {
		.wr_id = index,
		.opcode = URXE_WR_SEND_IMM,
		.imm = htonl(index),
		.segs = &seg,
		.n_segs = 1,
		.path = &path,
		.remote_qpn = URXE_QPN_MULTICAST,
		.remote_qkey = SIMCONN_QKEY,
	};

	address_group_mac(&path.dgid, path.dmac);
	content_fill(member->seed, index, host->mem + at, length);
	member->message[index].group = group;
	member->message[index].length = length;
	member->message[index].posted = world->now;
	member->posted++;
	expect_message(member, index);
	world_note(world, "host %u qp %06x sends %u to group %u", host->id,
		   MEMBER_FIRST_QPN + member->number, index, group);
	sim_require(urxe_post_send(member->qp, &wr) == 0);
	world->activity++;
}

void members_turn(struct simhost *host)
{
	struct members *members = &host->world->members;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *member = &members->member[i];

		if (member->host != host)
			continue;
		if (rand_chance(&members->rand, 0.2))
			change_membership(member);
		if (member->posted < MEMBER_MESSAGES &&
		    member->posted - member->completed < DEPTH && rand_chance(&members->rand, 0.5))
			send_message(member);
	}
}
