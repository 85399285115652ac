/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/rdmacm_daemon.h"

#include <errno.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "memory/uaccess.h"
#include "rdmacm/daemon_socket.h"
#include "rdmacm/event_socket.h"
#include "rdmacm/reply_cache.h"

int rdmacm_daemon_confirm_events(struct rdmacm_file *file)
{
	const struct rdmacm_request request = {.command = {.command = RDMA_USER_CM_CMD_GET_EVENT},
					       .opening = file->opening};
	struct rdmacm_response response;

	return rdmacm_daemon_ask(file, &request, &response);
}

/* SET_OPTION contains the value's address; the daemon gets the value behind the command. */
static int append_option(struct rdmacm_request *request)
{
	struct rdma_ucm_set_option option;

	if (request->command.in < sizeof(option))
		return -EINVAL;
	memcpy(&option, request->in, sizeof(option));
	if (option.optlen > CM_ATTACH_OPTION)
		return -EINVAL;
	request->command.in = sizeof(option) + option.optlen;
	return uaccess_read(request->in + sizeof(option), option.optval, option.optlen);
}

/*
 * MIGRATE_ID names the other device by its token. That device's fetched events stay there, so the
 * daemon has to know them before it moves the ID.
 */
static int prepare_migration(struct rdmacm_request *request)
{
	request->command.token = request->from->token;
	return rdmacm_daemon_confirm_events(request->from);
}

static int prepare_command(struct rdmacm_request *request)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_SET_OPTION: return append_option(request);
	case RDMA_USER_CM_CMD_MIGRATE_ID: return prepare_migration(request);
	default: return 0;
	}
}

int rdmacm_daemon_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	int rc;

	if (rdmacm_reply_cache_get(file, request, response))
		return 0;
	rc = prepare_command(request);
	if (!rc)
		rc = rdmacm_daemon_ask(file, request, response);
	if (rc)
		return rc;
	rdmacm_reply_cache_invalidate(file, request);
	rdmacm_reply_cache_invalidate(request->from, request);
	rdmacm_events_take_back(request->from, &response->reply);
	return response->reply.status;
}
