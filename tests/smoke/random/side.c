/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "side.h"

#include <err.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "exchange.h"
#include "region.h"

static struct {
	uint32_t size;
	char text[1 << 16];
} log_lines;

enum ibv_qp_type side_qp_type(int qp)
{
	if (qp == QP_UC)
		return IBV_QPT_UC;
	return qp == QP_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

int side_qp_pd(int qp)
{
	return qp == QP_RC_OTHER_PD;
}

int side_find_qp(const struct view *view, uint32_t qpn)
{
	for (int i = 0; i < ALL_QPS; i++)
		if (view->qpns[i] == qpn)
			return i;
	return -1;
}

/* --- Objects. */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "cannot open device %s", name);
	ibv_free_device_list(list);
	return context;
}

static void create_qp(struct side *side, int i)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = i == QP_RC_SRQ ? side->srq : NULL,
		.qp_type = side_qp_type(i),
		.sq_sig_all = 1,
		.cap = {QP_DEPTH, QP_DEPTH, QP_SEGMENTS, QP_SEGMENTS, QP_INLINE},
	};

	side->qps[i] = ibv_create_qp(side->pds[side_qp_pd(i)], &init);
	if (!side->qps[i])
		err(1, "ibv_create_qp");
	side->own.qpns[i] = side->qps[i]->qp_num;
}

static void create_objects(struct side *side)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = QP_DEPTH, .max_sge = QP_SEGMENTS}};

	for (int i = 0; i < PDS; i++) {
		side->pds[i] = ibv_alloc_pd(side->context);
		if (!side->pds[i])
			err(1, "ibv_alloc_pd");
	}
	side->cq = ibv_create_cq(side->context, 2 * ALL_QPS * QP_DEPTH, NULL, NULL, 0);
	if (!side->cq)
		err(1, "ibv_create_cq");
	side->srq = ibv_create_srq(side->pds[0], &srq);
	if (!side->srq)
		err(1, "ibv_create_srq");
	for (int i = 0; i < ALL_QPS; i++)
		create_qp(side, i);
	for (int i = 0; i < QPS; i++)
		side->own.broken[i] = true;
}

static void create_ah(struct side *side)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = side->peer.gid, .sgid_index = side->gid_index, .hop_limit = 8},
	};

	side->ah = ibv_create_ah(side->pds[0], &attr);
	if (!side->ah)
		err(1, "ibv_create_ah");
}

void side_open(struct side *side, const char *device)
{
	int flags;

	side->context = open_device(device);
	flags = fcntl(side->context->async_fd, F_GETFL);
	if (fcntl(side->context->async_fd, F_SETFL, flags | O_NONBLOCK))
		err(1, "fcntl");
	if (ibv_query_gid(side->context, 1, side->gid_index, &side->own.gid))
		err(1, "ibv_query_gid");
	region_map_memory(side);
	create_objects(side);
	side_exchange(side);
	create_ah(side);
}

static int destroy_objects(struct side *side)
{
	int rc = ibv_destroy_ah(side->ah);

	for (int i = 0; i < ALL_QPS; i++)
		rc |= ibv_destroy_qp(side->qps[i]);
	rc |= ibv_destroy_srq(side->srq) | ibv_destroy_cq(side->cq);
	for (int i = 0; i < WINDOWS; i++)
		rc |= side->mws[i] ? ibv_dealloc_mw(side->mws[i]) : 0;
	for (int i = 0; i < REGIONS; i++)
		rc |= side->mrs[i] ? ibv_dereg_mr(side->mrs[i]) : 0;
	for (int i = 0; i < PDS; i++)
		rc |= ibv_dealloc_pd(side->pds[i]);
	return rc;
}

void side_close(struct side *side)
{
	int rc = destroy_objects(side);

	if (rc)
		errx(1, "cannot destroy an object: %d", rc);
	if (ibv_close_device(side->context))
		err(1, "ibv_close_device");
}

void side_exchange(struct side *side)
{
	exchange_send(side->fd, &side->own, sizeof(side->own));
	exchange_recv(side->fd, &side->peer, sizeof(side->peer));
}

void side_check_peer(const struct side *side)
{
	char byte;

	if (!recv(side->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
		errx(1, "side %d has ended", !side->number);
}

/* --- The log. */

static void add_line(const char *text)
{
	int n = snprintf(log_lines.text + log_lines.size, sizeof(log_lines.text) - log_lines.size,
			 "%s\n", text);

	if (n >= (int)(sizeof(log_lines.text) - log_lines.size))
		errx(1, "an operation has too many lines");
	log_lines.size += n;
}

void side_log(const struct side *side, const char *format, ...)
{
	char line[512];
	va_list args;
	int n = snprintf(line, sizeof(line), "  %d ", side->number);

	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - n, format, args);
	va_end(args);
	add_line(line);
}

static void print_lines(void)
{
	fwrite(log_lines.text, 1, log_lines.size, stdout);
	fflush(stdout);
}

void side_print(const struct side *side)
{
	if (side->number == 0) {
		print_lines();
		exchange_recv(side->fd, &log_lines.size, sizeof(log_lines.size));
		exchange_recv(side->fd, log_lines.text, log_lines.size);
		print_lines();
	} else {
		exchange_send(side->fd, &log_lines.size, sizeof(log_lines.size));
		exchange_send(side->fd, log_lines.text, log_lines.size);
	}
	log_lines.size = 0;
}
