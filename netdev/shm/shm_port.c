/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The port's side of a shared-memory port. The peer may write any word of the memory at any time,
 * so this file keeps its own ring positions, reads each word of the peer once, and checks the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "netdev_ops.h"
#include "shm/shm_layout.h"

#define MTU_MIN 576u
#define MTU_MAX 9000u

/*
 * A peer that writes to the eventfd without need leaves the epoll set readable, and the port's
 * thread would not sleep. So a receive resets the set if the last reset is this long ago.
 */
#define RESET_NS 100000

struct shm_port {
	struct netdev netdev;
	struct shm_memory *memory; /* NULL = no peer */
	uint32_t size;             /* of the memory */
	uint32_t mtu, frame_max, stride;
	uint32_t slots, buffers; /* offsets, as in struct shm_memory */
	uint32_t rx_tail, tx_head;
	enum netdev_shm_state state;
	bool connected_before;
	bool wait_taken; /* netdev_wait_fd was called */
	uint64_t reset_at;
	int epoll_fd; /* holds fds.wake */
	struct netdev_shm_fds fds;
	int kick_fd;                             /* write end of the pipe fds.kick */
	uint8_t *frames;                         /* SHM_BURST copies of received frames */
	uint64_t counters[NETDEV_COUNTER_COUNT]; /* the port's own, and those of earlier peers */
};

static struct shm_port *to_shm(struct netdev *port)
{
	return (struct shm_port *)port;
}

/* --- Receiving */

static void break_peer(struct shm_port *port)
{
	port->state = NETDEV_SHM_BROKEN;
	port->counters[NETDEV_PEERS_BROKEN]++;
}

/* Whether the peer is ready, and has not broken the ring. The port reads the peer's word `ready`
 * only until it is 1, so the peer cannot make a port that was up look down. */
static bool is_ready(struct shm_port *port)
{
	if (port->state == NETDEV_SHM_STARTING && shm_load(&port->memory->ready) == 1)
		port->state = NETDEV_SHM_READY;
	return port->state == NETDEV_SHM_READY;
}

/* Copies a frame, so that the peer cannot change it between the switch's checks and its use. False:
 * the entry is not valid, and is counted as bad. */
static bool copy_frame(struct shm_port *port, struct shm_entry entry, uint8_t *copy)
{
	if (entry.len > port->frame_max) {
		port->counters[NETDEV_RX_TOO_LONG]++;
		return false;
	}
	if (!entry.len || entry.offset < port->buffers || entry.offset > port->size - entry.len) {
		port->counters[NETDEV_RX_BAD]++;
		return false;
	}
	memcpy(copy, (const uint8_t *)port->memory + entry.offset, entry.len);
	port->counters[NETDEV_RX_FRAMES]++;
	port->counters[NETDEV_RX_BYTES] += entry.len;
	return true;
}

static uint32_t take_frames(struct shm_port *port, struct netdev_frame *frames, uint32_t n)
{
	struct shm_ring *ring = &port->memory->to_port;
	uint32_t ready = shm_load(&ring->head) - port->rx_tail, count = 0;

	if (ready > NETDEV_SHM_DEPTH) {
		break_peer(port);
		return 0;
	}
	/* Bad entries do not add to n: a result of 0 must mean an empty ring. */
	for (; ready && count < n; ready--, port->rx_tail++) {
		const struct shm_entry entry = shm_read_entry(ring, port->rx_tail);
		uint8_t *copy = port->frames + (size_t)count * port->stride;

		if (copy_frame(port, entry, copy))
			frames[count++] = (struct netdev_frame){copy, entry.len, entry.len, 0};
	}
	shm_store(&ring->tail, port->rx_tail);
	return count;
}

/* Makes the epoll set not readable. The set watches the eventfd edge-triggered, so epoll_wait is
 * enough, without a read of the eventfd. */
static void reset_epoll_set(struct shm_port *port, uint64_t now)
{
	struct epoll_event event;

	epoll_wait(port->epoll_fd, &event, 1, 0);
	port->reset_at = now + RESET_NS;
}

/*
 * Resets the epoll set of a port whose peer is not ready, or has broken the ring. Returns whether
 * the peer has become ready: it sets `ready` before it wakes the port.
 */
static bool becomes_ready(struct shm_port *port, uint64_t now)
{
	if (port->state == NETDEV_SHM_ABSENT || !port->wait_taken || now < port->reset_at)
		return false;
	reset_epoll_set(port, now);
	return is_ready(port);
}

/*
 * Resets the epoll set and asks the peer for a wake-up. True: the request is new, so the caller
 * receives once more: a frame may have come before the request. While the request stands, an empty
 * receive costs one load.
 */
