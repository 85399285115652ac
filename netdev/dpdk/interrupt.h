/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receive interrupt of a DPDK device, of its queue 0, as something to sleep on. It is off
 * unless armed: each one may cost an exit of a virtual machine at either end.
 */
#ifndef URXE_NETDEV_DPDK_INTERRUPT_H
#define URXE_NETDEV_DPDK_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct dpdk_interrupt {
	uint16_t port;
	int fd; /* readable when it came, or the device's other side did; -1 = there is none */
	int driver_fd; /* stays readable: only that it became so is told */
	int change_fd; /* of a device whose other side comes and goes, -1 = no such device */
	bool armed;
	bool masked;             /* perhaps, since it was armed */
	bool received;           /* something, since it was armed */
	bool proven;             /* it came for a frame, so the next will too */
	pthread_mutex_t turning; /* it on or off */
};

#define DPDK_INTERRUPT_NONE       \
	((struct dpdk_interrupt){ \
		.fd = -1, .driver_fd = -1, .change_fd = -1, .turning = PTHREAD_MUTEX_INITIALIZER})

/*
 * Of a started device that was configured with intr_conf.rxq; where it has no interrupt, `fd` stays
 * -1. proven: it is taken to work before it has come for a frame, as no interrupt line has a part
 * in it. The structure stays where it is until it is closed, which comes before the device's end.
 */
void dpdk_interrupt_open(struct dpdk_interrupt *interrupt, uint16_t port, bool proven);
void dpdk_interrupt_close(struct dpdk_interrupt *interrupt);
/* After nothing was received, so that `fd` is readable only once there is news. A system call. */
void dpdk_interrupt_take(struct dpdk_interrupt *interrupt);
/*
 * The same, and from now on a frame makes `fd` readable. True: it was armed just now, so look once
 * more, a frame may have come before.
 */
bool dpdk_interrupt_arm(struct dpdk_interrupt *interrupt);
/* After something was received. Costs nothing where it is not armed. */
void dpdk_interrupt_disarm(struct dpdk_interrupt *interrupt);

/* Whether it will come for the next frame. */
bool dpdk_interrupt_tells(const struct dpdk_interrupt *interrupt);

#endif
