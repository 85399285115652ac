/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The open rdma_cm devices of this process, whose IDs do not change while a checkpointer saves
 * them: commands of other threads wait, and urxed has stopped the IDs. For quiesce.c and
 * checkpoint_save.c, in the checkpointer's thread.
 */
#ifndef URXE_VERBS_CHECKPOINT_RDMACM_FREEZE_H
#define URXE_VERBS_CHECKPOINT_RDMACM_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include <cm/attach_protocol.h>

struct rdmacm_file;

/* urxed's state of a device or an ID, as urxed has sent it (cm/attach_protocol.h). */
struct frozen_state {
	uint32_t length;
	uint8_t bytes[CM_ATTACH_BYTES];
};

/* A device, whose lock is held. */
struct frozen_device {
	struct rdmacm_file *file;
	bool frozen; /* urxed has stopped the IDs, or may have done so before an error */
	uint32_t n_ids, n_states;
	struct frozen_state *states;
};

/* All 0 before rdmacm_freeze. */
struct frozen_devices {
	uint32_t n;
	struct frozen_device *devices;
};

/*
 * One attempt to stop all rdma_cm devices: waits at most 1 ms for the lock of each, has urxed stop
 * their IDs, and gets urxed's records. Waits for answers of urxed until `deadline`
 * (clock_monotonic()). -EBUSY: another attempt may succeed: no urxed runs, another thread has the
 * lock of a device, urxed has not ended an earlier stop, or an ID was destroyed meanwhile.
 * -ETIMEDOUT: urxed does not answer. -EOPNOTSUPP: an ID belongs to the kernel's rdma_cm, the parent
 * process opened a device with IDs, urxed is an earlier version, or a record is too long. -EIO: the
 * urxed that knew the IDs has ended. -ENOMEM. The caller calls rdmacm_thaw also after an error.
 */
int rdmacm_freeze(struct frozen_devices *all, uint64_t deadline);
/*
 * Has urxed go on with the devices, releases their locks, and frees the list. Waits for answers of
 * urxed until `deadline`; does the rest also without an answer.
 */
void rdmacm_thaw(struct frozen_devices *all, uint64_t deadline);
/*
 * Whether the list still has all devices that the program has open, and no other ones: meanwhile
 * another thread may open a device, or close a device's descriptor and wait for the device's lock.
 * Takes no lock.
 */
bool frozen_devices_are_current(const struct frozen_devices *all);
/* The index of the device in the list; all->n if the list lacks the device. */
uint32_t frozen_index(const struct frozen_devices *all, const struct rdmacm_file *file);

#endif
