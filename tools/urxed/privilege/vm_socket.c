/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/vm_socket.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <netdev/netdev.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/unix_packet.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/helper.h"

#define PATHS      16
#define CONNECT_MS 100
#define REMOVE_MS  1000
#define QEMU       "qemu:"

struct path {
	/* An absolute path, made as the ports make it (netdev/unix_path.c). */
	struct sockaddr_un address;
	/* Only the daemon uses the members below. */
	bool is_requested; /* the answer to the last request has not come yet */
	bool is_slow; /* an answer has once come too late: the daemon waits for none any more */
	int status;   /* of the last answer: 0 or a negative errno value */
	int fd;       /* of a connection that no port has taken yet; -1 = none */
};

static struct helper helper = {.socket = -1};
static struct path paths[PATHS];
static uint32_t n_paths;

enum task { CONNECT = 1, REMOVE };

struct request {
	enum task task;
	uint32_t path; /* index in paths */
	/* REMOVE: only this file. */
	dev_t device;
	ino_t inode;
};

struct answer {
	uint32_t path;
	int status;
};

/* --- The helper */

static int connect_to(const struct sockaddr_un *address, int *fd)
{
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return -errno;
	return connect(*fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
}

static int remove_socket(const char *path, const struct request *request)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_dev != request->device || st.st_ino != request->inode)
		return -ENOENT;
	return unlink(path) ? -errno : 0;
}

static void send_answer(const struct request *request, int status, int fd)
{
	const struct answer answer = {request->path, status};

	(void)unix_packet_send(HELPER_SOCKET, &answer, sizeof(answer), &fd, !status && fd >= 0);
}

static void serve_request(const struct request *request)
{
	const struct sockaddr_un *address = &paths[request->path].address;
	int fd = -1, status;

	status = request->task == CONNECT ? connect_to(address, &fd)
					  : remove_socket(address->sun_path, request);
	send_answer(request, status, fd);
}

/*
 * Each request has a process of its own, so that a path on a file system that does not answer
 * blocks no other path. The daemon sends no request for a path before the last one is answered.
 */
static void serve_requests(void)
{
	struct request request;
	pid_t pid;

	signal(SIGCHLD, SIG_IGN); /* the kernel reaps the processes */
	while (recv(HELPER_SOCKET, &request, sizeof(request), 0) == sizeof(request) &&
	       request.path < n_paths) {
		pid = fork();
		if (!pid) {
			serve_request(&request);
			_exit(0);
		}
		if (pid < 0)
			send_answer(&request, -errno, -1);
	}
}

/* --- The daemon */

static struct path *find_path(const struct sockaddr_un *address)
{
	for (uint32_t i = 0; i < n_paths; i++)
		if (!strncmp(address->sun_path, paths[i].address.sun_path,
			     sizeof(address->sun_path)))
			return &paths[i];
	return NULL;
}

static void lose_helper(void)
{
	log_line("the process that connects to virtual machines has ended: urxed connects no more");
	helper_stop(&helper);
}

static void receive_answers(void)
{
	struct unix_packet_extras extras;
	struct answer answer;
	struct path *path;
	int rc;

	while ((rc = unix_packet_recv(helper.socket, &answer, sizeof(answer), &extras)) ==
		       sizeof(answer) &&
	       answer.path < n_paths) {
		path = &paths[answer.path];
		path->is_requested = false;
		path->status = answer.status;
		path->fd = extras.fds[0];
	}
	if (rc != -EAGAIN)
		lose_helper();
}

static void await_answer(const struct path *path, uint32_t ms)
{
	const uint64_t end = now_ns() + ms * NS_PER_MS;
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};
	uint64_t now;

	while (path->is_requested && helper.socket >= 0 && (now = now_ns()) < end) {
		poll(&pfd, 1, (int)((end - now) / NS_PER_MS) + 1);
		receive_answers();
	}
}

/*
 * Sends a request, and waits for the answer up to `ms` milliseconds, unless the path is slow.
 * Returns the status of the answer; -EAGAIN: the answer comes later, or the request could not be
 * sent; -EPERM: the helper has ended.
 */
static int send_request(struct path *path, const struct request *request, uint32_t ms)
{
	if (unix_packet_send(helper.socket, request, sizeof(*request), NULL, 0))
		return -EAGAIN;
	path->is_requested = true;
	if (!path->is_slow)
		await_answer(path, ms);
	if (helper.socket < 0)
		return -EPERM;
	if (!path->is_requested)
		return path->status;
	if (!path->is_slow)
		log_line("%s does not answer within %u ms: urxed does not wait for it any more",
			 path->address.sun_path, ms);
	path->is_slow = true;
	return -EAGAIN;
}

/* The path if the helper can get a request for it, or NULL and the reason in *status. */
static struct path *find_idle_path(const struct sockaddr_un *address, int *status)
{
	struct path *path = find_path(address);

	if (helper.socket >= 0)
		receive_answers();
	*status = !path || helper.socket < 0 ? -EPERM : path->is_requested ? -EAGAIN : 0;
	return *status ? NULL : path;
}

static int connect_by_helper(const struct sockaddr_un *address)
{
	int fd, status;
	struct path *path = find_idle_path(address, &status);

	/* A late answer has brought a connection already. */
	if (path && path->fd < 0)
		status = send_request(
			path, &(struct request){.task = CONNECT, .path = (uint32_t)(path - paths)},
			CONNECT_MS);
	if (status)
		return status;
	fd = path->fd;
	path->fd = -1;
	return fd < 0 ? -EIO : fd;
}

static void remove_by_helper(const struct sockaddr_un *address, const struct stat *file)
{
	int status;
	struct path *path = find_idle_path(address, &status);

	if (path)
		(void)send_request(path,
				   &(struct request){REMOVE, (uint32_t)(path - paths), file->st_dev,
						     file->st_ino},
				   REMOVE_MS);
}

static void add_path(const char *uplink)
{
	const char *name = uplink + strlen(QEMU);
	int length = (int)strcspn(name, ",");
	struct path *path = &paths[n_paths];
	char directory[sizeof(path->address.sun_path)] = "";

	if (*name != '/' && !getcwd(directory, sizeof(directory)))
		return;
	*path = (struct path){.address.sun_family = AF_UNIX, .fd = -1};
	snprintf(path->address.sun_path, sizeof(path->address.sun_path), "%s%s%.*s", directory,
		 *name == '/' ? "" : "/", length, name);
	n_paths++;
}

int vm_socket_start(const char *const *uplinks, uint32_t n)
{
	static const struct netdev_qemu_files files = {connect_by_helper, remove_by_helper};
	const uint64_t needed = CAPABILITY(CAP_DAC_OVERRIDE);
	int rc;

	n_paths = 0;
	for (uint32_t i = 0; i < n && n_paths < PATHS; i++)
		if (!strncmp(uplinks[i], QEMU, strlen(QEMU)))
			add_path(uplinks[i]);
	if (!n_paths || !(capabilities_get() & needed))
		return 0;
	rc = helper_start(&helper, "urxed-vms", needed, serve_requests);
	if (!rc)
		netdev_qemu_set_files(&files);
	return rc;
}

void vm_socket_stop(void)
{
	netdev_qemu_set_files(NULL);
	helper_stop(&helper);
	while (n_paths)
		if (paths[--n_paths].fd >= 0)
			close(paths[n_paths].fd);
}
