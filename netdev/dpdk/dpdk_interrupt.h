/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receive interrupt of queue 0 of a DPDK device, for a port that sleeps (dpdk_rx.c). The
 * interrupt is disabled except before a sleep, since each one may cost an exit of a virtual
 * machine.
 */
#ifndef URXE_NETDEV_DPDK_DPDK_INTERRUPT_H
#define URXE_NETDEV_DPDK_DPDK_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct dpdk_interrupt {
	uint16_t port;
	int fd;        /* epoll set of driver_fd and change_fd; -1 = no interrupt */
	int driver_fd; /* the driver's; some drivers never read it */
	int change_fd; /* eventfd: a vhost guest connected or left; -1 = not vhost */
	bool armed;
	bool masked;         /* the device may have disabled the interrupt since it was armed */
	bool received;       /* a frame came since the interrupt was armed */
	bool interrupt_seen; /* the interrupt came for a frame once, so it works */
	bool changed;        /* a vhost guest connected or left, or its queues were enabled or
				disabled, since dpdk_interrupt_take_change */
	/*
	 * Protects the guest's flags, in rx_intr_enable and rx_intr_disable, and its ring
	 * (vhost_ring.h) from an unmap by DPDK's vhost thread. The lock has no rank
	 * (docs/locking.md), as urxe takes no other lock while it holds this one. DPDK takes its
	 * own.
	 */
	pthread_mutex_t enable_lock;
};

#define DPDK_INTERRUPT_NONE                       \
	((struct dpdk_interrupt){.fd = -1,        \
				 .driver_fd = -1, \
				 .change_fd = -1, \
				 .enable_lock = PTHREAD_MUTEX_INITIALIZER})

/*
 * For a started device that was configured with intr_conf.rxq. Sets interrupt->fd to -1 if the
 * device has no such interrupt. `interrupt_seen`: the port may rely on the interrupt from the
 * start. False for PCI devices, whose interrupt line may not work: the port polls until the
 * interrupt has come for a frame once. DPDK's callbacks hold the structure's address: it must not
 * move before dpdk_interrupt_close, which the caller calls before it closes the device.
 */
void dpdk_interrupt_open(struct dpdk_interrupt *interrupt, uint16_t port, bool interrupt_seen);
void dpdk_interrupt_close(struct dpdk_interrupt *interrupt);
/* Notes what made `fd` readable, and takes the event from the epoll set without a read of the other
 * descriptors: `fd` is readable again after the next interrupt or change. For a receive without
 * frames, because the call costs a system call. */
void dpdk_interrupt_reset(struct dpdk_interrupt *interrupt);
/*
 * Resets `fd` and enables the interrupt, before a sleep. True: this call enabled the interrupt, or
 * tried to: the device may have had it disabled until now. The caller then receives once more,
 * because a frame may have come before, without an interrupt. False: the interrupt was enabled
 * already, and the device cannot have disabled it since.
 */
bool dpdk_interrupt_arm(struct dpdk_interrupt *interrupt);
/* Disables the interrupt after a frame. Costs nothing if it is not armed. */
void dpdk_interrupt_disarm(struct dpdk_interrupt *interrupt);

/* Whether a vhost guest has changed; the next call returns false until it changes again. */
bool dpdk_interrupt_take_change(struct dpdk_interrupt *interrupt);

/* Whether the interrupt is armed, and certain to come for the next frame; else the port polls. */
bool dpdk_interrupt_is_reliable(const struct dpdk_interrupt *interrupt);

#endif
