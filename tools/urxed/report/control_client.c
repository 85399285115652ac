/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/sealed_text.h"
#include "common/unix_packet.h"
#include "urxed/report/close_alarm.h"
#include "urxed/report/control.h"
#include "urxed/report/process_states.h"

/* Number of descriptors that this process keeps free for the report and for answers. */
#define SPARE_FDS 8
/* Limit in bytes of a report that another user's daemon sends to root, because jansson may need 45
 * bytes of memory for each. */
#define FOREIGN_REPORT_MAX (SEALED_TEXT_MAX / 2)

/* Whether this process may ask the daemon: one of this process's user or of root. Root may ask any
 * user's daemon. */
static bool may_ask(int fd)
{
	return !geteuid() || unix_packet_peer_is_trusted(fd);
}

/* After a signal, connects anew: a UNIX socket that has not been accepted yet stays unconnected.
 * Returns 0 or a negative errno value. */
static int connect_socket(int fd, const struct sockaddr_un *address)
{
	int rc;

	do
		rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

static int connect_to_daemon(int fd, const char *run_dir)
{
	const struct timeval timeout = {.tv_sec = CONTROL_CLIENT_SECONDS};
	struct sockaddr_un address;
	int rc = unix_packet_address(&address, run_dir, CONTROL_SOCKET_NAME);

	if (rc)
		return rc;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)))
		return -errno;
	rc = connect_socket(fd, &address);
	if (rc)
		return rc;
	return may_ask(fd) ? 0 : -EPERM;
}

/* Closes a socket whose number is among the last SPARE_FDS below the limit, because the report and
 * answers need free descriptors. Returns the socket; -1: it is closed, or there was none. */
static int leave_descriptors(int socket)
{
	struct rlimit limit;

	if (socket < 0 || getrlimit(RLIMIT_NOFILE, &limit) ||
	    (rlim_t)socket + SPARE_FDS < limit.rlim_cur)
		return socket;
	close(socket);
	return -1;
}

/* Takes the n sockets of a packet, and closes any others that came with it. If the packet is
 * invalid, closes all. Returns 0 or -EPROTO. */