static bool request_wake(struct shm_port *port, uint64_t now)
{
	struct shm_ring *ring = &port->memory->to_port;

	if (shm_load(&ring->waiting) == 1 && now < port->reset_at)
		return false;
	reset_epoll_set(port, now);
	shm_set_waiting(ring);
	return true;
}

static uint32_t shm_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames, uint32_t n)
{
	struct shm_port *port = to_shm(netdev);
	uint32_t count;

	if (!is_ready(port) && !becomes_ready(port, now))
		return 0;
	n = n < SHM_BURST ? n : SHM_BURST;
	count = take_frames(port, frames, n);
	if (!count && n && port->wait_taken && port->state == NETDEV_SHM_READY &&
	    request_wake(port, now))
		count = take_frames(port, frames, n);
	return count;
}

/* --- Sending */

static void send_frame(struct shm_port *port, const struct netdev_frame *frame)
{
	const uint32_t offset = port->slots + (port->tx_head & SHM_MASK) * port->stride;

	memcpy((uint8_t *)port->memory + offset, frame->data, frame->len);
	shm_write_entry(&port->memory->to_peer, port->tx_head++, offset, frame->len);
	port->counters[NETDEV_TX_FRAMES]++;
	port->counters[NETDEV_TX_BYTES] += frame->len;
}

static void publish_frames(struct shm_port *port)
{
	struct shm_ring *ring = &port->memory->to_peer;

	shm_store(&ring->head, port->tx_head);
	/* A system call only if the peer sleeps. A full pipe holds a wake-up already. */
	if (shm_take_waiting(ring) && write(port->kick_fd, "", 1) < 0)
		return;
}

static uint32_t drop_all(struct shm_port *port, uint32_t n)
{
	port->counters[NETDEV_TX_NO_PEER] += n;
	return n;
}

static uint32_t shm_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
		       uint32_t n)
{
	struct shm_port *port = to_shm(netdev);
	uint32_t used, done, before = port->tx_head;

	(void)now;
	if (!is_ready(port))
		return drop_all(port, n);
	used = port->tx_head - shm_load(&port->memory->to_peer.tail);
	if (used > NETDEV_SHM_DEPTH) {
		break_peer(port);
		return drop_all(port, n);
	}
	for (done = 0; done < n; done++) {
		if (frames[done].len > port->frame_max) {
			port->counters[NETDEV_TX_TOO_LONG]++;
			continue;
		}
		if (used + (port->tx_head - before) == NETDEV_SHM_DEPTH)
			break;
		send_frame(port, &frames[done]);
	}
	if (port->tx_head != before)
		publish_frames(port);
	port->counters[NETDEV_TX_REFUSED] += n - done;
	return done;
}

/* --- Properties */

static int shm_wait_fd(struct netdev *netdev)
{
	struct shm_port *port = to_shm(netdev);

	port->wait_taken = true;
	return port->epoll_fd;
}

static bool shm_is_up(struct netdev *netdev)
{
	struct shm_port *port = to_shm(netdev);

	return is_ready(port) && !shm_load(&port->memory->link_down);
}

static uint32_t shm_mtu(const struct netdev *netdev)
{
	return ((const struct shm_port *)netdev)->mtu;
}

/* The counters of the peer's device that the port adds to its own. */
static const enum netdev_counter of_peer[] = {NETDEV_RX_BAD,      NETDEV_RX_MISSED,
					      NETDEV_TX_TOO_LONG, NETDEV_TX_ERRORS,
					      NETDEV_TX_NO_PEER,  NETDEV_PEERS};

static void add_peer_counters(const struct shm_port *port, uint64_t sums[NETDEV_COUNTER_COUNT])
{
	for (size_t i = 0; port->memory && i < sizeof(of_peer) / sizeof(of_peer[0]); i++)
		sums[of_peer[i]] +=
			__atomic_load_n(&port->memory->counters[of_peer[i]], __ATOMIC_RELAXED);
}

static void shm_counters(struct netdev *netdev, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	struct shm_port *port = to_shm(netdev);

	memcpy(counters, port->counters, sizeof(port->counters));
	add_peer_counters(port, counters);
}

enum netdev_shm_state netdev_shm_state(struct netdev *netdev)
{
	is_ready(to_shm(netdev));
	return to_shm(netdev)->state;
}

uint32_t netdev_shm_progress(struct netdev *netdev, uint32_t *waiting)
{
	struct shm_port *port = to_shm(netdev);
	uint32_t tail;

	*waiting = 0;
	if (!is_ready(port))
		return 0;
	tail = shm_load(&port->memory->to_peer.tail);
	*waiting = port->tx_head - tail;
	return tail;
}

/* --- Connecting */

static void forget_descriptors(struct shm_port *port)
{
	port->fds = (struct netdev_shm_fds){-1, -1, -1};
	port->kick_fd = -1;
}

