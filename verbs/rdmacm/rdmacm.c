/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/rdmacm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cm/attach.h>
#include <rdma/rdma_user_cm.h>

#include "log.h"
#include "path.h"
#include "rdmacm/daemon_link.h"
#include "rdmacm/file.h"
#include "rdmacm/ids.h"
#include "rdmacm/kernel.h"
#include "rdmacm/reply_cache.h"
#include "user.h"

static LIST_HEAD(, rdmacm_file) unused = LIST_HEAD_INITIALIZER(unused);
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Opening and closing */

/* A close(2) that succeeds leaves errno alone: programs look at it only after they have cleaned up.
 */
static void drop(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void closed(struct fd_object *object)
{
	struct rdmacm_file *file = (struct rdmacm_file *)object;

	pthread_mutex_lock(&file->lock);
	file->opening++;
	rdmacm_link_close(file);
	rdmacm_foretold_forget(file);
	drop(file->reader);
	drop(file->kernel);
	file->reader = file->kernel = -1;
	pthread_cond_broadcast(&file->found);
	pthread_mutex_unlock(&file->lock);
	rdmacm_ids_forget(file);
	pthread_mutex_lock(&unused_lock);
	LIST_INSERT_HEAD(&unused, file, link);
	pthread_mutex_unlock(&unused_lock);
}

void rdmacm_file_unlocked(struct rdmacm_file *file)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&file->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&file->found, &attr);
	pthread_condattr_destroy(&attr);
}

static struct rdmacm_file *file_alloc(void)
{
	struct rdmacm_file *file;

	pthread_mutex_lock(&unused_lock);
	file = LIST_FIRST(&unused);
	if (file)
		LIST_REMOVE(file, link);
	pthread_mutex_unlock(&unused_lock);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->fd = (struct fd_object){.kind = FD_RDMACM, .release = closed};
	file->socket = file->reader = file->bell = file->kernel = -1;
	rdmacm_file_unlocked(file);
	return file;
}

static int watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* In place of the descriptor for urxed's events one for the kernel's, too. */
static int join_events(struct rdmacm_file *file, int *fd)
{
	int rc;

	file->reader = *fd;
	*fd = epoll_create1(EPOLL_CLOEXEC);
	if (*fd < 0)
		return -errno;
	rc = watch(*fd, file->reader);
	return rc ? rc : watch(*fd, file->kernel);
}

static int set_up_events(struct rdmacm_file *file, int *fd)
{
	file->kernel = rdmacm_kernel_open(file);
	if (file->kernel >= 0)
		return join_events(file, fd);
	file->reader = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	return file->reader < 0 ? -errno : 0;
}

