/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device process's link to its port of urxed's switch (urxed/uplink/vm_port_protocol.h). The
 * process trusts its daemon. If the daemon ends, the link looks for the next one, and frames are
 * dropped meanwhile, as with a cable that is pulled out. Times are in ns of CLOCK_MONOTONIC.
 */
#ifndef URXE_VM_HOST_SWITCH_LINK_H
#define URXE_VM_HOST_SWITCH_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/shm.h>

#include "vm/host/daemon_pause.h"

#define SWITCH_LINK_BURST 32

/* Counters of the link: X(the member of struct switch_link, name, what it counts). */
#define SWITCH_LINK_COUNTER_LIST(X) \
	X(dropped, "link_dropped",  \
	  "frames to the switch dropped: no port, or a payload above 9000 bytes")

struct switch_link {
	const char *run_dir;
	const char *name; /* "": the daemon chooses */
	uint8_t mac[6];   /* the machine's */
	int epoll_fd;     /* readable when switch_link_event has something to do */
	int socket;       /* -1 = no daemon */
	uint32_t mtu;     /* of the host's uplinks */
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer; /* NULL = no daemon */
	uint8_t *buffers;             /* one of `stride` bytes for each entry of the ring */
	uint32_t stride;
	uint32_t sent;   /* frames so far; modulo the ring's size, number of the next buffer */
	uint32_t staged; /* frames that switch_link_flush will publish */
	struct netdev_frame frames[SWITCH_LINK_BURST];
	uint64_t retry_at; /* next look for a daemon, ns */
	struct daemon_pause pause;
	bool away;        /* the link has given its port back, until switch_link_return */
	int error;        /* of the last attempt to connect; 0 = none */
	uint64_t dropped; /* frames without a daemon, or with a payload longer than VM_PORT_MTU */
};

/* What another process needs to go on with a port of the switch (switch_link_adopt). */
struct switch_link_handover {
	bool joined; /* false: there is no port, and no descriptor */
	uint32_t mtu, sent;
	int socket;
	struct netdev_shm_fds fds;
};

/* Makes *link, which may be uninitialized, a closed link, which switch_link_close accepts. */
void switch_link_clear(struct switch_link *link);
/*
 * Connects to the daemon, and gets a port. Errors: a status of struct vm_port_reply; -ENOENT or
 * -ECONNREFUSED: no daemon; or another negative errno value. After an error, too, the caller calls
 * switch_link_close.
 */
int switch_link_open(struct switch_link *link, const char *run_dir, const char *name,
		     const uint8_t mac[6]);
void switch_link_close(struct switch_link *link);
static inline bool switch_link_is_up(const struct switch_link *link)
{
	return link->peer;
}

/*
 * Looks for a daemon if there is none; returns the time of the next look, UINT64_MAX = none needed.
 * *joined: the link has a daemon again.
 */
uint64_t switch_link_tick(struct switch_link *link, uint64_t now, bool *joined);
/*
 * Makes a link that has no port, looks for no daemon, and drops frames, until switch_link_return.
 * Until a daemon tells the MTU of its uplinks, link->mtu is `mtu`, bytes. 0 or a negative errno
 * value.
 */
int switch_link_open_away(struct switch_link *link, const char *run_dir, const char *name,
			  const uint8_t mac[6], uint32_t mtu);
/* Gives the port back, so that the machine's MAC may have a port on another host, or of another
 * process. Until switch_link_return frames are dropped. */
void switch_link_leave(struct switch_link *link);
/* Asks for a port again; result as of switch_link_open. After an error switch_link_tick tries
 * again. */
int switch_link_return(struct switch_link *link);
/*
 * Makes a link that goes on with the port of another process's link. The descriptors become the
 * link's, and -1 in *h, also if it then fails; only if the link's epoll cannot be made they stay in
 * *h. -EPROTO: the memory is not that of a port; or another negative errno value. If *h has no
 * port, the link has none and looks for no daemon until switch_link_return, as after
 * switch_link_open_away with h->mtu.
 */
int switch_link_adopt(struct switch_link *link, const char *run_dir, const char *name,
		      const uint8_t mac[6], struct switch_link_handover *h);
/*
 * Returns what another process needs for switch_link_adopt; the descriptors stay the link's. Makes
 * frames of switch_link_send visible to the daemon first.
 */
struct switch_link_handover switch_link_hand_over(struct switch_link *link);
/* Call it when epoll_fd is readable. False: the daemon has ended, or has removed the port, so the
 * link is down. True also if it was down before. */
bool switch_link_event(struct switch_link *link);

/* The number of frames that switch_link_send takes now. Without a daemon switch_link_send takes any
 * number, and drops the frames. */
uint32_t switch_link_room(const struct switch_link *link);
/*
 * The buffer in which a later call of switch_link_send puts its frame: that of the next call for
 * number 0, of the one after it for number 1, and so on; number < switch_link_room. The caller may
 * write the frame there itself. NULL: no daemon.
 */
uint8_t *switch_link_buffer(const struct switch_link *link, uint32_t number);
/*
 * Copies a frame into the ring's buffers, unless it is in its buffer already. switch_link_flush
 * makes frames visible to the daemon, and each SWITCH_LINK_BURST-th send calls it.
 */
void switch_link_send(struct switch_link *link, const uint8_t *data, uint32_t len);
void switch_link_flush(struct switch_link *link);
/* As netdev_shm_receive and netdev_shm_release; without a daemon there are no frames. */
uint32_t switch_link_receive(struct switch_link *link, struct netdev_frame *frames, uint32_t n);
void switch_link_release(struct switch_link *link, uint32_t n);
/* Before a sleep: the next frame will make epoll_fd readable. True: frames are there already. */
bool switch_link_arm(struct switch_link *link);

#endif
