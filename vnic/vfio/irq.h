/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The MSI-X vectors of a PCI function: their eventfds, masks and pending bits. */
#ifndef URXE_VNIC_VFIO_IRQ_H
#define URXE_VNIC_VFIO_IRQ_H

#include <stdint.h>
#include <vnic/vfio_server.h>

#include "protocol.h"

struct irq_vectors {
	uint32_t count;
	int fds[VNIC_VFIO_VECTORS]; /* eventfds; -1 = none */
	uint64_t masked, pending;   /* bit n: vector n */
};

void irq_init(struct irq_vectors *irq, uint32_t count);
/* Closes all eventfds, and clears masks and pending bits. */
void irq_close(struct irq_vectors *irq);
/* Writes to the eventfd, or sets the pending bit if the vector is masked or has no eventfd. */
void irq_raise(struct irq_vectors *irq, uint32_t vector);
/*
 * Sets the eventfds of the n vectors from `start` on, and delivers their pending interrupts; start
 * + n is at most the count. Descriptors that the function keeps are replaced by -1. -EINVAL: one is
 * no eventfd; or another error of vnic_eventfd_check. After an error the function keeps none.
 */
int irq_set_eventfds(struct irq_vectors *irq, uint32_t start, int *fds, uint32_t n);
/* Delivers the pending interrupts of vectors that are not masked. */
void irq_raise_pending(struct irq_vectors *irq);
/* The number of vectors of an interrupt index of linux/vfio.h; only that of MSI-X has some. */
uint32_t irq_count(const struct irq_vectors *irq, uint32_t index);
/*
 * SET_IRQS: `data` has data_size bytes, which follow *set in the message. irq_set takes over the
 * eventfds that it needs, and sets their entries of fds to -1; the caller closes the others.
 * -EINVAL: a number is out of range, or flags, data and descriptors disagree.
 */
int irq_set(struct irq_vectors *irq, const struct vfio_user_irq_set *set, const uint8_t *data,
	    uint32_t data_size, int *fds, uint32_t n_fds);

#endif