static int set_flags(int fd, int flags)
{
	if (flags & O_NONBLOCK && fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return !(flags & O_CLOEXEC) && fcntl(fd, F_SETFD, 0) ? -errno : 0;
}

/* Its two ends. A child has neither: packets would be the parent's. */
static int make_bell(struct rdmacm_file *file, int *fd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	*fd = pair[0];
	file->bell = pair[1];
	return 0;
}

int rdmacm_open(int flags)
{
	struct rdmacm_file *file = file_alloc();
	int fd = -1, rc;

	if (!file)
		return -ENOMEM;
	file->pid = getpid();
	rc = make_bell(file, &fd);
	if (!rc)
		rc = set_up_events(file, &fd);
	if (!rc)
		rc = rdmacm_link_open(file);
	if (!rc)
		rc = set_flags(fd, flags);
	if (!rc)
		rc = fd_install(fd, &file->fd);
	if (rc) {
		if (fd >= 0)
			close(fd);
		closed(&file->fd);
		return rc;
	}
	return fd;
}

/* --- Commands */

static const char *name_of(uint32_t command)
{
	static const char *const names[] = {
		"CREATE_ID",   "DESTROY_ID",    "BIND_IP",     "RESOLVE_IP", "RESOLVE_ROUTE",
		"QUERY_ROUTE", "CONNECT",       "LISTEN",      "ACCEPT",     "REJECT",
		"DISCONNECT",  "INIT_QP_ATTR",  "GET_EVENT",   "GET_OPTION", "SET_OPTION",
		"NOTIFY",      "JOIN_IP_MCAST", "LEAVE_MCAST", "MIGRATE_ID", "QUERY",
		"BIND",        "RESOLVE_ADDR",  "JOIN_MCAST",
	};

	return command < sizeof(names) / sizeof(names[0]) ? names[command] : "unknown";
}

/* With the lock. Packets that come again, or nobody is to fetch any more. */
static void take_back(struct rdmacm_file *file, uint32_t n)
{
	uint8_t byte;

	while (n-- && recv(file->reader, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
}

static int exchange(struct rdmacm_file *file, const struct rdmacm_request *request,
		    struct rdmacm_response *response)
{
	int rc = 0;

	pthread_mutex_lock(&file->lock);
	if (!rdmacm_foretold_answer(file, request, response)) {
		rc = rdmacm_link_ask(file, request, response);
		rdmacm_foretold_done(file, request);
		if (!rc)
			take_back(file, response->reply.withdrawn);
	}
	pthread_mutex_unlock(&file->lock);
	return rc ? rc : response->reply.status;
}

/* SET_OPTION points to the value, which goes along behind it. */
static int append_option(struct rdmacm_request *request)
{
	struct rdma_ucm_set_option option;

	if (request->command.in < sizeof(option))
		return -EINVAL;
	memcpy(&option, request->in, sizeof(option));
	if (option.optlen > CM_ATTACH_OPTION)
		return -EINVAL;
	request->command.in = sizeof(option) + option.optlen;
	return user_read(request->in + sizeof(option), option.optval, option.optlen);
}

/* MIGRATE_ID names another open device by its descriptor; to the daemon, that is its token. */
struct rdmacm_file *rdmacm_migrated_from(const struct rdmacm_request *request)
{
	struct rdma_ucm_migrate_id migrate;

	if (request->command.in < sizeof(migrate))
		return NULL;
	memcpy(&migrate, request->in, sizeof(migrate));
	return rdmacm_lookup((int)migrate.fd);
}

/*
 * With the lock. What was fetched is known to urxed afterwards. -EIO: there is none any more, or
 * the file is not that one any more.
 */
static int tell_fetched(struct rdmacm_file *file, unsigned int opening)
{
	const struct rdmacm_request request = {.command = {.command = RDMA_USER_CM_CMD_GET_EVENT},
					       .opening = opening};
	struct rdmacm_response response;

	return rdmacm_link_ask(file, &request, &response);
}

/*
 * Both locks, the second one without waiting for it, so that two that take them the other way round
 * do not wait for each other. Nobody fetches an event meanwhile that goes from one to the other.
 */
static int lock_both(struct rdmacm_file *from, struct rdmacm_file *file)
{
	for (;;) {
		int rc;

		pthread_mutex_lock(&from->lock);
		rc = tell_fetched(from, from->opening);
		if (!rc && (from == file || !pthread_mutex_trylock(&file->lock)))
			return 0;
		pthread_mutex_unlock(&from->lock);
		if (rc)
			return rc;
		sched_yield();
	}
}

static int migrate(struct rdmacm_file *file, struct rdmacm_request *request,
		   struct rdmacm_response *response)
{
	struct rdmacm_file *from = rdmacm_migrated_from(request);
	int rc;

	if (!from)
		return -EINVAL;
	rc = lock_both(from, file);
	if (rc)
		return rc;
	request->command.token = from->token;
	rc = rdmacm_link_ask(file, request, response);
	rdmacm_foretold_done(from, request);
	rdmacm_foretold_done(file, request);
	if (!rc)
		take_back(from, response->reply.withdrawn);
	if (from != file)
		pthread_mutex_unlock(&file->lock);
	pthread_mutex_unlock(&from->lock);
	return rc ? rc : response->reply.status;
}

/*
 * Programs close the channel while a thread of theirs waits for its events. The kernel lets
 * that wait for ever, or for a signal, and they rely on that.
 */
static int wait_closed(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	bool open;

	pthread_mutex_lock(&file->lock);
	open = rdmacm_is_open(file, request);
	pthread_mutex_unlock(&file->lock);
	if (open)
		return -EIO;
	pause();
	return -EINTR;
}

/* With the lock, since the IDs may be those of a file that was opened since. */
static bool is_removed(struct rdmacm_file *file, const struct rdmacm_request *request,
		       struct rdmacm_response *response)
{
	bool removed;

	pthread_mutex_lock(&file->lock);
	removed = rdmacm_is_open(file, request) && rdmacm_ids_removal(file, response);
	pthread_mutex_unlock(&file->lock);
	return removed;
}

/* Waits for a packet, as its descriptor is waited for, and leaves it there. */
static int await_packet(int fd)
{
	uint8_t byte;
	ssize_t n = recv(fd, &byte, sizeof(byte), MSG_PEEK);

	return n < 0 ? -errno : 0;
}

/* An event's packet. */
struct packet {
	struct cm_attach_event head;
	uint8_t bytes[CM_ATTACH_BYTES + CM_ATTACH_FORETOLD];
};

static bool is_whole(const struct packet *packet, size_t n)
{
	const struct cm_attach_event *head = &packet->head;

	return n >= sizeof(*head) && head->out >= offsetof(struct rdma_ucm_event_resp, reserved) &&
	       head->out <= CM_ATTACH_BYTES && head->foretold <= CM_ATTACH_FORETOLD &&
	       n == sizeof(*head) + head->out + head->foretold;
}

/* With the lock. -EAGAIN: there is none; -EIO: there will be none. */
static int take_packet(struct rdmacm_file *file, const struct rdmacm_request *request,
		       struct packet *packet)
{
	ssize_t n;

	do {
		if (!rdmacm_is_open(file, request))
			return -EIO;
		n = recv(file->reader, packet, sizeof(*packet), MSG_DONTWAIT);
		if (n <= 0 || !is_whole(packet, (size_t)n))
			return n < 0 && errno == EAGAIN ? -EAGAIN : -EIO;
	} while (packet->head.order <= file->fetched);
	file->fetched = packet->head.order;
	return 0;
}

static uint32_t id_of_event(const struct packet *packet)
{
	struct rdma_ucm_event_resp event;

	memcpy(&event, packet->bytes, offsetof(struct rdma_ucm_event_resp, param));
	return event.id;
}

/* Another thread may just have made it go, or fetched it. */
static int fetch(struct rdmacm_file *file, const struct rdmacm_request *request,
		 struct rdmacm_response *response)
{
	struct packet packet;
	int rc;

	pthread_mutex_lock(&file->lock);
	rc = take_packet(file, request, &packet);
	if (!rc) {
		rdmacm_foretold_keep(file, id_of_event(&packet), packet.bytes + packet.head.out,
				     packet.head.foretold);
		if (packet.head.tell)
			(void)tell_fetched(file, request->opening);
	}
	pthread_mutex_unlock(&file->lock);
	if (rc)
		return rc;
	response->reply = (struct cm_attach_reply){.out = packet.head.out < request->command.out
								  ? packet.head.out
								  : request->command.out};
	memcpy(response->out, packet.bytes, packet.head.out);
	return 0;
}

/* fd: the descriptor to wait at, or -1: not to wait. */
static int own_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc;

	while ((rc = fetch(file, request, response)) == -EAGAIN && fd >= 0) {
		rc = await_packet(fd);
		if (rc)
			return rc;
	}
	if (!rc)
		rdmacm_ids_done(file, request, response);
	return rc;
}

/* Nothing more comes from there; the kernel goes on. */
static void unwatch_own(struct rdmacm_file *file, int fd, const struct rdmacm_request *request)
{
	pthread_mutex_lock(&file->lock);
	if (rdmacm_is_open(file, request))
		(void)epoll_ctl(fd, EPOLL_CTL_DEL, file->reader, NULL);
	pthread_mutex_unlock(&file->lock);
}

/* An event of urxed's, or of its end. */
static int own_turn(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		    struct rdmacm_response *response)
{
	int rc = own_event(file, -1, request, response);

	if (rc != -EIO)
		return rc;
	if (is_removed(file, request, response))
		return 0;
	unwatch_own(file, fd, request);
	return -EAGAIN;
}

/*
 * Turn about, so that a side with many events does not hide the other's. -EAGAIN: neither has one;
 * -EBADF: the file is not open any more.
 */
static int next_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		      struct rdmacm_response *response)
{
	int rc = -EAGAIN;

	for (int i = 0; i < 2 && rc == -EAGAIN; i++)
		rc = file->turn++ % 2 ? rdmacm_kernel_event(file, request, response)
				      : own_turn(file, fd, request, response);
	return rc;
}

/* A signal ends it, also where its handler would have read(2) go on: poll(2) does not. */
static int wait_event(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && flags & O_NONBLOCK)
		return -EAGAIN;
	if (poll(&pollfd, 1, -1) < 0)
		return -errno;
	return pollfd.revents & POLLNVAL ? -EIO : 0;
}

