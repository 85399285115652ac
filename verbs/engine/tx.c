/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "samehost/peer.h"

/* Room that urxe_output needs for a frame: payload, Ethernet header and VLAN tag. */
#define FRAME_ROOM(mtu) ((uint32_t)(mtu) + 18)

/* Average bytes of the frames of a burst from which a saved copy is worth its cost. */
#define STREAM_FRAME 1024

struct egress_route {
	struct vnic_outbox *outbox;
	struct peer *peer;            /* NULL: no memory */
	uint64_t stuck_since;         /* since when it takes no frames; 0: it takes frames */
	uint64_t detour_until;        /* frames go by the switch until then, */
	enum vnic_direct_counter why; /* counted here */
};

int egress_init(struct egress *egress, struct vnic_driver *nic,
		const struct vnic_attach_welcome *who)
{
	*egress = (struct egress){
		.nic = nic,
		.mtu = who->mtu,
		.process = VNIC_PROCESS(who->qpn_first),
		.routes = calloc(VNIC_PROCESSES, sizeof(struct egress_route *)),
		.spares = malloc((size_t)EGRESS_BURST * FRAME_ROOM(who->mtu)),
	};
	memcpy(egress->mac, who->mac, sizeof(egress->mac));
	if (egress->routes && egress->spares)
		return 0;
	egress_done(egress);
	return -ENOMEM;
}

static void close_route(struct egress *egress, uint32_t process)
{
	struct egress_route *route = egress->routes[process];

	egress->routes[process] = NULL;
	if (egress->stream == route)
		egress->stream = NULL;
	if (route->peer)
		peer_close(route->peer);
	else
		vnic_outbox_close(route->outbox);
	free(route);
}

void egress_done(struct egress *egress)
{
	for (uint32_t i = 0; egress->routes && i < VNIC_PROCESSES; i++)
		if (egress->routes[i])
			close_route(egress, i);
	free(egress->routes);
	free(egress->spares);
	*egress = (struct egress){0};
}

void egress_isolate(const struct egress *egress)
{
	for (uint32_t i = 0; egress->routes && i < VNIC_PROCESSES; i++)
		if (egress->routes[i])
			vnic_outbox_isolate(egress->routes[i]->outbox);
}

void egress_set_nic(struct egress *egress, struct vnic_driver *nic)
{
	egress->nic = nic;
	egress->first = egress->count = 0;
	egress->free = egress->posted = egress->placed = 0;
	egress->full_since = 0;
	egress->spare = false;
}

/* --- Inboxes of peers. */

/* A QPN that came from the program may have more than 24 bits. */
static uint32_t process_of(uint32_t qpn)
{
	return VNIC_PROCESS(qpn) % VNIC_PROCESSES;
}

static struct egress_route **route_to(const struct egress *egress, uint32_t qpn)
{
	return &egress->routes[process_of(qpn)];
}

bool egress_knows(const struct egress *egress, uint32_t qpn)
{
	const struct egress_route *route = *route_to(egress, qpn);

	return route && !vnic_outbox_closed(route->outbox);
}

struct peer *egress_peer(const struct egress *egress, const uint8_t mac[6], uint32_t qpn)
{
	const struct egress_route *route = *route_to(egress, qpn);

	if (!route || memcmp(mac, egress->mac, sizeof(egress->mac)) != 0 ||
	    !vnic_driver_direct_allowed(egress->nic) || vnic_outbox_closed(route->outbox))
		return NULL;
	return route->peer;
}

/* Frees the memory of inboxes whose processes have ended. */
static void close_ended(struct egress *egress)
{
	for (uint32_t i = 0; i < VNIC_PROCESSES; i++)
		if (egress->routes[i] && vnic_outbox_closed(egress->routes[i]->outbox))
			close_route(egress, i);
}

