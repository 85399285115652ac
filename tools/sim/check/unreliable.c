/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of UC and UD. An engine may drop one only if the network lost a frame of it, or if no
 * receive request was posted for it, which the receiver counts. So on a network that neither
 * reorders nor duplicates, a stream misses at most as many messages as frames of it were lost.
 */
#include "sim/check/check.h"

#include <inttypes.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/network/address.h"
#include "sim/world.h"

/* The stream to which a received packet belongs; NULL: none. */
static struct stream *find_stream(const struct simhost *to, const struct urxe_packet *p)
{
	struct endpoint *end = simhost_end(to, p->dest_qpn);

	return end ? &end->conn->stream[!end->side] : NULL;
}

static void count_lost_multicast(struct world *world, uint32_t to, const uint8_t *frame)
{
	const uint32_t group = address_group_number(frame);

	for (uint32_t i = 0; i < world->members.n; i++)
		if (world->members.member[i].host->id == to && group < MEMBER_GROUPS)
			world->members.member[i].lost[group]++;
}

void check_lost_frame(struct world *world, uint32_t to, const uint8_t *frame, uint32_t len)
{
	struct stream *stream;
	struct urxe_packet p;

	if (address_is_group(frame)) {
		count_lost_multicast(world, to, frame);
	} else if (!urxe_packet_parse(&p, frame, len)) {
		stream = find_stream(&world->host[to], &p);
		if (stream)
			stream->lost++;
	}
}

void check_first_packet(const struct simhost *to, const uint8_t *frame, uint32_t len)
{
	struct stream *stream;
	struct urxe_packet p;

	if (urxe_packet_parse(&p, frame, len) || p.opcode != (URXE_SERVICE_UC | URXE_OP_SEND_FIRST))
		return;
	stream = find_stream(to, &p);
	if (stream && stream_to(stream)->recv_queue->shared)
		stream->begun++;
}

bool check_given_up(struct endpoint *end, const struct urxe_wc *wc)
{
	struct stream *stream = &end->conn->stream[!end->side];

	if (wc->status != URXE_WC_REM_INV_REQ_ERR || end->conn->attr.type != URXE_QPT_UC ||
	    !end->recv_queue->shared || end->flushed)
		return false;
	if (!stream->lost && !end->host->world->reorders_or_duplicates)
		world_fail_stream(stream, "no frame was lost, but qp %06x gave a message up",
				  wc->qpn);
	stream->given_up++;
	recv_queue_take(end->recv_queue, wc->wr_id);
	return true;
}

static uint32_t count_consuming(const struct stream *stream)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stream->posted; i++)
		n += stream->request[i].consumes;
	return n;
}

/* Messages that neither arrived nor were counted as without a receive request. */
static uint64_t count_missing(const struct stream *stream)
{
	const uint64_t *drops = urxe_qp_counters(stream_to(stream)->qp)->drop;
	const uint64_t sent = count_consuming(stream);
	const uint64_t known = stream->arrivals + drops[URXE_DROP_NO_RECV];

	if (known > sent + stream->world->fabric.counters.duplicated)
		world_fail_stream(stream,
				  "qp %06x sent %" PRIu64 " messages, but %" PRIu64
				  " arrived or found no receive request",
				  stream_from(stream)->qpn, sent, known);
	return known < sent ? sent - known : 0;
}

/* Checks that no more receives ended with an error than messages are missing. */
static void check_number_given_up(const struct stream *stream, uint64_t missing)
{
	if (stream->given_up > missing)
		world_fail_stream(stream,
				  "qp %06x gave %u messages up, but only %" PRIu64 " are missing",
				  stream_to(stream)->qpn, stream->given_up, missing);
}

/* Checks that each message that began in a receive of a shared queue has ended this receive: whole,
 * or with an error. For the last message the error state may flush the receive instead. */
static void check_ended(const struct stream *stream)
{
	const struct endpoint *to = stream_to(stream);
	const uint64_t ended = stream->ended + stream->given_up + to->flushed +
			       urxe_qp_counters(to->qp)->drop[URXE_DROP_NO_RECV];

	if (stream->begun > ended)
		world_fail_stream(stream,
				  "%" PRIu64 " messages to qp %06x began, but only %" PRIu64
				  " ended their receive",
				  stream->begun, to->qpn, ended);
}

/* Checks, in a stream that lost no frame, that each WRITE without immediate has reached its target:
 * such a WRITE needs no receive request. */
static void check_writes(struct stream *stream)
{
	const uint8_t *memory = stream_to(stream)->host->mem + stream->target;

	for (uint32_t i = 0; i < stream->posted; i++) {
		const struct request *request = &stream->request[i];

		if (request->opcode == URXE_WR_RDMA_WRITE &&
		    memcmp(memory + request->target, stream->model + request->target,
			   request->length))
			world_fail_stream(stream, "WRITE %u of qp %06x did not reach its target", i,
					  stream_from(stream)->qpn);
	}
}

/* Checks, in a stream that lost nothing, that the receiver has dropped packets only for want of
 * receive requests. A UC message without a receive request counts as out of sequence from its
 * second packet on. */
static void check_drops(const struct stream *stream)
{
	const uint64_t *drops = urxe_qp_counters(stream_to(stream)->qp)->drop;

	for (enum urxe_drop i = 1; i < URXE_DROP_COUNT; i++)
		if (drops[i] && i != URXE_DROP_NO_RECV &&
		    (i != URXE_DROP_UC_SEQUENCE || !drops[URXE_DROP_NO_RECV]))
			world_fail_stream(
				stream, "no frame was lost, but qp %06x dropped %" PRIu64 " as %s",
				stream_to(stream)->qpn, drops[i], urxe_drop_name(i));
}

void check_unreliable(struct world *world)
{
	uint64_t missing;

	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			struct stream *stream = &world->conn[i].stream[side];

			if (!stream->n || stream->conn->failure.kind ||
			    stream->conn->attr.type == URXE_QPT_RC)
				continue;
			missing = count_missing(stream);
			if (world->reorders_or_duplicates)
				continue;
			check_number_given_up(stream, missing);
			check_ended(stream);
			if (!stream->lost)
				check_drops(stream);
			if (!stream->lost && stream->conn->attr.type == URXE_QPT_UC)
				check_writes(stream);
			if (missing > stream->lost)
				world_fail_stream(stream,
						  "%" PRIu64 " messages of qp %06x are missing, "
						  "but the network lost %" PRIu64 " frames of it",
						  missing, stream_from(stream)->qpn, stream->lost);
		}
}
