/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaches to the urxed of a run directory, corrupts the rings of its own vNIC, and waits until
 * urxed closes the connection. */
#include <err.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>

#include <vnic/driver.h>
#include <vnic/regs.h>

#define PAGE        4096
#define PATIENCE_MS 60000

/* Finds the memory shared with urxed from a buffer in it: the vmxnet3 shared area is at its second
 * page. */
static uint8_t *find_memory(uint8_t *buffer)
{
	uint8_t *page = (uint8_t *)((uintptr_t)buffer & ~(uintptr_t)(PAGE - 1));

	while (((struct vmxnet3_driver_shared *)page)->magic != VMXNET3_REV1_MAGIC)
		page -= PAGE;
	return page - PAGE;
}

/* Writes a transmit descriptor of an unknown type. */
static void break_descriptor(uint8_t *memory, uint32_t index)
{
	struct vmxnet3_driver_shared *shared = (struct vmxnet3_driver_shared *)(memory + PAGE);
	struct vmxnet3_queue_pair *queues =
		(struct vmxnet3_queue_pair *)(memory + shared->misc.queue_desc_addr);
	struct vmxnet3_tx_desc *ring = (struct vmxnet3_tx_desc *)(memory + queues->tx.ring_addr);

	ring[index].len = VMXNET3_TXD_GEN | VMXNET3_TXD_DTYPE;
}

int main(int argc, char **argv)
{
	struct vnic_attach_welcome welcome;
	struct vnic_frame frame;
	struct vnic_driver *drv;
	struct pollfd pfd = {.events = POLLRDHUP};

	if (argc != 2)
		errx(2, "usage: rogue_nic RUN_DIR");
	if (vnic_driver_attach(argv[1], &welcome, &drv))
		errx(1, "cannot attach");
	vnic_driver_tx_reserve(drv, &frame, 1);
	break_descriptor(find_memory(frame.data), 1);
	/* A valid frame before it wakes the daemon. */
	frame.len = 60;
	memset(frame.data, 0, frame.len);
	vnic_driver_tx_commit(drv, &frame, 1);
	pfd.fd = vnic_driver_ctl_fd(drv);
	if (poll(&pfd, 1, PATIENCE_MS) != 1)
		errx(1, "still attached");
	vnic_driver_detach(drv);
	return 0;
}
