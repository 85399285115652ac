/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * empty_poll prints the seconds of an ibv_poll_cq of an empty completion queue, the median of many.
 * PVRDMA's provider writes a doorbell in each.
 */
#include <err.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#include "lib/laps.h"
#include "lib/two.h"

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct laps laps = {0};
	struct ibv_wc wc;

	if (!cq)
		errx(1, "no RDMA device");
	laps_start(&laps);
	for (int i = 0; i < LAPS_MAX; i++) {
		if (ibv_poll_cq(cq, 1, &wc))
			errx(1, "a completion of nothing");
		laps_mark(&laps);
	}
	printf("%.9g\n", laps_median(&laps));
	return 0;
}