int egress_add(struct egress *egress, uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	struct vnic_outbox *outbox;
	struct egress_route *route;
	int rc = vnic_outbox_open(fds, egress->mtu, egress->process, &outbox);

	close_ended(egress);
	if (rc)
		return rc;
	route = calloc(1, sizeof(*route));
	if (!route) {
		vnic_outbox_close(outbox);
		return -ENOMEM;
	}
	route->outbox = outbox;
	route->peer = peer_open(outbox, process_of(qpn));
	if (*route_to(egress, qpn))
		close_route(egress, process_of(qpn));
	*route_to(egress, qpn) = route;
	return 0;
}

/* Whether a frame goes to a process of this host. */
static bool is_local(const struct egress *egress, const uint8_t *frame)
{
	return memcmp(frame, egress->mac, sizeof(egress->mac)) == 0;
}

/* NULL: the frame goes by the switch. */
static struct egress_route *route_of(struct egress *egress, uint64_t now, uint32_t slot)
{
	struct egress_route *route = *route_to(egress, egress->qpns[slot]);

	/* No process has the QPN of multicast packets. */
	if (!route || !is_local(egress, egress->slots[slot].data))
		return NULL;
	if (!vnic_driver_direct_allowed(egress->nic)) {
		egress_count(egress, VNIC_DIRECT_OFF, 1);
		return NULL;
	}
	if (now < route->detour_until) {
		egress_count(egress, route->why, 1);
		return NULL;
	}
	return route;
}

/* --- Frames. */

/* How long a state lasts. A thread that waited for the lock may have an older `now`. */
static uint64_t measure_duration(uint64_t *since, uint64_t now)
{
	if (!*since || now < *since)
		*since = now;
	return now - *since;
}

static uint32_t take_spares(struct egress *egress, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		egress->slots[i] = (struct vnic_frame){
			.data = egress->spares + (size_t)i * FRAME_ROOM(egress->mtu),
			.room = FRAME_ROOM(egress->mtu),
		};
	return n;
}

static uint32_t take_slots(struct egress *egress, uint64_t now, uint32_t n)
{
	egress->free = vnic_driver_tx_reserve(egress->nic, egress->slots, n);
	if (egress->free)
		egress->full_since = 0;
	egress->spare =
		!egress->free && measure_duration(&egress->full_since, now) >= EGRESS_SWITCH_NS;
	return egress->spare ? take_spares(egress, n) : egress->free;
}

/* Reserves buffers of the inbox that the stream goes to. 0: no stream, or the inbox is full. */
static uint32_t take_ahead(struct egress *egress, uint64_t now, uint32_t n)
{
	struct egress_route *route = egress->stream;

	if (!route || (n > 1 && !egress->stream_large) || now < route->detour_until ||
	    !vnic_driver_direct_allowed(egress->nic))
		return 0;
	return vnic_outbox_reserve(route->outbox, egress->ahead, n);
}

uint32_t egress_reserve(struct egress *egress, uint64_t now, struct urxe_frame *frames, uint32_t n)
{
	const struct vnic_frame *from = egress->slots;

	egress->now = now;
	/* Frames that went to inboxes have left their buffers of the NIC free. */
	if (egress->free < n)
		n = take_slots(egress, now, n);
	egress->n_ahead = take_ahead(egress, now, n);
	if (egress->n_ahead) {
		from = egress->ahead;
		n = egress->n_ahead;
	}
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct urxe_frame){.data = from[i].data, .room = from[i].room};
	egress->given = frames;
	return n;
}

/* Whether a frame goes to that process of this host. */
static bool goes_to(const struct egress *egress, const struct urxe_frame *frame, uint32_t process)
{
	return process_of(frame->dest_qpn) == process && is_local(egress, frame->data);
}

bool egress_may_reference(const struct egress *egress, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer *peer = egress_peer(egress, mac, qpn);

	/* The switch carries no references. */
	return peer && (*route_to(egress, qpn))->detour_until <= egress->now && peer_pulls(peer);
}

/*
 * Sets length and reference of a frame. Frames to processes of this host have no ICRC
 * (urxe_dev_attr.omit_local_icrc), so that an inbox slot of one cache line holds 8 bytes of
 * payload.
 */
