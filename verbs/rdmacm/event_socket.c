/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/event_socket.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include <rdma/rdma_user_cm.h>

/* A packet without an event, by which this library wakes its own threads. Receivers tell it from
 * packets of the daemon by its length. */
static const uint8_t wake[5] = "wake";

static bool is_whole(const struct rdmacm_event_packet *packet, size_t n)
{
	const struct cm_attach_event *head = &packet->head;

	return n >= sizeof(*head) && head->out >= offsetof(struct rdma_ucm_event_resp, reserved) &&
	       head->out <= CM_ATTACH_BYTES && head->cached <= CM_ATTACH_CACHED &&
	       n == sizeof(*head) + head->out + head->cached;
}

/* Whether the event of that sequence number is cancelled; if so, removes it from file->to_skip. */
static bool take_cancelled(struct rdmacm_file *file, uint64_t sequence)
{
	for (uint32_t i = 0; i < file->n_to_skip; i++)
		if (file->to_skip[i] == sequence) {
			file->to_skip[i] = file->to_skip[--file->n_to_skip];
			return true;
		}
	return false;
}

static void discard_packets(struct rdmacm_file *file, uint32_t n)
{
	uint8_t byte;

	while (n) {
		ssize_t length =
			recv(file->event_reader, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC);

		if (length <= 0)
			return;
		n -= length != sizeof(wake);
	}
}

static void skip_cancelled(struct rdmacm_file *file)
{
	struct cm_attach_event head;

	while (file->n_to_skip &&
	       recv(file->event_reader, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT) ==
		       sizeof(head) &&
	       take_cancelled(file, head.sequence)) {
		file->fetched = head.sequence;
		discard_packets(file, 1);
	}
}

/* After a restart of the daemon, events may come again: `sequence` is at most file->fetched. */
int rdmacm_event_receive(struct rdmacm_file *file, struct rdmacm_event_packet *packet)
{
	ssize_t n;

	do {
		while ((n = recv(file->event_reader, packet, sizeof(*packet), MSG_DONTWAIT)) ==
		       sizeof(wake))
			skip_cancelled(file);
		if (n <= 0 || !is_whole(packet, (size_t)n))
			return n < 0 && errno == EAGAIN ? -EAGAIN : -EIO;
	} while (packet->head.sequence <= file->fetched);
	file->fetched = packet->head.sequence;
	skip_cancelled(file);
	return 0;
}

/* `file` is the open file whose event socket has the withdrawn or cancelled events: for MIGRATE_ID,
 * the file from which the ID moves. No other command concerns two files. */
void rdmacm_events_take_back(struct rdmacm_file *file, const struct cm_attach_reply *reply)
{
	if (reply->withdrawn)
		file->n_to_skip = 0;
	discard_packets(file, reply->withdrawn);
	for (uint32_t i = 0; i < reply->n_cancelled && i < CM_ATTACH_CANCELLED &&
			     file->n_to_skip < CM_ATTACH_TO_SKIP;
	     i++)
		file->to_skip[file->n_to_skip++] = reply->cancelled[i];
	skip_cancelled(file);
}

void rdmacm_event_wake(struct rdmacm_file *file)
{
	for (uint32_t i = 0; i < file->n_waiting; i++)
		(void)send(file->event_writer, wake, sizeof(wake), MSG_DONTWAIT | MSG_NOSIGNAL);
}
