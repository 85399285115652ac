/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "memory/uaccess.h"
#include "process/high_fd.h"
#include "process/libc_real.h"
#include "process/run_dir.h"

int rdmacm_kernel_open(void)
{
	return high_fd(REAL(open)("/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

/* --- Files of the daemon and of the kernel */

/* Returns the number of bytes, at most `size`, or a negative errno value. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size);
	if (n < 0)
		n = -errno;
	REAL(close)(fd);
	return n;
}

ssize_t rdmacm_kernel_read_hca(char *text, size_t size)
{
	const char *dir = run_dir_path();
	char path[PATH_MAX];
	ssize_t n;

	if (!dir || snprintf(path, sizeof(path), "%s/" VNIC_HCA_FILE, dir) >= PATH_MAX)
		return 0;
	n = read_file(path, text, size);
	return n == -ENOENT ? 0 : n;
}

int rdmacm_kernel_has_active_hca(void)
{
	char first;
	ssize_t n = rdmacm_kernel_read_hca(&first, sizeof(first));

	if (n == -EMFILE || n == -ENFILE || n == -ENOMEM)
		return (int)n;
	return n > 0 && first != '\n';
}

/* Reads a line of a port's file, without its end. 0 or a negative errno value. */
__attribute__((format(printf, 3, 4))) static int read_line(char *text, size_t size, const char *fmt,
							   ...)
{
	char path[PATH_MAX];
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	n = read_file(path, text, size - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int rdmacm_kernel_read_gid(const char *device, uint8_t port, uint32_t index,
			   struct rdmacm_kernel_gid *entry)
{
	char gid[INET6_ADDRSTRLEN], type[16];
	int rc = read_line(gid, sizeof(gid), "/sys/class/infiniband/%s/ports/%u/gids/%u", device,
			   port, index);

	if (!rc)
		rc = read_line(type, sizeof(type),
			       "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/%u", device, port,
			       index);
	if (rc)
		return rc;
	entry->v1 = strcmp(type, "RoCE v2") != 0;
	return inet_pton(AF_INET6, gid, entry->gid) == 1 ? 0 : -EINVAL;
}

/* --- Commands */

struct kernel_command {
	struct rdma_ucm_cmd_hdr hdr;
	uint8_t in[CM_ATTACH_BYTES];
};

static int put_member(struct kernel_command *c, uint32_t at, const void *value, uint32_t size)
{
	if (at == RDMACM_NOWHERE)
		return 0;
	if (c->hdr.in < at + size)
		return -EINVAL;
	memcpy(c->in + at, value, size);
	return 0;
}

int rdmacm_kernel_run(struct rdmacm_file *file, const struct rdmacm_request *request,
		      uint32_t kernel_id, struct rdmacm_response *response)
{
	uint32_t command = request->command.command, at = rdmacm_response_at(command);
	uint32_t out =
		request->command.out < CM_ATTACH_BYTES ? request->command.out : CM_ATTACH_BYTES;
	uint64_t address = (uintptr_t)response->out;
	struct kernel_command c = {
		.hdr = {.cmd = command, .in = (uint16_t)request->command.in, .out = (uint16_t)out}};
	int rc;

	memcpy(c.in, request->in, request->command.in);
	rc = put_member(&c, rdmacm_id_at(command), &kernel_id, sizeof(kernel_id));
	if (!rc)
		rc = put_member(&c, at, &address, sizeof(address));
	if (rc)
		return rc;
	memset(response->out, 0, out);
	response->reply = (struct cm_attach_reply){.out = at == RDMACM_NOWHERE ? 0 : out};
	return write(file->kernel, &c, sizeof(c.hdr) + c.hdr.in) < 0 ? -errno : 0;
}

/* --- IDs */

/* Sets the noted options of the kernel's ID, which is new. Ignores -ENOSYS and -EINVAL, because an
 * old kernel lacks some options that the daemon has. */
static int repeat_options(struct rdmacm_file *file, const struct rdmacm_id *id)
{
	int rc = 0;

	for (uint32_t i = 0; i < RDMACM_OPTIONS && !rc; i++) {
		const struct rdma_ucm_set_option set = {.optval = (uintptr_t)id->options[i].value,
							.level = RDMA_OPTION_ID,
							.optname = i,
							.optlen = id->options[i].len};
		struct rdmacm_request request = rdmacm_request_make(
			file, RDMA_USER_CM_CMD_SET_OPTION, &set, sizeof(set), 0);
		struct rdmacm_response response;

		if (id->options[i].len)
			rc = rdmacm_kernel_run(file, &request, id->kernel_id, &response);
		if (rc == -ENOSYS || rc == -EINVAL)
			rc = 0;
	}
	return rc;
}

int rdmacm_kernel_create(struct rdmacm_file *file, struct rdmacm_id *id)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdmacm_request request = rdmacm_request_make(
		file, RDMA_USER_CM_CMD_CREATE_ID, &id->create, sizeof(id->create), sizeof(resp));
	struct rdmacm_response response;
	int rc = id->in_kernel ? 0 : rdmacm_kernel_run(file, &request, 0, &response);

	if (rc || id->in_kernel)
		return rc;
	memcpy(&resp, response.out, sizeof(resp));
	id->in_kernel = true;
	id->kernel_id = resp.id;
	rc = repeat_options(file, id);
	/* If the ID stayed, the next call would use it without the options. */
	if (rc)
		(void)rdmacm_kernel_destroy(file, id);
	return rc;
}

void rdmacm_kernel_note_option(struct rdmacm_id *id, const struct rdmacm_request *request)
{
	struct rdma_ucm_set_option set;

	memcpy(&set, request->in, sizeof(set));
	if (set.level != RDMA_OPTION_ID || set.optname >= RDMACM_OPTIONS ||
	    set.optlen > sizeof(id->options[0].value) ||
	    uaccess_read(id->options[set.optname].value, set.optval, set.optlen))
		return;
	id->options[set.optname].len = (uint8_t)set.optlen;
}

int rdmacm_kernel_set_option(struct rdmacm_file *file, struct rdmacm_id *id,
			     const struct rdmacm_request *request)
{
	struct rdmacm_response response;
	int rc = rdmacm_kernel_create(file, id);

	if (!rc)
		rc = rdmacm_kernel_run(file, request, id->kernel_id, &response);
	/* The kernel has refused a command that is too short: rdmacm_kernel_run() fills it with
	 * zeros, so its optlen was 0. */
	if (!rc)
		rdmacm_kernel_note_option(id, request);
	return rc;
}

/* Returns the kernel's count of events, from a response to DESTROY_ID or MIGRATE_ID, without events
 * that the program never got. librdmacm waits until the program has acknowledged so many events. */
static uint32_t visible_events(const struct rdmacm_id *id, const struct rdmacm_response *response)
{
	struct rdma_ucm_destroy_id_resp resp;

	memcpy(&resp, response->out, sizeof(resp));
	return resp.events_reported > id->hidden_events ? resp.events_reported - id->hidden_events
							: 0;
}

uint32_t rdmacm_kernel_destroy(struct rdmacm_file *file, struct rdmacm_id *id)
{
	const struct rdma_ucm_destroy_id destroy = {.id = id->kernel_id};
	struct rdmacm_request request =
		rdmacm_request_make(file, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy),
				    sizeof(struct rdma_ucm_destroy_id_resp));
	struct rdmacm_response response;

	if (!id->in_kernel)
		return 0;
	id->in_kernel = id->bound = false;
	return rdmacm_kernel_run(file, &request, id->kernel_id, &response)
		       ? 0
		       : visible_events(id, &response);
}

int rdmacm_kernel_migrate(struct rdmacm_file *from, struct rdmacm_file *to, struct rdmacm_id *id)
{
	const struct rdma_ucm_migrate_id migrate = {.fd = (uint32_t)from->kernel};
	struct rdmacm_request request =
		rdmacm_request_make(to, RDMA_USER_CM_CMD_MIGRATE_ID, &migrate, sizeof(migrate),
				    sizeof(struct rdma_ucm_migrate_resp));
	struct rdmacm_response response;
	int rc;

	if (!id->in_kernel)
		return 0;
	rc = rdmacm_kernel_run(to, &request, id->kernel_id, &response);
	return rc ? rc : (int)visible_events(id, &response);
}

int rdmacm_kernel_bind(struct rdmacm_file *file, struct rdmacm_id *id,
		       const struct rdma_ucm_query_addr_resp *addr)
{
	const struct rdma_ucm_bind bind = {.addr_size = addr->src_size, .addr = addr->src_addr};
	struct rdmacm_request request =
		rdmacm_request_make(file, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
	struct rdmacm_response response;
	int rc = rdmacm_kernel_create(file, id);

	if (!rc)
		rc = rdmacm_kernel_run(file, &request, id->kernel_id, &response);
	id->bound = !rc;
	return rc;
}