static void set_frame(struct egress *egress, struct vnic_frame *to, const struct urxe_frame *frame)
{
	to->len = frame->len - (is_local(egress, frame->data) ? URXE_ICRC_LEN : 0);
	to->reference = (struct vnic_reference){0};
	if (!frame->reference.length)
		return;
	to->reference = (struct vnic_reference){
		.address = frame->reference.address,
		.length = frame->reference.length,
		.packets = frame->reference.packets,
		.generation = frame->reference.generation,
		.process = egress->process,
	};
	egress_count(egress, VNIC_DIRECT_REFERRED, 1);
}

/* A frame of the stream that is for another receiver. */
static void move_to_slot(struct egress *egress, uint32_t slot, struct urxe_frame *frame)
{
	memcpy(egress->slots[slot].data, frame->data, frame->len);
	frame->data = egress->slots[slot].data;
}

/* Moves a frame to the next buffer of the inbox, if a frame before it was for another receiver. */
static void move_up(struct egress *egress, uint32_t at, const struct urxe_frame *frame)
{
	struct vnic_frame *ahead = &egress->ahead[at];

	if (frame->data != ahead->data)
		memcpy(ahead->data, frame->data, frame->len);
	set_frame(egress, ahead, frame);
}

/*
 * Sends the frames of the stream, which have no data from then on, and moves the others to buffers
 * of the NIC. Returns the number of these others.
 */
static uint32_t end_ahead(struct egress *egress, struct urxe_frame *frames, uint32_t n)
{
	uint32_t sent = 0, moved = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (goes_to(egress, &frames[i], egress->stream_process)) {
			move_up(egress, sent++, &frames[i]);
			frames[i].data = NULL;
		} else {
			move_to_slot(egress, moved++, &frames[i]);
		}
	}
	vnic_outbox_commit(egress->stream->outbox, egress->ahead, sent);
	egress->n_ahead = 0;
	egress_count(egress, VNIC_DIRECT_SENT, sent);
	if (sent)
		egress->stream->stuck_since = 0;
	return moved;
}

/* A frame that the engine has not built yet has length 0. */
void egress_vacate(struct egress *egress)
{
	struct urxe_frame *frames = egress->given;
	uint32_t n = egress->n_ahead, made = 0, slot;

	if (!n)
		return;
	while (made < n && frames[made].len)
		made++;
	slot = end_ahead(egress, frames, made);
	for (uint32_t i = made; i < n; i++, slot++) {
		frames[i].data = egress->slots[slot].data;
		frames[i].room = egress->slots[slot].room;
	}
	egress->stream = NULL;
}

/* The next frame goes by the NIC; buffers before it in the ring may be empty. */
static void place_frame(struct egress *egress)
{
	struct vnic_frame *from = &egress->slots[egress->first++], *to;

	if (egress->spare || from->reference.process) {
		egress_count(egress, VNIC_DIRECT_LOST, 1);
		return;
	}
	if (is_local(egress, from->data)) {
		from->len += URXE_ICRC_LEN;
		urxe_frame_add_icrc(from->data, from->len);
	}
	to = &egress->slots[egress->placed++];
	if (from == to)
		return;
	memcpy(to->data, from->data, from->len);
	to->len = from->len;
}

static void post_frames(struct egress *egress)
{
	if (egress->posted == egress->placed)
		return;
	egress->free = 0;
	vnic_driver_tx_commit(egress->nic, &egress->slots[egress->posted],
			      egress->placed - egress->posted);
	egress->posted = egress->placed;
}

/* The inbox takes no frames now. True: for so long that frames go by the switch. */
static bool give_up(struct egress *egress, struct egress_route *route, uint64_t now,
		    enum vnic_outbox_status status)
{
	bool busy = status == VNIC_OUTBOX_BUSY;

	if (measure_duration(&route->stuck_since, now) >=
	    (busy ? EGRESS_BUSY_NS : EGRESS_FULL_NS)) {
		route->detour_until = now + EGRESS_DETOUR_NS;
		route->why = busy ? VNIC_DIRECT_BUSY : VNIC_DIRECT_FULL;
		return true;
	}
	egress->retry_at = now + EGRESS_RETRY_NS;
	return false;
}

