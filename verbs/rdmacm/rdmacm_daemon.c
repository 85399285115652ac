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

/* Appends the option's value to SET_OPTION, which contains only the value's address. 0; -EINVAL:
 * the command is too short, or the value too long; or the error of the read. */
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

static int ask_with_option(struct rdmacm_file *file, struct rdmacm_request *request,
			   struct rdmacm_response *response)
{
	int rc = append_option(request);

	return rc ? rc : rdmacm_daemon_ask(file, request, response);
}

/*
 * Has the daemon move an ID from the open file request->from, which it knows by the token, to
 * `file`. Events of the ID that the program has fetched at the other file stay there, so the daemon
 * has to know them before it moves the ID. If a new daemon came meanwhile, tries again: the new
 * daemon does not know the other file (-EINVAL) until this thread, which has that file's lock, has
 * claimed it.
 */
static int ask_to_migrate(struct rdmacm_file *file, struct rdmacm_request *request,
			  struct rdmacm_response *response)
{
	uint64_t lost_at;
	int rc;

	request->command.token = request->from->token;
	do {
		lost_at = file->lost_at;
		rc = rdmacm_daemon_confirm_events(request->from);
		if (!rc)
			rc = rdmacm_daemon_ask(file, request, response);
	} while (!rc && response->reply.status == -EINVAL && file->lost_at != lost_at);
	return rc;
}

static int ask_daemon(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	switch (request->command.command) {
	case RDMA_USER_CM_CMD_SET_OPTION: return ask_with_option(file, request, response);
	case RDMA_USER_CM_CMD_MIGRATE_ID: return ask_to_migrate(file, request, response);
	default: return rdmacm_daemon_ask(file, request, response);
	}
}

int rdmacm_daemon_run(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	int rc;

	if (rdmacm_reply_cache_get(file, request, response))
		return 0;
	rc = ask_daemon(file, request, response);
	if (rc)
		return rc;
	rdmacm_reply_cache_invalidate(file, request);
	rdmacm_reply_cache_invalidate(request->from, request);
	rdmacm_events_take_back(request->from, &response->reply);
	return response->reply.status;
}
