/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/function.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/epoll_readable.h"
#include "common/log.h"

int function_init(struct function *f, const char *name)
{
	*f = (struct function){.name = name, .listener.fd = -1, .watched = -1};
	return vnic_guest_memory_create(&f->memory);
}

int function_serve(struct function *f, const char *path, struct vnic_vfio_attr *attr,
		   char error[FUNCTION_ERROR])
{
	int rc;

	attr->memory = f->memory;
	rc = vnic_vfio_server_create(attr, &f->server);
	if (rc) {
		snprintf(error, FUNCTION_ERROR, "cannot serve the device: %s", strerror(-rc));
		return rc;
	}
	if (path)
		rc = listen_socket_open(&f->listener, path, SOCK_STREAM);
	if (rc)
		snprintf(error, FUNCTION_ERROR, "cannot listen at %s: %s", path,
			 listen_socket_error(rc));
	return rc;
}

void function_stop(struct function *f)
{
	vnic_vfio_server_destroy(f->server);
	f->server = NULL;
	f->watched = -1;
}

void function_close(struct function *f)
{
	if (!f->memory)
		return;
	listen_socket_close(&f->listener);
	vnic_guest_memory_destroy(f->memory);
	f->memory = NULL;
}

static int watch_client(struct function *f, int epoll_fd, int fd)
{
	f->watched = fd;
	f->events = EPOLLIN;
	f->lost = 0;
	return epoll_add_readable(epoll_fd, fd);
}

int function_adopt_client(struct function *f, int epoll_fd)
{
	const int fd = vnic_vfio_server_fd(f->server);

	return fd < 0 ? 0 : watch_client(f, epoll_fd, fd);
}

/* While the server holds a reply (vnic_vfio_server_is_held), or waits until the client reads
 * earlier replies, it handles no message. So further messages must not wake the process. */
static void update_watch(struct function *f, int epoll_fd)
{
	const uint32_t events = vnic_vfio_server_is_held(f->server)      ? 0
				: vnic_vfio_server_is_writing(f->server) ? EPOLLOUT
									 : EPOLLIN;
	struct epoll_event event = {.events = events, .data.fd = f->watched};

	if (events != f->events && !epoll_ctl(epoll_fd, EPOLL_CTL_MOD, f->watched, &event))
		f->events = events;
}

void function_event(struct function *f, int epoll_fd)
{
	int rc = vnic_vfio_server_event(f->server);

	if (rc >= 0) {
		if (f->watched >= 0)
			update_watch(f, epoll_fd);
		return;
	}
	/* The server has closed the socket, which ended its watch. */
	f->watched = -1;
	log_line("%s: the virtual machine is gone%s", f->name,
		 rc == -ECONNRESET ? "" : ": it broke the vfio-user protocol");
}

/* --- Migration */

void function_pausing(struct function *f)
{
	if (f->owner)
		f->owner->pausing(f->owner->ctx);
}

static void tell_change(const struct function *f)
{
	if (f->owner)
		f->owner->changed(f->owner->ctx);
}

void function_set_paused(struct function *f, bool paused)
{
	f->paused = paused;
	tell_change(f);
}

void function_set_logging(void *ctx, bool on)
{
	struct function *f = ctx;

	f->logging = on;
	tell_change(f);
}

void function_saving(struct function *f)
{
	if (f->owner)
		f->owner->saving(f->owner->ctx);
}

static const char *explain_state_refusal(int error)
{
	switch (error) {
	case -EBADMSG: return "it is truncated or damaged";
	case -EPROTONOSUPPORT: return "a later version of urxe has written it";
	case -EINVAL:
		return "it is of a device with another --mac, --roce or kind, or with a longer MTU "
		       "than this host has";
	case -EFAULT: return "the machine has no memory here where the device used some";
	default: return strerror(-error);
	}
}

void function_state_refused(void *ctx, int error)
{
	const struct function *f = ctx;

	log_line("%s: refused the state of the machine's device: %s", f->name,
		 explain_state_refusal(error));
}

void function_interrupt(void *ctx, uint32_t vector)
{
	vnic_vfio_server_interrupt(((struct function *)ctx)->server, vector);
}

/* --- Memory that the function cannot use */

static const char *explain_refusal(int error)
{
	switch (error) {
	case -EOPNOTSUPP:
		return "its file is neither memory (memfd, tmpfs, hugetlbfs) nor on ext4, XFS or "
		       "Btrfs";
	case -EFBIG: return "its file is shorter";
	case -ENOSPC: return "the machine has too many pieces of memory";
	default: return strerror(-error);
	}
}

void function_memory_refused(void *ctx, uint64_t addr, uint64_t size, int error)
{
	const struct function *f = ctx;

	log_line("%s: refused the machine's memory at %#" PRIx64 ", %" PRIu64 " bytes: %s", f->name,
		 addr, size, explain_refusal(error));
}

/* Most log lines about lost pages of a client. A hypervisor that shortens a file loses many pages,
 * and the first lines tell enough. */
#define LOST_LINES 8

void function_memory_lost(void *ctx, uint64_t addr, uint64_t size)
{
	struct function *f = ctx;

	if (++f->lost > LOST_LINES)
		return;
	log_line("%s: the host cannot give the machine's memory at %#" PRIx64 ", %" PRIu64
		 " bytes; accesses to it fail from now on: did the hypervisor shorten the file, or "
		 "does the host have no free huge page?",
		 f->name, addr, size);
}

bool function_check_memory(struct function *f)
{
	const uint32_t before = f->lost;

	vnic_vfio_server_check_memory(f->server);
	return f->lost != before;
}

void function_accept(struct function *f, int epoll_fd)
{
	int fd = accept4(f->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	/* The earlier client may have ended, and the loop may not have handled that event yet. */
	if (f->watched >= 0)
		function_event(f, epoll_fd);
	if (vnic_vfio_server_connect(f->server, fd)) {
		log_line("%s: refused a second client", f->name);
		close(fd);
	} else if (watch_client(f, epoll_fd, fd)) {
		vnic_vfio_server_disconnect(f->server);
		f->watched = -1;
	} else {
		log_line("%s: a virtual machine has connected", f->name);
	}
}
