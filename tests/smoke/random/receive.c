/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <infiniband/verbs.h>

#include "completion.h"
#include "draw.h"
#include "region.h"
#include "request.h"

#define MOST_RECEIVES 46 /* posted to a queue pair at a time */

/*
 * A receive that is too short for most messages. Its memory stays registered: of two errors,
 * packets and copies may report different ones.
 */
static int short_segments(const struct side *side, int qp, struct ibv_sge *sge, uint32_t length)
{
	const struct region *region = &side->own.regions[FIXED_REGION + side_qp_pd(qp)];

	*sge = (struct ibv_sge){region->addr + draw_below(1000), length, region->lkey};
	return 1;
}

static int long_segments(struct side *side, int qp, struct ibv_sge *sges)
{
	struct need need = {
		.half = DESTINATIONS,
		.pd = side_qp_pd(qp),
		.right = IBV_ACCESS_LOCAL_WRITE,
		.length = REGION_LEAST,
		.damage = side->errors ? draw_below(60) : UNDAMAGED,
	};

	return region_segments(side, sges, &need);
}

static void post_receive(struct side *side, int qp)
{
	bool is_short = side->errors && draw_one_in(8);
	uint32_t length = is_short ? draw_length() : REGION_LEAST;
	struct ibv_sge sges[QP_SEGMENTS];
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = ++side->last_id | COMPLETION_RECEIVE,
					 .sg_list = sges,
				 };
	int rc;

	wr.num_sge =
		is_short ? short_segments(side, qp, sges, length) : long_segments(side, qp, sges);
	rc = qp == QP_RC_SRQ ? ibv_post_srq_recv(side->srq, &wr, &bad)
			     : ibv_post_recv(side->qps[qp], &wr, &bad);
	side_log(side, "receive %u posted to qp %d: %u bytes in %d segments: %d", side->last_id, qp,
		 length, wr.num_sge, rc);
	side->own.receives[qp] += !rc;
}

void request_post_receives(struct side *side, int qp, uint32_t count)
{
	while (count-- && side->own.receives[qp] < MOST_RECEIVES)
		post_receive(side, qp);
}
