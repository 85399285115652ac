/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/state_document.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "session/json.h"

/* Number of queue pairs after which the document's writer sends another -EINPROGRESS: such replies
 * keep the asking program waiting. */
#define QPS_PER_REPLY 1024
/* The document's memfd cannot change once it is written. */
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static void write_engine_counters(struct json_text *j, const struct urxe_counters *counters)
{
	for (int i = 1; i < URXE_DROP_COUNT; i++)
		if (counters->drop[i])
			json_put_number(j, urxe_drop_name((enum urxe_drop)i), counters->drop[i]);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		if (counters->event[i])
			json_put_number(j, urxe_event_name((enum urxe_event)i), counters->event[i]);
}

static void write_counters(struct json_text *j, const struct state_document *state)
{
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &state->engine_counters);
	for (uint32_t i = 0; i < state->n_counters; i++)
		if (state->more_counters[i].value)
			json_put_number(j, state->more_counters[i].name,
					state->more_counters[i].value);
	json_put_close(j, '}');
}

static const char *type_name(uint8_t type)
{
	return type == URXE_QPT_RC ? "RC" : type == URXE_QPT_UC ? "UC" : "UD";
}

static const char *state_name(uint8_t state)
{
	static const char *const names[URXE_QPS_COUNT] = {"RESET", "INIT", "RTR", "RTS",
							  "SQD",   "SQE",  "ERR"};

	return names[state];
}

static void write_peer(struct json_text *j, const struct state_qp *qp)
{
	static const struct urxe_gid none;
	const uint8_t *mac = qp->attr.path.dmac;
	char text[INET6_ADDRSTRLEN];

	if (qp->init.type == URXE_QPT_UD || !memcmp(&qp->attr.path.dgid, &none, sizeof(none))) {
		json_put_null(j, "dgid");
		json_put_null(j, "dmac");
		json_put_null(j, "dest_qpn");
		return;
	}
	inet_ntop(AF_INET6, qp->attr.path.dgid.raw, text, sizeof(text));
	json_put_string(j, "dgid", text);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	json_put_string(j, "dmac", text);
	json_put_number(j, "dest_qpn", qp->attr.dest_qpn);
}

static void write_qp(struct json_text *j, const struct state_qp *qp)
{
	json_put_open(j, NULL, '{');
	json_put_number(j, "qpn", qp->init.qpn);
	json_put_string(j, "type", type_name(qp->init.type));
	json_put_string(j, "state", state_name(qp->attr.state));
	json_put_number(j, "path_mtu", qp->attr.path_mtu ? 128u << qp->attr.path_mtu : 0);
	json_put_number(j, "sgid_index", qp->attr.path.sgid_index);
	write_peer(j, qp);
	json_put_number(j, "rq_psn", qp->attr.rq_psn);
	json_put_number(j, "sq_psn", qp->attr.sq_psn);
	json_put_number(j, "sends", qp->load.sends);
	json_put_number(j, "packets", qp->load.packets);
	json_put_number(j, "receives", qp->load.receives);
	json_put_number(j, "retries", qp->load.retries);
	json_put_number(j, "rnr_retries", qp->load.rnr_retries);
	json_put_number(j, "timeout", qp->attr.timeout);
	json_put_number(j, "rate_limit", qp->attr.rate_limit);
	json_put_bool(j, "direct", qp->inbox);
	json_put_bool(j, "memory", qp->memory);
	json_put_bool(j, "uplink", qp->uplink);
	if (qp->sends_by)
		json_put_number(j, "sends_by_socket", qp->sends_by - 1u);
	if (qp->receives_by)
		json_put_number(j, "receives_by_socket", qp->receives_by - 1u);
	json_put_bool(j, "hca", qp->hca);
	if (qp->way_reason)
		json_put_string(j, "way_reason", qp->way_reason);
	else
		json_put_null(j, "way_reason");
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &qp->counters);
	json_put_close(j, '}');
	json_put_close(j, '}');
}

#define LENGTH_MAX ((UINT64_C(1) << 59) - 1)

