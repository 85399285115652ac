/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/capture_tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rxe/packet.h>
#include <vnic/record_ring.h>
#include <vnic/server.h>

#include "common/clock.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/report/control.h"

void capture_taps_init(struct capture_taps *all, struct sessions *sessions)
{
	uint32_t i;

	*all = (struct capture_taps){.sessions = sessions};
	for (i = 0; i < CAPTURE_TAPS; i++)
		all->list[i].socket = -1;
}

/* Does the port have that name or number? "" matches every port. */
static bool matches_port(const struct switch_port *port, const char *wanted)
{
	char number[12];

	if (!wanted[0] || !strcmp(wanted, port->name))
		return true;
	snprintf(number, sizeof(number), "%u", port->number);
	return !strcmp(wanted, number);
}

static bool port_exists(const struct vswitch *sw, const char *wanted)
{
	const struct switch_port *port = NULL;

	while ((port = switch_next_port(sw, port)))
		if (matches_port(port, wanted))
			return true;
	return false;
}

/* Wakes urxe capture. If the socket is full, the bytes in it already wake urxe capture. */
static void wake_reader(const struct capture_tap *c)
{
	send(c->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Whether the kernel has cut the frame. This happens to a UDP GSO run for a process: the process's
 * packet socket gets the run whole, but urxed's packet ring has room for one packet only. A peer
 * sends runs until the process answers through the switch.
 */
static bool is_cut_run(const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	struct urxe_packet packet;

	return drop == SWITCH_DROP_SOCKET_COPY &&
	       urxe_packet_parse(&packet, data, len) == URXE_DROP_TRUNCATED;
}

static void put_frame(struct capture_tap *c, struct capture_record *record, const uint8_t *data,
		      bool cut)
{
	if (cut)
		capture_writer_count_lost(&c->writer);
	else if (capture_writer_put(&c->writer, record, data))
		wake_reader(c);
}

/* The switch's tap: copies each frame to the captures of its port. */
static void tap_frame(void *ctx, const struct switch_port *port, enum switch_direction dir,
		      const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	const char *reason = switch_drop_name(drop);
	struct capture_record record = {
		.len = len, .time = wall_ns(), .port = port->number, .direction = (uint8_t)dir};
	const bool cut = is_cut_run(data, len, drop);
	struct capture_taps *all = ctx;
	struct capture_tap *c;

	memcpy(record.name, port->name, sizeof(record.name));
	snprintf(record.reason, sizeof(record.reason), "%s", reason ? reason : "");
	for (c = all->list; c < all->list + CAPTURE_TAPS; c++)
		if (c->socket >= 0 && matches_port(port, c->port))
			put_frame(c, &record, data, cut);
}

/* Starts or ends the tap of the switch. Meanwhile processes may not bypass the switch, because a
 * capture has to see all frames. */
static void set_tap(struct capture_taps *all, bool on)
{
	all->sessions->sw->tap = on ? tap_frame : NULL;
	all->sessions->sw->tap_ctx = all;
	sessions_allow_bypass(all->sessions, !on);
}

/* Returns an unused capture; NULL: all are in use, or the user may start no more. */
static struct capture_tap *find_unused(struct capture_taps *all, uid_t user)
{
	struct capture_tap *c, *unused = NULL;
	uint32_t own = 0;

	for (c = all->list; c < all->list + CAPTURE_TAPS; c++) {
		own += c->socket >= 0 && c->user == user;
		if (c->socket < 0)
			unused = c;
	}
	/* With root's daemon only root can capture, so root may use all captures. */
	return geteuid() && own >= CAPTURE_TAPS_PER_USER ? NULL : unused;
}

/* --- Recordings of processes. */

/* Returns false if the capture's socket is full, or the capture has ended. */
static bool send_ring(const struct capture_tap *c, const struct session *s, int ring)
{
	struct control_recording recording = {.version = CONTROL_VERSION};

	memcpy(recording.port, s->port.name, sizeof(recording.port));
	return !unix_packet_send(c->socket, &recording, sizeof(recording), &ring, 1);
}

/* Sends the capture a ring, and asks the process to record into it. If the process does not get the
 * request, the capture waits in vain for its recording, and then names the process. */
static void record_session(struct capture_tap *c, struct session *s)
{
	int ring;

	if (s->closed || !s->port.dev || !matches_port(&s->port, c->port))
		return;
	ring = vnic_record_create();
	if (ring < 0 || !send_ring(c, s, ring))
		capture_writer_count_unrecorded(&c->writer);
	else
		vnic_server_record(s->conn, ring);
	if (ring >= 0)
		close(ring);
}

static void record_attached(void *ctx, struct session *s)
{
	const struct capture_taps *all = ctx;

	record_session(all->recording_tap, s);
}

void capture_taps_record(struct capture_taps *all, int socket)
{
	struct session *s;

	if (!all->recording_tap || all->recording_tap->socket != socket)
		return;
	all->sessions->attached = record_attached;
	all->sessions->attached_ctx = all;
	for (s = all->sessions->list; s; s = s->next)
		record_session(all->recording_tap, s);
	capture_writer_set_listed(&all->recording_tap->writer);
}

static void end_recordings(struct capture_taps *all)
{
	struct session *s;

	all->recording_tap = NULL;
	all->sessions->attached = NULL;
	for (s = all->sessions->list; s; s = s->next)
		if (!s->closed && s->port.dev)
			vnic_server_record(s->conn, -1);
}

/* --- Start and end. */

int capture_taps_start(struct capture_taps *all, int socket, const char *port, bool record)
{
	struct capture_tap *c;
	struct ucred peer;
	int fd;

	unix_packet_peer(socket, &peer);
	c = find_unused(all, peer.uid);
	if (!c)
		return -EBUSY;
	if (record && all->recording_tap)
		return -EALREADY;
	if (!port_exists(all->sessions->sw, port))
		return -ENODEV;
	fd = capture_writer_open(&c->writer);
	if (fd < 0)
		return fd;
	snprintf(c->port, sizeof(c->port), "%s", port);
	c->socket = socket;
	c->user = peer.uid;
	if (record)
		all->recording_tap = c;
	if (!all->n++)
		set_tap(all, true);
	return fd;
}

static void end_capture(struct capture_taps *all, struct capture_tap *c)
{
	c->socket = -1;
	if (all->recording_tap == c)
		end_recordings(all);
	capture_writer_close(&c->writer);
	if (!--all->n)
		set_tap(all, false);
}

bool capture_taps_end(struct capture_taps *all, int socket)
{
	struct capture_tap *c;

	for (c = all->list; c < all->list + CAPTURE_TAPS; c++) {
		if (c->socket == socket) {
			end_capture(all, c);
			return true;
		}
	}
	return false;
}

void capture_taps_end_all(struct capture_taps *all)
{
	struct capture_tap *c;

	for (c = all->list; c < all->list + CAPTURE_TAPS; c++)
		if (c->socket >= 0) {
			fd_guard_close(c->socket);
			end_capture(all, c);
		}
}
