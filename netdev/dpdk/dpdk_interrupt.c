/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/dpdk_interrupt.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_atomic.h>
#include <rte_ethdev.h>

/* --- The guest of a vhost device */

/*
 * Tells the port's thread that a guest has come or goes. Runs in DPDK's vhost thread. net_vhost
 * disables the interrupt of a guest that connects, so a sleeping port must arm it again. Before
 * DPDK unmaps the memory of a guest that leaves, the port's thread must have left rx_intr_enable,
 * which writes there without a check.
 */
static int guest_changed(uint16_t port, enum rte_eth_event_type event, void *context, void *unused)
{
	struct dpdk_interrupt *interrupt = context;

	(void)port;
	(void)unused;
	/* DPDK reports QUEUE_STATE while it holds a lock that rx_intr_enable takes, too, so this
	 * thread must not wait for enable_lock then. It unmaps nothing at QUEUE_STATE. */
	if (event == RTE_ETH_EVENT_INTR_LSC) {
		pthread_mutex_lock(&interrupt->enable_lock);
		pthread_mutex_unlock(&interrupt->enable_lock);
	}
	eventfd_write(interrupt->change_fd, 1);
	return 0;
}

static const enum rte_eth_event_type changes[] = {RTE_ETH_EVENT_INTR_LSC,
						  RTE_ETH_EVENT_QUEUE_STATE};

static bool watch_guest(struct dpdk_interrupt *interrupt)
{
	interrupt->change_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (interrupt->change_fd < 0)
		return false;
	for (size_t i = 0; i < RTE_DIM(changes); i++)
		if (rte_eth_dev_callback_register(interrupt->port, changes[i], guest_changed,
						  interrupt))
			return false;
	return true;
}

static void forget_guest(struct dpdk_interrupt *interrupt)
{
	if (interrupt->change_fd < 0)
		return;
	for (size_t i = 0; i < RTE_DIM(changes); i++)
		while (rte_eth_dev_callback_unregister(interrupt->port, changes[i], guest_changed,
						       interrupt) == -EAGAIN)
			rte_pause();
	close(interrupt->change_fd);
	interrupt->change_fd = -1;
}

static bool has_guests(uint16_t port)
{
	struct rte_eth_dev_info info;

	return !rte_eth_dev_info_get(port, &info) && !strcmp(info.driver_name, "net_vhost");
}

/* --- Opening */

static bool enable_interrupt(struct dpdk_interrupt *interrupt, bool on)
{
	int err;

	pthread_mutex_lock(&interrupt->enable_lock);
	err = on ? rte_eth_dev_rx_intr_enable(interrupt->port, 0)
		 : rte_eth_dev_rx_intr_disable(interrupt->port, 0);
	pthread_mutex_unlock(&interrupt->enable_lock);
	return !err;
}

/*
 * Adds the driver's descriptor to the port's epoll set, edge-triggered; false: errno has the error.
 * Level-triggered it would stay readable, because some drivers never read it, and others leave that
 * to the caller. rte_epoll_wait would read it, but spins where another thread was faster
 * (eal_intr_proc_rxtx_intr).
 */
static bool watch_descriptor(struct dpdk_interrupt *interrupt, int fd)
{
	struct epoll_event edge = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	return !epoll_ctl(interrupt->fd, EPOLL_CTL_ADD, fd, &edge);
}

static bool open_interrupt(struct dpdk_interrupt *interrupt)
{
	interrupt->driver_fd = rte_eth_dev_rx_intr_ctl_q_get_fd(interrupt->port, 0);
	if (interrupt->driver_fd < 0)
		return false;
	interrupt->fd = epoll_create1(EPOLL_CLOEXEC);
	if (interrupt->fd < 0 || !watch_descriptor(interrupt, interrupt->driver_fd))
		return false;
	if (has_guests(interrupt->port) &&
	    !(watch_guest(interrupt) && watch_descriptor(interrupt, interrupt->change_fd)))
		return false;
	return enable_interrupt(interrupt, false);
}

void dpdk_interrupt_open(struct dpdk_interrupt *interrupt, uint16_t port, bool interrupt_seen)
{
	interrupt->port = port;
	interrupt->interrupt_seen = interrupt_seen;
	if (!open_interrupt(interrupt))
		dpdk_interrupt_close(interrupt);
}

void dpdk_interrupt_close(struct dpdk_interrupt *interrupt)
{
	forget_guest(interrupt);
	if (interrupt->fd >= 0)
		close(interrupt->fd);
	interrupt->fd = -1;
}

/* --- In use */

void dpdk_interrupt_reset(struct dpdk_interrupt *interrupt)
{
	struct epoll_event events[2];
	int n = epoll_wait(interrupt->fd, events, RTE_DIM(events), 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == interrupt->driver_fd && interrupt->received)
			interrupt->interrupt_seen = true;
		if (events[i].data.fd == interrupt->change_fd)
			interrupt->changed = true;
	}
	/* Some devices disable the interrupt when they raise it, net_vhost for a new guest. */
	if (n > 0)
		interrupt->masked = true;
}

bool dpdk_interrupt_arm(struct dpdk_interrupt *interrupt)
{
	dpdk_interrupt_reset(interrupt);
	if (interrupt->armed && !interrupt->masked)
		return false;
	interrupt->armed = enable_interrupt(interrupt, true);
	interrupt->masked = interrupt->received = false;
	/* The device must see the enable before the port receives once more. */
	rte_mb();
	return true;
}

void dpdk_interrupt_disarm(struct dpdk_interrupt *interrupt)
{
	interrupt->received = true;
	if (interrupt->armed)
		enable_interrupt(interrupt, false);
	interrupt->armed = false;
}

bool dpdk_interrupt_take_change(struct dpdk_interrupt *interrupt)
{
	const bool changed = interrupt->changed;

	interrupt->changed = false;
	return changed;
}

bool dpdk_interrupt_is_reliable(const struct dpdk_interrupt *interrupt)
{
	return interrupt->armed && !interrupt->masked && interrupt->interrupt_seen;
}
