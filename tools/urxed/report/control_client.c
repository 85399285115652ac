/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/sealed_text.h"
#include "common/unix_packet.h"
#include "urxed/report/control.h"
#include "urxed/report/process_states.h"

static int connect_to_daemon(int fd, const char *run_dir)
{
	const struct timeval timeout = {.tv_sec = CONTROL_CLIENT_SECONDS};
	struct sockaddr_un address;
	int rc = unix_packet_address(&address, run_dir, CONTROL_SOCKET_NAME);

	if (rc)
		return rc;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return unix_packet_peer_is_trusted(fd) ? 0 : -EPERM;
}

static int check_reply(const struct control_reply *reply, int len,
		       const struct unix_packet_extras *came)
{
	if (len != sizeof(*reply) || reply->version != CONTROL_VERSION)
		return -EPROTO;
	if (reply->status)
		return reply->status < 0 ? reply->status : -EPROTO;
	return came->fds[0] < 0 ? -EPROTO : 0;
}

static int receive_reply(int fd, struct control_reply *reply, struct unix_packet_extras *came)
{
	int rc = unix_packet_recv(fd, reply, sizeof(*reply), came);

	return rc < 0 ? rc : check_reply(reply, rc, came);
}

static int send_request(int fd, const struct control_request *request, struct control_reply *reply,
			struct unix_packet_extras *came)
{
	int rc = unix_packet_send(fd, request, sizeof(*request), NULL, 0);

	return rc ? rc : receive_reply(fd, reply, came);
}

/* Receives the sockets that follow a reply; the caller closes them, after an error, too. */
static int receive_sockets(int fd, uint32_t n, struct control_sockets *sockets)
{
	struct unix_packet_extras came;
	struct control_reply reply;
	int rc = n <= CONTROL_USERS ? 0 : -EPROTO;

	for (sockets->n = 0; !rc && sockets->n < n;) {
		rc = receive_reply(fd, &reply, &came);
		if (rc)
			unix_packet_close_fds(&came);
		else
			sockets->fds[sockets->n++] = came.fds[0];
	}
	return rc;
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

/* Returns the connection, or -1 with one sentence in `error`. */
static int connect_and_request(const char *run_dir, const struct control_request *request,
			       struct control_reply *reply, struct unix_packet_extras *came,
			       char error[CONTROL_CLIENT_ERROR])
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	*came = (struct unix_packet_extras){.fds = {-1, -1}};
	rc = fd < 0 ? -errno : connect_to_daemon(fd, run_dir);
	if (!rc)
		rc = send_request(fd, request, reply, came);
	if (!rc)
		return fd;
	describe_error(error, run_dir, -rc);
	unix_packet_close_fds(came);
	if (fd >= 0)
		close(fd);
	return -1;
}

int control_client_capture(const char *run_dir, const char *port, bool record, int *ring,
			   char error[CONTROL_CLIENT_ERROR])
{
	struct control_request request = {
		.version = CONTROL_VERSION, .type = CONTROL_CAPTURE, .record = record};
	struct unix_packet_extras came;
	struct control_reply reply;
	int fd;

	if (strlen(port) >= sizeof(request.port)) {
		snprintf(error, CONTROL_CLIENT_ERROR, "no port has the name %s", port);
		return -1;
	}
	strcpy(request.port, port);
	fd = connect_and_request(run_dir, &request, &reply, &came, error);
	*ring = came.fds[0];
	return fd;
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

static json_t *parse_report(int fd, int *rc)
{
	json_t *report;
	size_t len;
	char *text;

	*rc = sealed_text_read(fd, SEALED_TEXT_MAX, &text, &len);
	if (*rc)
		return NULL;
	report = json_loadb(text, len, 0, NULL);
	free(text);
	*rc = report ? 0 : -EPROTO;
	return report;
}

/* The report with the states of processes, which answer on sockets that follow on fd. */
static json_t *complete_report(int fd, int memory, const struct control_reply *reply,
			       uint32_t wait_ms, int *rc)
{
	struct control_sockets sockets;
	json_t *report = NULL;
	uint32_t i;

	*rc = receive_sockets(fd, reply->users, &sockets);
	if (!*rc)
		report = parse_report(memory, rc);
	if (report && sockets.n)
		process_states_collect(report, sockets.fds, sockets.n, wait_ms);
	for (i = 0; i < sockets.n; i++)
		close(sockets.fds[i]);
	return report;
}

json_t *control_client_report(const char *run_dir, uint32_t wait_ms,
			      char error[CONTROL_CLIENT_ERROR])
{
	const struct control_request request = {
		.version = CONTROL_VERSION, .type = CONTROL_SHOW, .ask = wait_ms > 0};
	struct unix_packet_extras came;
	struct control_reply reply;
	json_t *report;
	int fd = connect_and_request(run_dir, &request, &reply, &came, error), rc;

	if (fd < 0)
		return NULL;
	report = complete_report(fd, came.fds[0], &reply, wait_ms, &rc);
	if (!report)
		describe_error(error, run_dir, -rc);
	else if (wait_ms && !reply.users)
		process_states_collect(report, NULL, 0, wait_ms);
	unix_packet_close_fds(&came);
	close(fd);
	return report;
}
