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
	/* Absolute, and composed as netdev/unix_path.c does for the ports, so that find_path finds
	 * it. */
	struct sockaddr_un address;
	/* Only the daemon uses the members below. */
	int answer;   /* socket for the answer to the last request; -1 = none is outstanding */
	bool is_slow; /* an answer has once come too late: the daemon no longer waits for answers */
	int status;   /* of the last answer: 0 or a negative errno value */
	int fd;       /* of a connection that a port has yet to take; -1 = none */
};

static struct helper helper = {.socket = -1};
static struct path paths[PATHS];
static uint32_t n_paths;

enum task { CONNECT = 1, REMOVE };

/*
 * A request carries one descriptor: a socket on which the helper sends the answer. The answer is
 * the status (int), and after a successful CONNECT also the connection's descriptor. If the process
 * that serves the request ends without an answer, the daemon sees the end of file on its own end of
 * that socket.
 */
struct request {
	enum task task;
	uint32_t path; /* index in paths */
	/* For REMOVE: the helper removes the path only if it is still this file. */
	dev_t device;
	ino_t inode;
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

static void serve_request(const struct request *request, int socket)
{
	const struct sockaddr_un *address = &paths[request->path].address;
	int fd = -1, status;

	status = request->task == CONNECT ? connect_to(address, &fd)
					  : remove_socket(address->sun_path, request);
	(void)unix_packet_send(socket, &status, sizeof(status), &fd, !status && fd >= 0);
}

/* Forks a process for each request, so that a path on a file system that does not answer blocks no
 * other path. The daemon sends no request for a path before the last one is answered. */
static void serve_requests(void)
{
	struct unix_packet_extras extras;
	struct request request;

	signal(SIGCHLD, SIG_IGN); /* the kernel reaps the processes */
	while (unix_packet_recv(HELPER_SOCKET, &request, sizeof(request), &extras) ==
		       sizeof(request) &&
	       request.path < n_paths) {
		if (!fork()) {
			serve_request(&request, extras.fds[0]);
			_exit(0);
		}
		unix_packet_close_fds(&extras);
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

/* Takes the answer to the path's request. If the serving process has ended without an answer, the
 * status becomes -EAGAIN. Does nothing while the answer has not come. */
static void receive_answer(struct path *path)
{
	struct unix_packet_extras extras;
	int status, rc;

	if (path->answer < 0)
		return;
	rc = unix_packet_recv(path->answer, &status, sizeof(status), &extras);
	if (rc == -EAGAIN)
		return;
	path->status = rc == sizeof(status) ? status : -EAGAIN;
	path->fd = extras.fds[0];
	close(path->answer);
	path->answer = -1;
}

static void await_answer(struct path *path, uint32_t ms)
{
	const uint64_t end = now_ns() + ms * NS_PER_MS;
	struct pollfd pfd = {.fd = path->answer, .events = POLLIN};
	uint64_t now;

	while (path->answer >= 0 && (now = now_ns()) < end) {
		poll(&pfd, 1, (int)((end - now) / NS_PER_MS) + 1);
		receive_answer(path);
	}
}

/* Sends a request with a socket for its answer. Returns 0; -EAGAIN: the daemon is short of
 * descriptors or memory; -EPERM: the helper has ended. */
static int send_to_helper(struct path *path, const struct request *request)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		return -EAGAIN;
	rc = unix_packet_send(helper.socket, request, sizeof(*request), &ends[1], 1);
	close(ends[1]);
	if (!rc) {
		path->answer = ends[0];
		return 0;
	}
	close(ends[0]);
	if (rc != -EPIPE && rc != -ECONNRESET)
		return -EAGAIN;
	lose_helper();
	return -EPERM;
}

/*
 * Sends a request, and waits for the answer up to `ms` milliseconds, unless the path is slow.
 * Returns the status of the answer; -EAGAIN: the answer comes later, or the request was not served;
 * -EPERM: the helper has ended.
 */
static int send_request(struct path *path, const struct request *request, uint32_t ms)
{
	int rc = send_to_helper(path, request);

	if (rc)
		return rc;
	if (!path->is_slow)
		await_answer(path, ms);
	if (path->answer < 0)
		return path->status;
	if (!path->is_slow)
		log_line("%s does not answer within %u ms: urxed does not wait for it any more",
			 path->address.sun_path, ms);
	path->is_slow = true;
	return -EAGAIN;
}

/* Returns the path if the helper can take a request for it; otherwise NULL, and the reason in
 * *status. */
static struct path *find_idle_path(const struct sockaddr_un *address, int *status)
{
	struct path *path = find_path(address);

	if (path)
		receive_answer(path);
	*status = !path || helper.socket < 0 ? -EPERM : path->answer >= 0 ? -EAGAIN : 0;
	return *status ? NULL : path;
}

static int connect_by_helper(const struct sockaddr_un *address)
{
	int fd, status;
	struct path *path = find_idle_path(address, &status);

	/* path->fd is set if an earlier CONNECT was answered late. Then the connection exists
	 * already. */
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
	*path = (struct path){.address.sun_family = AF_UNIX, .answer = -1, .fd = -1};
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
	while (n_paths) {
		n_paths--;
		if (paths[n_paths].answer >= 0)
			close(paths[n_paths].answer);
		if (paths[n_paths].fd >= 0)
			close(paths[n_paths].fd);
	}
}