/* Number of waiting frames in a row that go to the inbox of the first. */
static uint32_t run_length(const struct egress *egress)
{
	uint32_t first = egress->first, n = 1;

	while (first + n < egress->count &&
	       process_of(egress->qpns[first + n]) == process_of(egress->qpns[first]) &&
	       is_local(egress, egress->slots[first + n].data))
		n++;
	return n;
}

/* Sends the next frames to their inbox. False: the next frame has to wait. */
static bool send_to_inbox(struct egress *egress, struct egress_route *route, uint64_t now)
{
	uint32_t n = run_length(egress), sent;
	enum vnic_outbox_status status;

	sent = vnic_outbox_send(route->outbox, &egress->slots[egress->first], n, &status);
	egress_count(egress, VNIC_DIRECT_SENT, sent);
	if (status == VNIC_OUTBOX_CLOSED) {
		egress_count(egress, VNIC_DIRECT_CLOSED, 1);
		close_route(egress, process_of(egress->qpns[egress->first]));
		return true;
	}
	egress->first += sent;
	if (sent)
		route->stuck_since = 0;
	return status == VNIC_OUTBOX_TAKEN || give_up(egress, route, now, status);
}

bool egress_flush(struct egress *egress, uint64_t now)
{
	while (egress->first < egress->count) {
		struct egress_route *route = route_of(egress, now, egress->first);

		if (!route)
			place_frame(egress);
		else if (!send_to_inbox(egress, route, now))
			break;
	}
	post_frames(egress);
	return egress->first == egress->count;
}

static bool are_large(const struct urxe_frame *frames, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += frames[i].len + frames[i].reference.length;
	return bytes >= (uint64_t)n * STREAM_FRAME;
}

/*
 * Large frames to one process are a stream, and single frames that go to one process in turn: the
 * next frames probably go there, too.
 */
static struct egress_route *find_stream(const struct egress *egress,
					const struct urxe_frame *frames, uint32_t n,
					uint32_t process, bool large)
{
	if (!large && (n > 1 || process != egress->stream_process))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (frames[i].data && !goes_to(egress, &frames[i], process))
			return NULL;
	return egress->routes[process];
}

bool egress_send(struct egress *egress, uint64_t now, struct urxe_frame *frames, uint32_t n)
{
	uint32_t process = n ? process_of(frames[0].dest_qpn) : egress->stream_process;
	bool large = n ? are_large(frames, n) : egress->stream_large;
	/* Before they are sent: then they belong to the receiver. */
	struct egress_route *next =
		n ? find_stream(egress, frames, n, process, large) : egress->stream;

	if (egress->n_ahead)
		end_ahead(egress, frames, n);
	egress->stream = next;
	egress->stream_process = process;
	egress->stream_large = large;
	egress->count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!frames[i].data)
			continue;
		set_frame(egress, &egress->slots[egress->count], &frames[i]);
		egress->qpns[egress->count++] = frames[i].dest_qpn;
	}
	egress->first = egress->posted = egress->placed = 0;
	return !egress->count || egress_flush(egress, now);
}

uint64_t egress_deadline(const struct egress *egress)
{
	return egress->first < egress->count ? egress->retry_at : URXE_NEVER;
}

bool egress_take_in(const struct egress *egress, const struct vnic_frame *buffer, bool from_inbox,
		    struct urxe_frame *frame)
{
	const struct vnic_reference *reference = &buffer->reference;
	const struct egress_route *sender;

	*frame = (struct urxe_frame){
		.data = buffer->data,
		.len = buffer->len + (from_inbox ? URXE_ICRC_LEN : 0),
		.without_icrc = from_inbox,
	};
	if (!reference->process)
		return true;
	sender = reference->process < VNIC_PROCESSES ? egress->routes[reference->process] : NULL;
	if (!sender || !sender->peer)
		return false;
	frame->reference = (struct urxe_reference){
		.address = reference->address,
		.length = reference->length,
		.packets = reference->packets,
		.generation = reference->generation,
		.sender = sender->peer,
	};
	return true;
}
