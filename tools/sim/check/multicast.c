/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast: each datagram reaches the members of its group, unless the network loses it on the
 * way, and no other QP. Members on the sender's host get it without the network. */
#include "sim/check/check.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "sim/host/content.h"
#include "sim/host/member.h"
#include "sim/host/recv_queue.h"
#include "sim/world.h"

/* The sender, whose QPN the completion names; NULL = none. */
static struct member *find_sender(const struct world *world, uint32_t qpn)
{
	const uint32_t i = qpn - MEMBER_FIRST_QPN;

	return i < world->members.n ? &world->members.member[i] : NULL;
}

static bool may_reach(const struct member *to, const struct member *from, uint32_t message)
{
	const uint8_t group = from->message[message].group;

	return !(to == from && to->blocks_self) &&
	       (to->attached[group] || to->left[group] >= from->message[message].posted);
}

/* Whether the network may duplicate the message to this member. It may not for a member on the
 * sender's host, whose copy does not pass the network. */
static bool may_come_twice(const struct member *to, const struct member *from)
{
	return to->host != from->host && to->host->world->scenario.duplicate > 0;
}

static bool has_right_content(const struct member *from, uint32_t message,
			      const struct layout *layout, const struct member *to)
{
	struct world *world = to->host->world;
	const uint32_t length = from->message[message].length;

	content_fill(from->seed, message, world->scratch, length);
	layout_copy_out(layout, to->host->mem, world->arrived, length + URXE_GRH_LEN);
	return !memcmp(world->arrived + URXE_GRH_LEN, world->scratch, length);
}

static void check_datagram(struct member *to, const struct member *from, uint32_t message,
			   const struct urxe_wc *wc, const struct layout *layout)
{
	struct world *world = to->host->world;
	uint8_t *seen = member_seen(to, from, message);

	if (!may_reach(to, from, message))
		world_fail(world, "qp %06x got message %u of qp %06x, to a group that it is not in",
			   wc->qpn, message, wc->src_qpn);
	else if (*seen & MESSAGE_ARRIVED && !may_come_twice(to, from))
		world_fail(world, "qp %06x got message %u of qp %06x twice", wc->qpn, message,
			   wc->src_qpn);
	else if (!(wc->flags & URXE_WC_GRH) ||
		 wc->byte_len != from->message[message].length + URXE_GRH_LEN ||
		 !has_right_content(from, message, layout, to))
		world_fail(world, "qp %06x got message %u of qp %06x with wrong content", wc->qpn,
			   message, wc->src_qpn);
	*seen |= MESSAGE_ARRIVED;
	world_note(world, "host %u qp %06x received %u of qp %06x", to->host->id, wc->qpn, message,
		   wc->src_qpn);
}

void check_multicast_delivery(struct member *to, const struct urxe_wc *wc)
{
	const struct layout *layout = recv_queue_take(to->recv_queue, wc->wr_id);
	const struct member *from = find_sender(to->host->world, wc->src_qpn);

	if (!layout || (wc->status == URXE_WC_WR_FLUSH_ERR && to->in_error))
		return;
	if (wc->status != URXE_WC_SUCCESS || !(wc->flags & URXE_WC_WITH_IMM) || !from ||
	    ntohl(wc->imm) >= from->posted)
		world_fail(to->host->world,
			   "qp %06x got a multicast message that nobody sent, status %u", wc->qpn,
			   wc->status);
	else
		check_datagram(to, from, ntohl(wc->imm), wc, layout);
}

void check_multicast_completion(struct member *member, const struct urxe_wc *wc)
{
	if (wc->status != URXE_WC_SUCCESS || wc->wr_id != member->completed ||
	    member->completed == member->posted)
		world_fail(member->host->world,
			   "completion %" PRIu64 " of multicast qp %06x, status %u, where %u of %u "
			   "is next",
			   wc->wr_id, wc->qpn, wc->status, member->completed, member->posted);
	member->completed++;
}

/* The number of messages that were due at the member and did not arrive; `local`: only those of
 * members on the same host. */
static uint32_t count_missing(const struct member *to, uint32_t group, bool local)
{
	const struct members *members = &to->host->world->members;
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *from = &members->member[i];

		for (uint32_t k = 0; k < from->posted; k++)
			n += *member_seen(to, from, k) == MESSAGE_DUE &&
			     from->message[k].group == group && !(local && from->host != to->host);
	}
	return n;
}

static void check_member(const struct member *member)
{
	struct world *world = member->host->world;
	const uint64_t *drops = urxe_qp_counters(member->qp)->drop;
	const uint64_t no_recv = drops[URXE_DROP_NO_RECV];
	uint64_t all = 0, local = 0;

	for (uint32_t i = 0; i < MEMBER_GROUPS; i++) {
		const uint32_t missing = count_missing(member, i, false);

		all += missing > member->lost[i] ? missing - member->lost[i] : 0;
		local += count_missing(member, i, true);
	}
	if (member->completed != member->posted)
		world_fail(world, "host %u: %u of %u multicast messages of qp %06x are complete",
			   member->host->id, member->completed, member->posted,
			   MEMBER_FIRST_QPN + member->number);
	if (local > no_recv || all > no_recv)
		world_fail(world,
			   "host %u: %" PRIu64 " multicast messages to qp %06x are missing beyond "
			   "those that the network lost, %" PRIu64
			   " of them from its host; %" PRIu64 " found no receive request",
			   member->host->id, all, MEMBER_FIRST_QPN + member->number, local,
			   no_recv);
	for (enum urxe_drop i = 1; i < URXE_DROP_COUNT; i++)
		if (drops[i] && i != URXE_DROP_NO_RECV &&
		    !(i == URXE_DROP_OWN_MULTICAST && member->blocks_self))
			world_fail(world, "multicast qp %06x dropped %" PRIu64 " as %s",
				   MEMBER_FIRST_QPN + member->number, drops[i], urxe_drop_name(i));
}

void check_multicast(struct world *world)
{
	for (uint32_t i = 0; i < world->members.n; i++)
		check_member(&world->members.member[i]);
}
