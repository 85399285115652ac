/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/cma.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rxe/rxe.h>

#include "common/clock.h"

#define PSN_MASK 0xffffffu

void cma_emit_event(struct cma_id *id, enum cma_event_type type, int status)
{
	const struct cma_event event = {.type = type, .status = status};

	id->cma->ops->event(id, &event);
}

uint64_t cma_node_guid(const struct host *host)
{
	uint64_t guid = 0;
	uint8_t bytes[8];

	host_node_guid(host, bytes);
	for (int i = 0; i < 8; i++)
		guid = guid << 8 | bytes[i];
	return guid;
}

uint8_t cma_path_mtu(const struct cma_id *id)
{
	uint32_t bytes;
	uint8_t mtu = 1;

	/* A SIDR_REQ carries no path MTU, so the path itself tells it. */
	if (id->conn && id->service != CMA_UD)
		return cm_channel(id->conn)->mtu;
	bytes = urxe_max_path_mtu(id->cma->ops->mtu_to_peer(id->cma->ctx, id));
	while (mtu < 5 && 128u << (mtu + 1) <= bytes)
		mtu++;
	return mtu;
}

/* Compares addresses, because the host may have given up the address at sgid_index and put another
 * one there. */
const struct host_address *cma_own_address(const struct cma_id *id)
{
	const struct cma_addr *src = &id->src.addr;
	const struct host_address *own =
		id->has_device ? host_address_by_gid(id->cma->host, id->sgid_index) : NULL;

	if (own && !cma_addr_is_loopback(src) && memcmp(own->ip, src->ip, sizeof(own->ip)) != 0)
		return NULL;
	return own;
}

/*
 * As in the kernel, half of the local ACK timeout that the program has set or that the REQ carries.
 */
uint8_t cma_packet_lifetime(const struct cma_id *id)
{
	return id->route_ack_timeout ? id->route_ack_timeout - 1 : CM_PACKET_LIFETIME;
}

/* --- IDs */

/* Draws a random PSN, so that no program can guess the PSNs of other programs' connections from its
 * own. Returns -EAGAIN if the kernel has no entropy yet. */
static int draw_psn(uint32_t *psn)
{
	if (getrandom(psn, sizeof(*psn), GRND_NONBLOCK) != sizeof(*psn))
		return -EAGAIN;
	*psn &= PSN_MASK;
	return 0;
}

int cma_create_id(struct cma *cma, uid_t user, uint16_t ps, enum cma_service service, void *ctx,
		  struct cma_id **out)
{
	struct cma_id *id;
	uint32_t tries = 0, psn;
	int rc = draw_psn(&psn);

	if (rc)
		return rc;
	while (tries++ < CMA_IDS && cma->ids[cma->next_number % CMA_IDS])
		cma->next_number++;
	if (tries > CMA_IDS)
		return -ENOSPC;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	id->cma = cma;
	id->ctx = ctx;
	id->number = cma->next_number++ % CMA_IDS;
	id->user = user;
	id->ps = ps;
	id->service = service;
	id->psn = psn;
	cma->ids[id->number] = id;
	*out = id;
	return 0;
}

void cma_destroy_id(struct cma_id *id)
{
	cma_cancel_resolve(id);
	if (id->src.listening)
		cma_early_req_listener_gone(&id->cma->early, id->cma->now, id->src.addr.port);
	cma_port_release(&id->cma->ports, &id->src);
	if (id->conn)
		cm_release(id->conn, id->cma->now);
	id->cma->ids[id->number] = NULL;
	free(id);
}

struct cma_id *cma_find_id(const struct cma *cma, uint32_t number)
{
	return number < CMA_IDS ? cma->ids[number] : NULL;
}

void cma_set_event_private_data(struct cma_event *event, const uint8_t *data, uint32_t len)
{
	event->param.private_len = (uint8_t)(len < 255 ? len : 255);
	memcpy(event->param.private_data, data, event->param.private_len);
}

/* --- Opening, input and timers */

static void send_cm_mad(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	const struct cma *cma = ctx;

	cma->ops->send(cma->ctx, path, mad);
}

static const struct cm_ops cm_ops = {send_cm_mad, cma_on_cm_request, cma_on_cm_event};

static int create_cm(struct cma *cma)
{
	uint8_t seed[CM_SEED_LEN];

	/* Early at boot the kernel may have no entropy yet, for which the daemon's start must not
	 * wait. Linux before 5.6 does not know GRND_INSECURE. */
	if (getrandom(seed, sizeof(seed), GRND_INSECURE) != sizeof(seed) &&
	    getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return -EAGAIN;
	return cm_create(&cm_ops, cma, cma_node_guid(cma->host), seed, &cma->cm);
}

int cma_open(struct cma *cma, const struct host *host, struct neigh *neigh,
	     const struct cma_ops *ops, void *ctx)
{
	int rc;

	*cma = (struct cma){
		.ops = ops, .ctx = ctx, .host = host, .neigh = neigh, .waiting_due = UINT64_MAX};
	cma->ids = calloc(CMA_IDS, sizeof(struct cma_id *));
	rc = cma->ids ? create_cm(cma) : -ENOMEM;
	if (rc)
		cma_close(cma);
	return rc;
}

void cma_close(struct cma *cma)
{
	if (cma->cm)
		cm_destroy(cma->cm);
	free(cma->ids);
	cma_port_close(&cma->ports);
	*cma = (struct cma){0};
}

/* Returns true if the MAD is a request without a listener, and cma_early_req.h keeps it. */
static bool keep_early_request(struct cma *cma, const struct cm_path *path,
			       const uint8_t bytes[CM_MAD_LEN])
{
	struct cm_mad mad;
	uint64_t service_id;

	if (cm_mad_parse(&mad, bytes) || (mad.attr != CM_REQ && mad.attr != CM_SIDR_REQ))
		return false;
	service_id = mad.attr == CM_REQ ? mad.req.service_id : mad.sidr_req.service_id;
	return !cma_has_listener(cma, service_id) &&
	       cma_early_req_keep(&cma->early, cma->now, service_id, path, bytes);
}

void cma_input(struct cma *cma, uint64_t now, const struct cm_path *path,
	       const uint8_t mad[CM_MAD_LEN])
{
	cma->now = now;
	if (!keep_early_request(cma, path, mad))
		cm_input(cma->cm, now, path, mad);
}

/* Passes kept requests that have a listener by now, and expired ones, to the connection manager.
 * The connection manager rejects the expired ones. */
static void input_early_requests(struct cma *cma)
{
	struct cma_early_req request;

	while (cma_early_req_take(&cma->early, cma->now, cma_has_listener, cma, &request))
		cm_input(cma->cm, cma->now, &request.path, request.mad);
}

uint64_t cma_next_deadline(const struct cma *cma)
{
	uint64_t next = earlier(cma_early_req_deadline(&cma->early), cma->waiting_due);

	/* While QP1's queue lacks room, cma_tick cannot send. So the timers do not count: the
	 * caller calls cma_tick when there is room again. */
	if (cma->ops->has_room(cma->ctx))
		next = earlier(next, cm_next_deadline(cma->cm));
	return next;
}

uint64_t cma_tick(struct cma *cma, uint64_t now)
{
	cma->now = now;
	input_early_requests(cma);
	if (cma->ops->has_room(cma->ctx))
		cm_tick(cma->cm, now);
	cma_tick_resolve(cma);
	return cma_next_deadline(cma);
}
