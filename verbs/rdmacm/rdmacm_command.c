/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* write(2) on /dev/infiniband/rdma_cm: reads a command, has it run, writes its response. */
#include "rdmacm/rdmacm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "memory/uaccess.h"
#include "process/cancellation.h"
#include "process/log.h"
#include "rdmacm/rdmacm_event.h"
#include "rdmacm/rdmacm_file.h"
#include "rdmacm/router.h"

/* --- Responses */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Sets *address to the program's address for the response, or to 0 if the command has no response.
 * 0; -EINVAL: the command is too short; -EFAULT: the address is NULL. */
static int response_address(const struct rdmacm_request *request, uint64_t *address)
{
	uint32_t at = rdmacm_response_at(request->command.command);

	*address = 0;
	if (at == RDMACM_NOWHERE || !request->command.out)
		return 0;
	if (request->command.in < at + sizeof(*address))
		return -EINVAL;
	memcpy(address, request->in + at, sizeof(*address));
	return *address ? 0 : -EFAULT;
}

/* Whether the program's memory for the response can be written: 0, or a negative errno value.
 * Checked before the command runs, because an event that was fetched cannot be delivered a second
 * time. */
static int check_response(const struct rdmacm_request *request)
{
	uint64_t address;
	int rc = response_address(request, &address);

	if (rc || !address)
		return rc;
	return uaccess_populate(address, min_u32(request->command.out, CM_ATTACH_BYTES), 1);
}

static int write_response(const struct rdmacm_request *request,
			  const struct rdmacm_response *response)
{
	uint64_t address;
	int rc = response_address(request, &address);

	if (rc || !address)
		return rc;
	return uaccess_write(address, response->out,
			     min_u32(response->reply.out, request->command.out));
}

/* --- Commands */

/* Reads the header and the command that the program writes, to *request. One read for both, since
 * each checked read of program memory is slow. 0 or a negative errno value. */
static int read_command(struct rdmacm_request *request, uint64_t buf, size_t count)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[CM_ATTACH_BYTES];
	} written;
	int rc;

	if (count < sizeof(written.hdr))
		return -EINVAL;
	rc = uaccess_read(&written, buf, count < sizeof(written) ? count : sizeof(written));
	if (rc)
		return rc;
	if (written.hdr.in + sizeof(written.hdr) > count || written.hdr.in > CM_ATTACH_BYTES)
		return -EINVAL;
	/* Commands that only this library gives. */
	if (written.hdr.cmd >= CM_ATTACH_FREEZE)
		return -EINVAL;
	request->command = (struct cm_attach_command){
		.command = written.hdr.cmd, .in = written.hdr.in, .out = written.hdr.out};
	memcpy(request->in, written.in, written.hdr.in);
	memset(request->in + written.hdr.in, 0, sizeof(request->in) - written.hdr.in);
	return 0;
}

/* Returns the open file that has the ID of MIGRATE_ID; the command names it by a descriptor. NULL:
 * no such file, or the command is too short. */
static struct rdmacm_file *migrated_from(const struct rdmacm_request *request)
{
	struct rdma_ucm_migrate_id migrate;

	if (request->command.in < sizeof(migrate))
		return NULL;
	memcpy(&migrate, request->in, sizeof(migrate));
	return rdmacm_lookup((int)migrate.fd);
}

static int run_locked(struct rdmacm_file *file, struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	if (!rdmacm_is_open(file, request))
		return -EBADF;
	return request->from->opening % 2 ? rdmacm_route(file, request, response) : -EINVAL;
}

static int run_command(struct rdmacm_file *file, struct rdmacm_request *request,
		       struct rdmacm_response *response)
{
	int rc, cancel;

	request->from = request->command.command == RDMA_USER_CM_CMD_MIGRATE_ID
				? migrated_from(request)
				: file;
	if (!request->from)
		return -EINVAL;
	cancel = cancellation_disable();
	rdmacm_lock_both(file, request->from);
	rc = run_locked(file, request, response);
	rdmacm_unlock_both(file, request->from);
	cancellation_restore(cancel);
	return rc;
}

static int run_any(struct rdmacm_file *file, int fd, struct rdmacm_request *request,
		   struct rdmacm_response *response)
{
	int rc = check_response(request);

	if (rc)
		return rc;
	rc = request->command.command == RDMA_USER_CM_CMD_GET_EVENT
		     ? rdmacm_get_event(file, fd, request, response)
		     : run_command(file, request, response);
	return rc ? rc : write_response(request, response);
}

static int dispatch_rdmacm_command(struct rdmacm_file *file, int fd, uint64_t buf, size_t count)
{
	struct rdmacm_request request;
	struct rdmacm_response response;
	int rc;

	request.opening = file->opening;
	rc = read_command(&request, buf, count);
	if (rc)
		return rc;
	rc = run_any(file, fd, &request, &response);
	log_debug("rdma_cm %s: %s", rdmacm_command_name(request.command.command),
		  rc ? strerror(-rc) : "ok");
	return rc;
}

ssize_t rdmacm_write(struct rdmacm_file *file, int fd, const void *buf, size_t count)
{
	int rc = file->pid == getpid()
			 ? dispatch_rdmacm_command(file, fd, (uint64_t)(uintptr_t)buf, count)
			 : -EACCES;

	if (!rc)
		return (ssize_t)count;
	errno = -rc;
	return -1;
}
