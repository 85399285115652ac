/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens the device, prints "ready", waits for the end of its standard input, and connects an RC
 * queue pair to a remote one. The test stops urxed meanwhile, as a busy disk does.
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include "loop.h"

#define REMOTE_QPN 0x777777

int main(void)
{
	struct ibv_context *context = loop_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	char byte;

	if (!qp)
		err(1, "cannot create a queue pair");
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	loop_connect(qp, REMOTE_QPN);
	puts("connected");
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy the objects");
	ibv_close_device(context);
	return 0;
}