static void write_mr(struct json_text *j, const struct urxe_mr_attr *mr)
{
	char iova[19]; /* a string, because JSON readers may have only 63 bits for a number */

	json_put_open(j, NULL, '{');
	json_put_number(j, "key", mr->key);
	json_put_number(j, "pd", mr->pd);
	snprintf(iova, sizeof(iova), "0x%" PRIx64, mr->iova);
	json_put_string(j, "iova", iova);
	/* urxed takes up to 18 digits; an implicit on-demand region has 2^64 - 1 bytes. */
	json_put_number(j, "length", mr->length < LENGTH_MAX ? mr->length : LENGTH_MAX);
	json_put_number(j, "access", mr->access);
	json_put_close(j, '}');
}

/* Sends a reply without a document: an error, or -EINPROGRESS. The message is lost if the asking
 * program no longer listens. */
static void send_status(int socket, int status)
{
	const struct vnic_attach_state reply = {.status = status};

	(void)send(socket, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void write_document(struct json_text *j, const struct state_document *state)
{
	json_put_open(j, NULL, '{');
	json_put_bool(j, "gone", state->dead);
	json_put_number(j, "pid", (uint64_t)getpid());
	json_put_string(j, "program", state->program);
	json_put_open(j, "qps", '[');
	for (size_t i = 0; i < state->n_qps; i++) {
		if (i % QPS_PER_REPLY == 0)
			send_status(state->socket, -EINPROGRESS);
		write_qp(j, &state->qps[i]);
	}
	json_put_close(j, ']');
	json_put_open(j, "mrs", '[');
	for (size_t i = 0; i < state->n_mrs; i++)
		write_mr(j, &state->mrs[i]);
	json_put_close(j, ']');
	write_counters(j, state);
	json_put_close(j, '}');
}

static int write_memfd(int fd, const struct json_text *j)
{
	size_t done = 0;
	ssize_t n;

	for (; done < j->len; done += (size_t)n) {
		n = write(fd, j->text + done, j->len - done);
		if (n < 0)
			return -errno;
	}
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

static int (*place_new)(int fd);

void state_document_place_fds(int (*place)(int fd))
{
	place_new = place;
}

/* Returns a memfd with the text, or a negative errno value. The memfd is sealed, so that its reader
 * need not trust this process. */
static int make_memfd(const struct json_text *j)
{
	int fd, rc;

	if (j->failed)
		return -ENOMEM;
	fd = memfd_create("urxe-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (place_new)
		fd = place_new(fd);
	rc = write_memfd(fd, j);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static void send_memfd(int socket, int memory)
{
	struct vnic_attach_state reply = {.status = 0};
	struct iovec iov = {&reply, sizeof(reply)};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary = {
		.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS},
	};

	memcpy(CMSG_DATA(&ancillary.header), &memory, sizeof(int));
	header.msg_control = &ancillary;
	header.msg_controllen = sizeof(ancillary);
	(void)sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void state_document_fill_qp(struct state_qp *entry, const struct urxe_qp *qp)
{
	urxe_qp_query(qp, &entry->attr, &entry->init);
	urxe_qp_load(qp, &entry->load);
	entry->counters = *urxe_qp_counters(qp);
}

bool state_document_copies(const struct state_qp *entry, const struct urxe_qp *qp)
{
	const uint64_t *event = entry->counters.event;

	return urxe_qp_tries_copy(qp) &&
	       (event[URXE_EVENT_COPY_REQUESTS] || event[URXE_EVENT_REFERENCES]);
}

void state_document_begin(int socket)
{
	send_status(socket, -EINPROGRESS);
}

void state_document_send(const struct state_document *state, bool complete)
{
	struct json_text j = {.failed = !complete};
	int memory;

	if (complete)
		write_document(&j, state);
	memory = make_memfd(&j);
	if (memory >= 0) {
		send_memfd(state->socket, memory);
		close(memory);
	} else {
		send_status(state->socket, memory);
	}
	close(state->socket);
	free(j.text);
}
