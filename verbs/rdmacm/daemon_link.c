/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/daemon_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "engine/clock.h"
#include "log.h"
#include "outage.h"
#include "path.h"
#include "rdmacm/reconnect.h"

/* --- urxed's socket */

/* Whether root or this user is at the other end. */
static bool is_friend(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

static int connect_daemon(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CM_ATTACH_SOCKET_NAME,
		     path_run_dir()) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)) && is_friend(fd))
		return fd;
	rc = errno ? -errno : -EPERM;
	close(fd);
	/* As where the module is not loaded. */
	return rc == -ENOENT || rc == -ECONNREFUSED ? -ENODEV : rc;
}

/* A packet, however long it takes, as with the kernel. */
static ssize_t receive(int socket, void *packet, size_t size)
{
	ssize_t n;

	do
		n = recv(socket, packet, size, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

static int send_hello(int socket, const struct rdmacm_file *file)
{
	struct cm_attach_hello hello = {
		.version = CM_ATTACH_VERSION, .token = file->token, .fetched = file->fetched};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {&hello, sizeof(hello)};
	const struct msghdr msg = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &file->bell, sizeof(file->bell));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == sizeof(hello) ? 0 : -ECONNRESET;
}

/* A connection to urxed, and its token in the place of that which is claimed, or 0. */
static int greet(struct rdmacm_file *file)
{
	struct cm_attach_welcome w = {.status = -ECONNRESET};
	int fd = connect_daemon(), rc;

	if (fd < 0)
		return fd;
	rc = send_hello(fd, file);
	if (!rc && receive(fd, &w, sizeof(w)) == sizeof(w))
		file->token = w.status ? file->token : w.token;
	if (!rc)
		rc = w.status;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* --- The link */

int rdmacm_link_open(struct rdmacm_file *file)
{
	int rc;

	file->token = file->fetched = 0;
	file->lost_at = 0;
	file->over = false;
	rc = greet(file);
	if (rc < 0)
		return rc;
	file->socket = rc;
	rc = rdmacm_keeper_add(file);
	if (!rc)
		return 0;
	close(file->socket);
	file->socket = -1;
	return rc;
}

static void hang_up(struct rdmacm_file *file)
{
	if (file->socket < 0)
		return;
	rdmacm_keeper_unwatch(file);
	close(file->socket);
	file->socket = -1;
}

void rdmacm_link_close(struct rdmacm_file *file)
{
	hang_up(file);
	rdmacm_keeper_remove(file);
	if (file->bell >= 0)
		close(file->bell);
	file->bell = -1;
}

/* Who waits at the descriptor hears of it by its end. */
static void give_up(struct rdmacm_file *file, int rc)
{
	log_warning("rdma_cm: %s",
		    rc == -ETIME ? "urxed has gone"
				 : "the urxed that is there now knows nothing of its IDs");
	file->over = true;
	close(file->bell);
	file->bell = -1;
	pthread_cond_broadcast(&file->found);
}

/* What was not fetched comes again. */
static void empty(const struct rdmacm_file *file)
{
	uint8_t byte;

	while (recv(file->reader, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
}

void rdmacm_link_look(struct rdmacm_file *file)
{
	int rc = -ETIME;

	if (clock_monotonic() - file->lost_at < outage_patience()) {
		empty(file);
		rc = greet(file);
	}
	if (rc == -EPERM || rc == -EPROTO || rc == -ETIME) {
		give_up(file, rc);
		return;
	}
	if (rc < 0)
		return;
	file->socket = rc;
	rdmacm_keeper_watch(file);
	log_info("rdma_cm goes on with another urxed");
	pthread_cond_broadcast(&file->found);
}

void rdmacm_link_lost(struct rdmacm_file *file)
{
	hang_up(file);
	file->lost_at = clock_monotonic();
	rdmacm_link_look(file);
}

bool rdmacm_link_hung(const struct rdmacm_file *file)
{
	uint8_t byte;

	/* Nobody waits for an answer, so there is none. */
	return file->socket >= 0 &&
	       recv(file->socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) != -1;
}

static void wait_a_moment(struct rdmacm_file *file)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += OUTAGE_LOOK;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&file->found, &file->lock, &until);
}

/* A socket to urxed: -EIO where there is none any more. */
static int find(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	while (rdmacm_is_open(file, request) && !file->over && file->socket < 0) {
		wait_a_moment(file);
		if (rdmacm_is_open(file, request) && !file->over && file->socket < 0)
			rdmacm_link_look(file);
	}
	return rdmacm_is_open(file, request) && !file->over ? 0 : -EIO;
}

/* False: it is not an answer, but urxed's end. */
static bool converse(const struct rdmacm_file *file, const struct rdmacm_request *request,
		     struct rdmacm_response *response)
{
	struct cm_attach_command command = request->command;
	struct iovec iov[] = {{&command, sizeof(command)}, {(void *)request->in, command.in}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	command.fetched = file->fetched;
	if (sendmsg(file->socket, &msg, MSG_NOSIGNAL) != (ssize_t)(sizeof(command) + command.in))
		return false;
	n = receive(file->socket, response, sizeof(*response));
	return n >= (ssize_t)sizeof(response->reply) &&
	       response->reply.out == n - (ssize_t)sizeof(response->reply);
}

int rdmacm_link_ask(struct rdmacm_file *file, const struct rdmacm_request *request,
		    struct rdmacm_response *response)
{
	int rc;

	while (!(rc = find(file, request)) && !converse(file, request, response))
		rdmacm_link_lost(file);
	return rc;
}
