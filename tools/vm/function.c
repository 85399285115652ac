/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/function.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

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
	if (!rc)
		rc = listen_socket_open(&f->listener, path);
	if (rc == -EADDRINUSE)
		snprintf(error, FUNCTION_ERROR, "another process listens at %s", path);
	else if (rc)
		snprintf(error, FUNCTION_ERROR, "cannot listen at %s: %s", path, strerror(-rc));
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
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	f->watched = fd;
	f->events = EPOLLIN;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/*
 * A client that does not read its replies, or whose memory a peer still copies, gets no further
 * messages handled.
 */
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

void function_accept(struct function *f, int epoll_fd)
{
	int fd = accept4(f->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	/* The client before may have ended already: its end is among the same events. */
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
