/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Saves this process: writes its verbs objects and its engine to a stream. save_prepare allocates
 * everything; save_write allocates nothing and takes no lock. The lock of the adapter is held from
 * before save_prepare until after save_free. For quiesce.c.
 */
#ifndef URXE_VERBS_CHECKPOINT_CHECKPOINT_SAVE_H
#define URXE_VERBS_CHECKPOINT_CHECKPOINT_SAVE_H

#include <stddef.h>
#include <stdint.h>

struct comp_channel;
struct frozen_devices;
struct uverbs_file;

/* All 0 before save_prepare. */
struct process_save {
	struct uverbs_file **files;
	uint32_t n_files;
	struct comp_channel **channels;
	uint32_t n_channels;
	const struct frozen_devices *rdmacm;
	uint8_t *engine; /* stream of urxe_state_save */
	size_t engine_length;
	uint8_t *buffer; /* save_write builds the stream in it */
	size_t room;     /* bytes of `buffer` */
};

/* 0, or -EOPNOTSUPP: an address handle has no next hop, so only the HCA of this host can send to
 * its address. Call it before save_prepare if the process may be restored without this HCA. */
int save_check_addresses(void);
/*
 * Saves the engine as it is at `now` (clock_now()), and allocates room for the stream. The save
 * withdraws the rights of peers to copy. `rdmacm` lives until save_free. adapter_hca_take_over()
 * must have returned 0 before. 0; -EBUSY: another attempt may succeed, see urxe_state_save, or a
 * thread opens or closes rdma_cm or the device; -EOPNOTSUPP: a descriptor is of a device that the
 * parent process opened; -ENOMEM; or another negative errno value. After an error the caller calls
 * save_free, and urxe_copy_rights_publish.
 */
int save_prepare(struct process_save *save, const struct frozen_devices *rdmacm, uint64_t now);
/*
 * Writes the stream to the descriptor; may be called again. -EBUSY: `room` is too small, or since
 * save_prepare a thread has opened or closed rdma_cm, or closed the last descriptor of a context;
 * errors of write(2), or of open(2) for /proc/self/maps.
 */
int save_write(const struct process_save *save, int fd);
void save_free(struct process_save *save);

#endif
