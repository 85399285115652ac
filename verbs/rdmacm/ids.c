/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/ids.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#define IDS             65536 /* as many as librdmacm knows, and urxed has */
#define CONNECT_REQUEST 4     /* of enum rdma_cm_event_type */
#define DEVICE_REMOVAL  11

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Without memory the ID goes without notice, no more. */
static void know(struct rdmacm_file *file, uint32_t number, struct rdmacm_id id)
{
	if (!file->ids)
		file->ids = calloc(IDS, sizeof(*file->ids));
	if (file->ids && number < IDS)
		file->ids[number] = id;
}

static struct rdmacm_id get(const struct rdmacm_file *file, uint32_t number)
{
	return file->ids && number < IDS ? file->ids[number] : (struct rdmacm_id){.uid = 0};
}

static void created(struct rdmacm_file *file, const struct rdmacm_request *request,
		    const struct rdmacm_response *response)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id create;

	memcpy(&create, request->in, sizeof(create));
	memcpy(&resp, response->out, sizeof(resp));
	know(file, resp.id, (struct rdmacm_id){.uid = create.uid, .there = true});
}

static void accepted(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	struct rdma_ucm_accept accept;

	memcpy(&accept, request->in, sizeof(accept));
	if (accept.conn_param.valid)
		know(file, accept.id, (struct rdmacm_id){.uid = accept.uid, .there = true});
}

static void fetched(struct rdmacm_file *file, const struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event;

	memcpy(&event, response->out, sizeof(event));
	if (event.event == CONNECT_REQUEST)
		know(file, event.id, (struct rdmacm_id){.there = true});
}

static void migrated(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	struct rdmacm_file *from = rdmacm_migrated_from(request);
	struct rdma_ucm_migrate_id migrate;
	struct rdmacm_id id;

	memcpy(&migrate, request->in, sizeof(migrate));
	if (!from)
		return;
	id = get(from, migrate.id);
	know(from, migrate.id, (struct rdmacm_id){.uid = 0});
	know(file, migrate.id, id);
}

void rdmacm_ids_done(struct rdmacm_file *file, const struct rdmacm_request *request,
		     const struct rdmacm_response *response)
{
	pthread_mutex_lock(&lock);
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_CREATE_ID: created(file, request, response); break;
	case RDMA_USER_CM_CMD_ACCEPT: accepted(file, request); break;
	case RDMA_USER_CM_CMD_MIGRATE_ID: migrated(file, request); break;
	case RDMA_USER_CM_CMD_GET_EVENT: fetched(file, response); break;
	default: break;
	}
	pthread_mutex_unlock(&lock);
}

static uint32_t number_in(const struct rdmacm_request *request)
{
	struct rdma_ucm_destroy_id destroy;

	memcpy(&destroy, request->in, sizeof(destroy));
	return destroy.id;
}

struct rdmacm_id rdmacm_ids_take(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	struct rdmacm_id id;

	pthread_mutex_lock(&lock);
	id = get(file, number_in(request));
	if (id.there)
		know(file, number_in(request), (struct rdmacm_id){.uid = 0});
	pthread_mutex_unlock(&lock);
	return id;
}

void rdmacm_ids_restore(struct rdmacm_file *file, const struct rdmacm_request *request,
			struct rdmacm_id id)
{
	pthread_mutex_lock(&lock);
	if (id.there)
		know(file, number_in(request), id);
	pthread_mutex_unlock(&lock);
}

bool rdmacm_ids_destroyed(struct rdmacm_id id, struct rdmacm_response *response)
{
	const struct rdma_ucm_destroy_id_resp resp = {.events_reported = id.told};

	memcpy(response->out, &resp, sizeof(resp));
	response->reply = (struct cm_attach_reply){.out = sizeof(resp)};
	return id.there;
}

int rdmacm_ids_invent(struct rdmacm_file *file, uint32_t *number)
{
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < IDS && get(file, i).there)
		i++;
	if (i < IDS)
		know(file, i, (struct rdmacm_id){.there = true, .elsewhere = true});
	pthread_mutex_unlock(&lock);
	*number = i;
	return i < IDS ? 0 : -ENOSPC;
}

void rdmacm_ids_elsewhere(struct rdmacm_file *file, uint32_t number, bool elsewhere)
{
	pthread_mutex_lock(&lock);
	if (get(file, number).there)
		file->ids[number].elsewhere = elsewhere;
	pthread_mutex_unlock(&lock);
}

static bool is_untold(struct rdmacm_id id)
{
	return id.uid && !id.told && !id.elsewhere;
}

/* IDS: there is none. */
static uint32_t next_untold(const struct rdmacm_file *file)
{
	uint32_t i = file->ids ? 0 : IDS;

	while (i < IDS && !is_untold(file->ids[i]))
		i++;
	return i;
}

bool rdmacm_ids_removal(struct rdmacm_file *file, struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event = {.event = DEVICE_REMOVAL};

	pthread_mutex_lock(&lock);
	event.id = next_untold(file);
	if (event.id < IDS) {
		file->ids[event.id].told = true;
		event.uid = file->ids[event.id].uid;
	}
	pthread_mutex_unlock(&lock);
	memcpy(response->out, &event, sizeof(event));
	response->reply =
		(struct cm_attach_reply){.out = offsetof(struct rdma_ucm_event_resp, reserved)};
	return event.id < IDS;
}

void rdmacm_ids_forget(struct rdmacm_file *file)
{
	pthread_mutex_lock(&lock);
	free(file->ids);
	file->ids = NULL;
	pthread_mutex_unlock(&lock);
}