static int add_sockets(struct process_sockets *sockets, const struct control_processes *packet,
		       const int fds[UNIX_PACKET_FDS_MAX])
{
	const uint32_t room = sockets ? PROCESS_STATES_SOCKETS - sockets->n : 0;
	bool valid = packet->version == CONTROL_VERSION && packet->n &&
		     packet->n <= UNIX_PACKET_FDS_MAX && packet->n <= room;
	uint32_t i = 0;

	for (; valid && i < packet->n; i++) {
		sockets->ports[sockets->n] = packet->ports[i];
		sockets->fds[sockets->n++] = leave_descriptors(fds[i]);
	}
	for (; i < UNIX_PACKET_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return valid ? 0 : -EPROTO;
}

static int check_reply(const struct control_reply *reply, int len, int memory)
{
	if (len < 0)
		return len;
	if (len != sizeof(*reply) || reply->version != CONTROL_VERSION)
		return -EPROTO;
	if (reply->status)
		return reply->status < 0 ? reply->status : -EPROTO;
	return memory < 0 ? -EPROTO : 0;
}

/*
 * Receives a packet of the daemon that may carry sockets of processes. Returns its length or a
 * negative errno value. The kernel closes sockets for which this process has no free descriptor,
 * which may wait, so the close alarm runs meanwhile. The alarm begins only when the packet is
 * there, because each of its signals would restart the timeout of recv(2). Because of the timeout,
 * recv(2) also fails with EINTR after SIGSTOP and SIGCONT (signal(7)).
 */
static int receive_sockets(int fd, void *packet, uint32_t len, int fds[UNIX_PACKET_FDS_MAX])
{
	ssize_t got;
	char first;
	int rc;

	fds[0] = -1;
	do
		got = recv(fd, &first, 1, MSG_PEEK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	close_alarm_begin();
	rc = unix_packet_recv_fds(fd, packet, len, fds, UNIX_PACKET_FDS_MAX);
	close_alarm_end();
	return rc;
}

/*
 * Receives the sockets of processes, unless `sockets` is NULL, and then the reply. Returns 0, with
 * the descriptor of the reply in *memory, or a negative errno value.
 */
static int receive_reply(int fd, struct process_sockets *sockets, int *memory)
{
	union {
		struct control_processes processes;
		struct control_reply reply;
	} packet;
	int fds[UNIX_PACKET_FDS_MAX], len, rc = 0;

	do {
		len = sockets ? receive_sockets(fd, &packet, sizeof(packet), fds)
			      : unix_packet_recv_fds(fd, &packet, sizeof(packet), fds,
						     UNIX_PACKET_FDS_MAX);
		if (len != sizeof(packet.processes))
			break;
		close_alarm_begin();
		rc = add_sockets(sockets, &packet.processes, fds);
		close_alarm_end();
	} while (!rc);
	if (rc)
		return rc;
	*memory = fds[0];
	return check_reply(&packet.reply, len, fds[0]);
}

static int send_request(int fd, const struct control_request *request,
			struct process_sockets *sockets, int *memory)
{
	int rc = unix_packet_send(fd, request, sizeof(*request), NULL, 0);

	return rc ? rc : receive_reply(fd, sockets, memory);
}

static void describe_error(char error[CONTROL_CLIENT_ERROR], const char *run_dir, int err)
{
	switch (err) {
	case ENOENT:
	case ECONNREFUSED:
	case ENOTDIR: snprintf(error, CONTROL_CLIENT_ERROR, "no urxed serves %s", run_dir); break;
	case EACCES:
	case EPERM:
		snprintf(error, CONTROL_CLIENT_ERROR, "the urxed of %s belongs to another user",
			 run_dir);
		break;
	case EAGAIN:
		snprintf(error, CONTROL_CLIENT_ERROR, "the urxed of %s does not answer", run_dir);
		break;
	case EPROTO:
		snprintf(error, CONTROL_CLIENT_ERROR,
			 "the urxed of %s is of another version than this urxe", run_dir);
		break;
	case ENODEV:
		snprintf(error, CONTROL_CLIENT_ERROR,
			 "the urxed of %s has no such port: urxe show port lists them", run_dir);
		break;
	case EALREADY:
		snprintf(error, CONTROL_CLIENT_ERROR,
			 "another capture of the urxed of %s has --state", run_dir);
		break;
	case EBUSY:
		snprintf(error, CONTROL_CLIENT_ERROR,
			 "the urxed of %s has as many captures as it can", run_dir);
		break;
	default:
		snprintf(error, CONTROL_CLIENT_ERROR, "cannot ask the urxed of %s: %s", run_dir,
			 strerror(err));
	}
}

/* Uses the close alarm, because another user's daemon may have sent a lingering socket instead of
 * memory. */
static void close_memory(int fd)
{
	close_alarm_begin();
	if (fd >= 0)
		close(fd);
	close_alarm_end();
}

/*
 * Connects to the daemon, sends a request and receives the reply. Returns the connection, or -1
 * with one sentence in `error`. The caller closes the sockets and *memory, which is -1 after an
 * error.
 */
static int connect_and_request(const char *run_dir, const struct control_request *request,
			       struct process_sockets *sockets, int *memory,
			       char error[CONTROL_CLIENT_ERROR])
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	*memory = -1;
	rc = fd < 0 ? -errno : connect_to_daemon(fd, run_dir);
	if (!rc)
		rc = send_request(fd, request, sockets, memory);
	if (!rc)
		return fd;
	describe_error(error, run_dir, -rc);
	close_memory(*memory);
	*memory = -1;
	if (fd >= 0)
		close(fd);
	return -1;
}

int control_client_capture(const char *run_dir, const char *port, bool record, int *ring,
			   char error[CONTROL_CLIENT_ERROR])
{
	struct control_request request = {
		.version = CONTROL_VERSION, .type = CONTROL_CAPTURE, .record = record};

	if (strlen(port) >= sizeof(request.port)) {
		snprintf(error, CONTROL_CLIENT_ERROR, "no port has the name %s", port);
		return -1;
	}
	strcpy(request.port, port);
	return connect_and_request(run_dir, &request, NULL, ring, error);
}

bool control_client_next(int fd, int *ring, char port[CONTROL_PORT], bool *ended)
{
	struct control_recording recording;
	struct unix_packet_extras came;
	struct pollfd pfd = {fd, POLLIN, 0};
	int len;

	*ring = -1;
	*ended = false;
	if (poll(&pfd, 1, 0) <= 0)
		return false;
	len = unix_packet_recv(fd, &recording, sizeof(recording), &came);
	if (len == sizeof(recording) && recording.version == CONTROL_VERSION) {
		*ring = came.fds[0];
		came.fds[0] = -1;
		memcpy(port, recording.port, CONTROL_PORT);
		port[CONTROL_PORT - 1] = '\0';
	}
	unix_packet_close_fds(&came);
	*ended = len <= 0 && len != -EPROTO && len != -EAGAIN;
	return !*ended;
}

static json_t *parse_report(int fd, uint64_t most, int *rc)
{
	json_t *report;
	size_t len;
	char *text;

	*rc = sealed_text_read(fd, most, &text, &len);
	if (*rc)
		return NULL;
	report = json_loadb(text, len, 0, NULL);
	free(text);
	*rc = report ? 0 : -EPROTO;
	return report;
}

/* Raises the soft limit of descriptors to the hard one, because each process answers on a socket of
 * its own. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void close_sockets(const struct process_sockets *sockets)
{
	uint32_t i;

	close_alarm_begin();
	for (i = 0; i < sockets->n; i++)
		if (sockets->fds[i] >= 0)
			close(sockets->fds[i]);
	close_alarm_end();
}

json_t *control_client_report(const char *run_dir, uint32_t wait_ms,
			      char error[CONTROL_CLIENT_ERROR])
{
	const struct control_request request = {
		.version = CONTROL_VERSION, .type = CONTROL_SHOW, .ask = wait_ms > 0};
	struct process_sockets sockets;
	json_t *report = NULL;
	int fd, memory, rc;

	sockets.n = 0;
	if (wait_ms)
		raise_descriptor_limit();
	fd = connect_and_request(run_dir, &request, wait_ms ? &sockets : NULL, &memory, error);
	if (fd >= 0) {
		report = parse_report(memory,
				      unix_packet_peer_is_trusted(fd) ? SEALED_TEXT_MAX
								      : FOREIGN_REPORT_MAX,
				      &rc);
		if (!report)
			describe_error(error, run_dir, -rc);
		close_memory(memory);
		close(fd);
	}
	if (report && wait_ms)
		process_states_collect(report, &sockets, wait_ms);
	if (wait_ms)
		close_sockets(&sockets);
	return report;
}
