/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device process's end of a station on urxed's switch (urxed/uplink/station_protocol.h). The
 * process trusts its daemon. If the daemon ends, the link looks for the next one, and frames are
 * dropped meanwhile, as with a cable that is pulled out. Times are in ns of CLOCK_MONOTONIC.
 */
#ifndef URXE_VM_HOST_STATION_LINK_H
#define URXE_VM_HOST_STATION_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/shm.h>

#define STATION_LINK_BURST 32

struct station_link {
	const char *run_dir;
	const char *name; /* "": the daemon chooses */
	uint8_t mac[6];   /* the machine's */
	int epoll_fd;     /* readable when station_link_event has something to do */
	int socket;       /* -1 = no daemon */
	uint32_t mtu;     /* of the host's uplinks */
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer; /* NULL = no daemon */
	uint8_t *buffers;             /* one of `stride` bytes for each entry of the ring */
	uint32_t stride;
	uint32_t sent;   /* frames so far; modulo the ring's size, number of the next buffer */
	uint32_t staged; /* frames that station_link_flush will publish */
	struct netdev_frame frames[STATION_LINK_BURST];
	uint64_t retry_at; /* next attempt to connect, ns */
	bool away; /* the link wants no port: after station_link_leave, until station_link_return */
	int error; /* of the last attempt to connect, which was logged; 0 = none */
	uint64_t dropped; /* frames without a daemon, or longer than a station's MTU */
};

/* What another process needs to go on with a port of the switch (station_link_adopt). */
struct station_handover {
	bool joined; /* false: there is no port, and no descriptor */
	uint32_t mtu, sent;
	int socket;
	struct netdev_shm_fds fds;
};

/* Makes *link a closed link, which station_link_close accepts; reads nothing of it. */
void station_link_clear(struct station_link *link);
/*
 * Connects to the daemon, and gets a port. Errors: a status of struct station_reply; -ENOENT or
 * -ECONNREFUSED: no daemon; or another negative errno value. After an error, too, the caller calls
 * station_link_close.
 */
int station_link_open(struct station_link *link, const char *run_dir, const char *name,
		      const uint8_t mac[6]);
void station_link_close(struct station_link *link);
static inline bool station_link_is_up(const struct station_link *link)
{
	return link->peer;
}

/*
 * Looks for a daemon if there is none; returns the time of the next look, UINT64_MAX = none needed.
 * *joined: the link has a daemon again.
 */
uint64_t station_link_tick(struct station_link *link, uint64_t now, bool *joined);
/*
 * Makes a link that has no port, looks for no daemon, and drops frames, until station_link_return.
 * Until a daemon tells the MTU of its uplinks, link->mtu is `mtu`, bytes.
 */
int station_link_open_away(struct station_link *link, const char *run_dir, const char *name,
			   const uint8_t mac[6], uint32_t mtu);
/* Gives the port back, so that the machine's MAC may have a port on another host, or of another
 * process. Until station_link_return frames are dropped. */
void station_link_leave(struct station_link *link);
/* Asks for a port again. After an error station_link_tick tries again. */
int station_link_return(struct station_link *link);
/*
 * Makes a link that goes on with the port of another process's link. The descriptors become the
 * link's, and -1 in *h. -EPROTO: they are not those of a port.
 */
int station_link_adopt(struct station_link *link, const char *run_dir, const char *name,
		       const uint8_t mac[6], struct station_handover *h);
/*
 * Returns what another process needs for station_link_adopt; the descriptors stay the link's. Makes
 * frames of station_link_send visible to the daemon first.
 */
struct station_handover station_link_hand_over(struct station_link *link);
/* Call it when epoll_fd is readable. False: the daemon has ended, so the link is down. */
bool station_link_event(struct station_link *link);

/* How many frames station_link_send takes now; without a daemon any number, and drops them. */
uint32_t station_link_room(const struct station_link *link);
/*
 * The buffer in which a later call of station_link_send puts its frame: that of the next call for
 * number 0, of the one after it for number 1, and so on; number < station_link_room. The caller may
 * write the frame there itself. NULL: no daemon.
 */
uint8_t *station_link_buffer(const struct station_link *link, uint32_t number);
/*
 * Copies a frame into the ring's buffers, unless it is in its buffer already. station_link_flush
 * makes frames visible to the daemon, and each STATION_LINK_BURST-th send calls it.
 */
void station_link_send(struct station_link *link, const uint8_t *data, uint32_t len);
void station_link_flush(struct station_link *link);
/* As netdev_shm_receive and netdev_shm_release; without a daemon there are no frames. */
uint32_t station_link_receive(struct station_link *link, struct netdev_frame *frames, uint32_t n);
void station_link_release(struct station_link *link, uint32_t n);
/* Before a sleep: the next frame will make epoll_fd readable. True: frames are there already. */
bool station_link_arm(struct station_link *link);

#endif
