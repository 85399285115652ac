/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/rdmacm_event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/cancellation.h"
#include "rdmacm/event_socket.h"
#include "rdmacm/ids.h"
#include "rdmacm/rdmacm_daemon.h"
#include "rdmacm/reply_cache.h"
#include "rdmacm/router.h"

/* Of enum rdma_cm_event_type. */
#define CONNECT_REQUEST 4
#define MULTICAST_JOIN  12
#define MULTICAST_ERROR 13

/* --- The daemon's events; with file->lock */

/*
 * Counts an event that the program gets at the event's ID, for the response of DESTROY_ID if no
 * daemon comes any more: librdmacm waits until the program has acknowledged as many events before
 * it frees the ID. An event of a multicast group has the group's number and does not count:
 * librdmacm frees the ID too early at worst, instead of never.
 */
static void count_event(struct rdmacm_file *file, const struct rdma_ucm_event_resp *event)
{
	struct rdmacm_id *id;

	if (event->event == MULTICAST_JOIN || event->event == MULTICAST_ERROR)
		return;
	id = event->event == CONNECT_REQUEST ? rdmacm_id_find_uid(file, event->uid)
					     : rdmacm_id_find(file, event->id);
	if (id)
		id->events++;
}

static int fetch_daemon_event(struct rdmacm_file *file, const struct rdmacm_request *request,
			      struct rdmacm_response *response)
{
	struct rdma_ucm_event_resp event;
	struct rdmacm_event_packet packet;
	int rc = rdmacm_event_receive(file, &packet);

	if (rc)
		return rc;
	memcpy(&event, packet.bytes, offsetof(struct rdma_ucm_event_resp, param));
	count_event(file, &event);
	if (event.event == CONNECT_REQUEST)
		rdmacm_id_add(file, event.id);
	rdmacm_reply_cache_put(file, event.id, packet.bytes + packet.head.out, packet.head.cached);
	response->reply = (struct cm_attach_reply){.out = packet.head.out < request->command.out
								  ? packet.head.out
								  : request->command.out};
	memcpy(response->out, packet.bytes, packet.head.out);
	if (packet.head.confirm)
		(void)rdmacm_daemon_confirm_events(file);
	return 0;
}

/* Sets *response to the daemon's next event, or, if no daemon comes any more, to DEVICE_REMOVAL of
 * an ID. 0; -EAGAIN: no event now; -EIO: no event, and no kernel's rdma_cm to wait for. */
static int next_daemon_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
			     struct rdmacm_response *response)
{
	int rc = fetch_daemon_event(file, request, response);

	if (rc != -EIO)
		return rc;
	if (rdmacm_ids_removal(file, response))
		return 0;
	if (file->kernel < 0)
		return -EIO;
	/* The kernel's events still come. The daemon's socket, which has ended, must not wake each
	 * wait for them. */
	(void)epoll_ctl(fd, EPOLL_CTL_DEL, file->event_reader, NULL);
	return -EAGAIN;
}

/* --- Events of the daemon and of the kernel */

/* Sets *response to the next event. Asks the daemon and the kernel in turn, so that the events of
 * one do not delay those of the other without end. 0; RDMACM_HIDDEN; -EAGAIN: no event now; -EBADF:
 * another thread has closed the file; or another negative errno value. */
static int take_turn(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc = -EAGAIN;

	if (!rdmacm_is_open(file, request))
		return -EBADF;
	if (file->kernel < 0)
		return next_daemon_event(file, fd, request, response);
	for (int i = 0; i < 2 && rc == -EAGAIN; i++) {
		const bool kernel = file->kernel_first;

		file->kernel_first = !kernel;
		rc = kernel ? rdmacm_route_kernel_event(file, request, response)
			    : next_daemon_event(file, fd, request, response);
	}
	return rc;
}

static int next_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	const int cancel = cancellation_disable();
	int rc;

	/* Takes the lock for each event, so that commands go on while peers send many requests that
	 * are refused. */
	do {
		pthread_mutex_lock(&file->lock);
		rc = take_turn(file, fd, request, response);
		pthread_mutex_unlock(&file->lock);
	} while (rc == RDMACM_HIDDEN);
	cancellation_restore(cancel);
	return rc;
}

/* --- Waiting; without file->lock, and a thread may be cancelled here, as in the kernel */

/* Waits for the daemon's next event, or the end of its socket. Leaves the packet to next_event(). A
 * blocking recv(2) goes on after a handler with SA_RESTART. 0 or a negative errno value. */
static int wait_for_daemon(const struct rdmacm_file *file)
{
	uint8_t byte;

	return recv(file->event_reader, &byte, sizeof(byte), MSG_PEEK) < 0 ? -errno : 0;
}

/* Waits for an event of the daemon or the kernel. fd is an epoll set, at which only poll(2) can
 * wait: any signal handler ends that (-EINTR). 0 or a negative errno value. */
static int wait_for_both(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	if (poll(&pollfd, 1, -1) < 0)
		return -errno;
	return pollfd.revents & POLLNVAL ? -EBADF : 0;
}

/* Whether the daemon's events are all that may come. If so, counts the thread in file->n_waiting.
 */
static bool begin_wait_for_daemon(struct rdmacm_file *file)
{
	bool alone;

	pthread_mutex_lock(&file->lock);
	alone = file->kernel < 0;
	file->n_waiting += alone;
	pthread_mutex_unlock(&file->lock);
	return alone;
}

/* A thread that is cancelled in its wait stays counted. For it rdmacm_event_wake() sends one packet
 * too many, which another thread skips. */
static void end_wait_for_daemon(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	pthread_mutex_lock(&file->lock);
	if (rdmacm_is_open(file, request))
		file->n_waiting--;
	pthread_mutex_unlock(&file->lock);
}

static int wait_for_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request)
{
	int flags = fcntl(fd, F_GETFL), rc;

	if (flags >= 0 && flags & O_NONBLOCK)
		return -EAGAIN;
	if (!begin_wait_for_daemon(file))
		return wait_for_both(fd);
	rc = wait_for_daemon(file);
	end_wait_for_daemon(file, request);
	return rc;
}

static bool is_closed(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	bool closed;

	pthread_mutex_lock(&file->lock);
	closed = !rdmacm_is_open(file, request);
	pthread_mutex_unlock(&file->lock);
	return closed;
}

int rdmacm_get_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc;

	if (request->command.out < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	while ((rc = next_event(file, fd, request, response)) == -EAGAIN) {
		rc = wait_for_event(file, fd, request);
		if (rc)
			break;
	}
	/* After a close by another thread, the number `fd` may be another file's, so any error may
	 * mean the close. A child that a signal handler has forked does not wait. */
	if (!rc || rc == -EAGAIN || rc == -EINTR || file->pid != getpid() ||
	    !is_closed(file, request))
		return rc;
	/*
	 * Programs close the device while a thread of theirs waits for its events. In the kernel,
	 * that thread waits for ever or until a signal, and programs rely on that.
	 */
	pause();
	return -EINTR;
}