/*
 * Makes and maps the shared memory; returns 0 or a negative errno value. It is in ordinary pages.
 * If the peer freed pages of a memfd in huge pages (MADV_REMOVE), an access by the port might find
 * no free page and raise SIGBUS. Ordinary pages come back filled with zeros.
 */
static int make_memory(struct shm_port *port)
{
	void *memory;

	port->fds.memory = memfd_create("urxe-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (port->fds.memory < 0 || ftruncate(port->fds.memory, port->size) ||
	    fcntl(port->fds.memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	memory = mmap(NULL, port->size, PROT_READ | PROT_WRITE, MAP_SHARED, port->fds.memory, 0);
	if (memory == MAP_FAILED)
		return -errno;
	port->memory = memory;
	port->memory->size = port->size;
	port->memory->mtu = port->mtu;
	port->memory->stride = port->stride;
	port->memory->slots = port->slots;
	port->memory->buffers = port->buffers;
	return 0;
}

/*
 * Makes the descriptors by which the two sides wake each other; returns 0 or a negative errno
 * value. The port never reads the eventfd. It wakes the peer by a pipe instead of an eventfd,
 * because the two ends of a pipe have their own O_NONBLOCK: a peer could make writes to an eventfd
 * block.
 */
static int make_wakeups(struct shm_port *port)
{
	struct epoll_event edge = {.events = EPOLLIN | EPOLLET};
	int ends[2];

	port->fds.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (port->fds.wake < 0 || pipe2(ends, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	port->fds.kick = ends[0];
	port->kick_fd = ends[1];
	return epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, port->fds.wake, &edge) ? -errno : 0;
}

int netdev_shm_connect(struct netdev *netdev, struct netdev_shm_fds *fds)
{
	struct shm_port *port = to_shm(netdev);
	int err;

	if (port->state != NETDEV_SHM_ABSENT)
		return -EISCONN;
	err = make_memory(port) ?: make_wakeups(port);
	if (err) {
		netdev_shm_disconnect(netdev);
		return err;
	}
	port->rx_tail = port->tx_head = 0;
	port->reset_at = 0;
	port->state = NETDEV_SHM_STARTING;
	port->counters[NETDEV_RESTARTS] += port->connected_before;
	port->connected_before = true;
	*fds = port->fds;
	return 0;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void netdev_shm_disconnect(struct netdev *netdev)
{
	struct shm_port *port = to_shm(netdev);

	add_peer_counters(port, port->counters);
	if (port->fds.wake >= 0)
		epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, port->fds.wake, NULL);
	if (port->memory)
		munmap(port->memory, port->size);
	port->memory = NULL;
	close_if_open(port->fds.memory);
	close_if_open(port->fds.wake);
	close_if_open(port->fds.kick);
	close_if_open(port->kick_fd);
	forget_descriptors(port);
	port->state = NETDEV_SHM_ABSENT;
}

/* --- Opening and closing */

static void shm_close(struct netdev *netdev)
{
	struct shm_port *port = to_shm(netdev);

	netdev_shm_disconnect(netdev);
	close_if_open(port->epoll_fd);
	free(port->frames);
	free(port);
}

static const struct netdev_ops shm_ops = {
	.rx = shm_rx,
	.tx = shm_tx,
	.wait_fd = shm_wait_fd,
	.is_up = shm_is_up,
	.mtu = shm_mtu,
	.counters = shm_counters,
	.close = shm_close,
};

static void lay_out(struct shm_port *port, uint32_t mtu)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint32_t buffer;

	port->mtu = mtu;
	port->frame_max = mtu + SHM_FRAME_OVERHEAD;
	port->stride = shm_round(port->frame_max, SHM_LINE);
	buffer = port->stride > SHM_BUFFER_LEAST ? port->stride : SHM_BUFFER_LEAST;
	port->slots = shm_round(sizeof(struct shm_memory), page);
	port->buffers = shm_round(port->slots + NETDEV_SHM_DEPTH * port->stride, page);
	port->size = shm_round(port->buffers + (NETDEV_SHM_DEPTH + NETDEV_SHM_SPARE) *
						       (buffer + SHM_BUFFER_OVERHEAD),
			       page);
}

int netdev_shm_create(uint32_t mtu, struct netdev **port)
{
	struct shm_port *new;

	if (mtu < MTU_MIN || mtu > MTU_MAX)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->netdev.ops = &shm_ops;
	forget_descriptors(new);
	lay_out(new, mtu);
	new->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	new->frames = malloc((size_t)SHM_BURST * new->stride);
	if (new->epoll_fd < 0 || !new->frames) {
		shm_close(&new->netdev);
		return -ENOMEM;
	}
	*port = &new->netdev;
	return 0;
}