static int any_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc;

	while ((rc = next_event(file, fd, request, response)) == -EAGAIN) {
		rc = wait_event(fd);
		if (rc)
			break;
	}
	return rc == -EBADF ? -EIO : rc;
}

static int get_event(struct rdmacm_file *file, int fd, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	int rc;

	if (request->command.out < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	rc = file->kernel < 0 ? own_event(file, fd, request, response)
			      : any_event(file, fd, request, response);
	if (rc == -EIO && is_removed(file, request, response))
		return 0;
	return rc == -EIO ? wait_closed(file, request) : rc;
}

static int carry(struct rdmacm_file *file, struct rdmacm_request *request,
		 struct rdmacm_response *response)
{
	int rc;

	switch (request->command.command) {
	case RDMA_USER_CM_CMD_MIGRATE_ID: return migrate(file, request, response);
	case RDMA_USER_CM_CMD_SET_OPTION:
		rc = append_option(request);
		return rc ? rc : exchange(file, request, response);
	default: return exchange(file, request, response);
	}
}

static int destroy(struct rdmacm_file *file, struct rdmacm_request *request,
		   struct rdmacm_response *response)
{
	struct rdmacm_id id = rdmacm_ids_take(file, request);
	int rc = carry(file, request, response);

	/* Without urxed there is nothing left of it but here. */
	if (rc == -EIO && rdmacm_ids_destroyed(id, response))
		return 0;
	if (rc)
		rdmacm_ids_restore(file, request, id);
	return rc;
}

int rdmacm_own(struct rdmacm_file *file, struct rdmacm_request *request,
	       struct rdmacm_response *response)
{
	int rc;

	if (request->command.command == RDMA_USER_CM_CMD_DESTROY_ID)
		return destroy(file, request, response);
	rc = carry(file, request, response);
	if (!rc)
		rdmacm_ids_done(file, request, response);
	return rc;
}

static int run(struct rdmacm_file *file, int fd, struct rdmacm_request *request,
	       struct rdmacm_response *response)
{
	if (request->command.command == RDMA_USER_CM_CMD_GET_EVENT)
		return get_event(file, fd, request, response);
	return file->kernel < 0 ? rdmacm_own(file, request, response)
				: rdmacm_kernel_run(file, request, response);
}

/* Where the response goes; 0: nowhere, as there is none. */
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

/* Before anything is done that nobody would hear of: an event is fetched once. */
static int check_response(const struct rdmacm_request *request)
{
	uint32_t out = request->command.out;
	uint64_t address;
	int rc = response_address(request, &address);

	if (rc || !address)
		return rc;
	return user_populate(address, out < CM_ATTACH_BYTES ? out : CM_ATTACH_BYTES, 1);
}

static int reply(const struct rdmacm_request *request, const struct rdmacm_response *response)
{
	uint64_t address;
	int rc = response_address(request, &address);

	return rc || !address ? rc : user_write(address, response->out, response->reply.out);
}

/* A command as write(2) got it: 0, and what it is to be; all is read at once, as that is dear. */
static int take_command(struct rdmacm_request *request, uint64_t buf, size_t count)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[CM_ATTACH_BYTES];
	} written;
	int rc;

	if (count < sizeof(written.hdr))
		return -EINVAL;
	rc = user_read(&written, buf, count < sizeof(written) ? count : sizeof(written));
	if (rc)
		return rc;
	if (written.hdr.in + sizeof(written.hdr) > count || written.hdr.in > CM_ATTACH_BYTES)
		return -EINVAL;
	request->command = (struct cm_attach_command){
		.command = written.hdr.cmd, .in = written.hdr.in, .out = written.hdr.out};
	memcpy(request->in, written.in, written.hdr.in);
	return 0;
}

static int dispatch(struct rdmacm_file *file, int fd, uint64_t buf, size_t count)
{
	struct rdmacm_request request;
	struct rdmacm_response response;
	int rc;

	request.opening = file->opening;
	rc = take_command(&request, buf, count);
	if (rc)
		return rc;
	rc = check_response(&request);
	if (!rc)
		rc = run(file, fd, &request, &response);
	if (!rc)
		rc = reply(&request, &response);
	log_debug("rdma_cm %s: %s", name_of(request.command.command), rc ? strerror(-rc) : "ok");
	return rc;
}

ssize_t rdmacm_write(struct rdmacm_file *file, int fd, const void *buf, size_t count)
{
	int rc = file->pid == getpid() ? dispatch(file, fd, (uint64_t)(uintptr_t)buf, count)
				       : -EACCES;

	if (!rc)
		return (ssize_t)count;
	errno = -rc;
	return -1;
}
