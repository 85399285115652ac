/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "irq.h"

#include <errno.h>
#include <linux/vfio.h>
#include <unistd.h>

#include "eventfd.h"

void irq_init(struct irq_vectors *irq, uint32_t count)
{
	*irq = (struct irq_vectors){.count = count};
	for (uint32_t i = 0; i < VNIC_VFIO_VECTORS; i++)
		irq->fds[i] = -1;
}

static void drop_eventfd(struct irq_vectors *irq, uint32_t vector)
{
	if (irq->fds[vector] >= 0)
		close(irq->fds[vector]);
	irq->fds[vector] = -1;
}

void irq_close(struct irq_vectors *irq)
{
	for (uint32_t i = 0; i < irq->count; i++)
		drop_eventfd(irq, i);
	irq->masked = irq->pending = 0;
}

void irq_raise(struct irq_vectors *irq, uint32_t vector)
{
	uint64_t bit;

	if (vector >= irq->count)
		return;
	bit = UINT64_C(1) << vector;
	if (irq->masked & bit || irq->fds[vector] < 0) {
		irq->pending |= bit;
		return;
	}
	irq->pending &= ~bit;
	vnic_eventfd_raise(irq->fds[vector]);
}

static void raise_pending(struct irq_vectors *irq, uint32_t vector)
{
	if (irq->pending >> vector & 1)
		irq_raise(irq, vector);
}

void irq_raise_pending(struct irq_vectors *irq)
{
	for (uint32_t i = 0; i < irq->count; i++)
		raise_pending(irq, i);
}

uint32_t irq_count(const struct irq_vectors *irq, uint32_t index)
{
	return index == VFIO_PCI_MSIX_IRQ_INDEX ? irq->count : 0;
}

int irq_set_eventfds(struct irq_vectors *irq, uint32_t start, int *fds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const int rc = vnic_eventfd_check(fds[i]);

		if (rc)
			return rc;
	}
	for (uint32_t i = 0; i < n; i++) {
		drop_eventfd(irq, start + i);
		irq->fds[start + i] = fds[i];
		fds[i] = -1;
		raise_pending(irq, start + i);
	}
	return 0;
}

static int assign_eventfds(struct irq_vectors *irq, const struct vfio_user_irq_set *set, int *fds,
			   uint32_t n_fds)
{
	if (n_fds && n_fds != set->count)
		return -EINVAL;
	if (n_fds)
		return irq_set_eventfds(irq, set->start, fds, n_fds);
	for (uint32_t i = 0; i < set->count; i++)
		drop_eventfd(irq, set->start + i);
	return 0;
}

static void apply_action(struct irq_vectors *irq, uint32_t action, uint32_t vector)
{
	const uint64_t bit = UINT64_C(1) << vector;

	switch (action) {
	case VFIO_IRQ_SET_ACTION_MASK: irq->masked |= bit; break;
	case VFIO_IRQ_SET_ACTION_UNMASK:
		irq->masked &= ~bit;
		raise_pending(irq, vector);
		break;
	default: irq_raise(irq, vector);
	}
}

/* Whether the flags have exactly one kind of data, exactly one action, and nothing else. */
static bool flags_valid(uint32_t flags)
{
	const uint32_t data = flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
	const uint32_t action = flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;

	return data && !(data & (data - 1)) && action && !(action & (action - 1)) &&
	       flags == (data | action);
}

static bool range_valid(const struct irq_vectors *irq, const struct vfio_user_irq_set *set)
{
	const uint32_t count = irq_count(irq, set->index);

	return set->index < VFIO_PCI_NUM_IRQS && set->start <= count &&
	       set->count <= count - set->start;
}

int irq_set(struct irq_vectors *irq, const struct vfio_user_irq_set *set, const uint8_t *data,
	    uint32_t data_size, int *fds, uint32_t n_fds)
{
	const uint32_t kind = set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
	const uint32_t action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
	const bool is_bool = kind == VFIO_IRQ_SET_DATA_BOOL;

	if (!flags_valid(set->flags) || !range_valid(irq, set) ||
	    data_size != (is_bool ? set->count : 0))
		return -EINVAL;
	if (kind == VFIO_IRQ_SET_DATA_EVENTFD)
		return action == VFIO_IRQ_SET_ACTION_TRIGGER ? assign_eventfds(irq, set, fds, n_fds)
							     : -EINVAL;
	if (n_fds)
		return -EINVAL;
	/* A count of 0 disables the index. An index without vectors is disabled anyway. */
	if (!set->count) {
		if (set->index == VFIO_PCI_MSIX_IRQ_INDEX && action == VFIO_IRQ_SET_ACTION_TRIGGER)
			irq_close(irq);
		return 0;
	}
	for (uint32_t i = 0; i < set->count; i++)
		if (!is_bool || data[i])
			apply_action(irq, action, set->start + i);
	return 0;
}
