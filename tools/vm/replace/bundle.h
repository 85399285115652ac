/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a device process (urxe vm) hands to the process that replaces it: the state of its machine's
 * device as a stream, and descriptors. The stream has the numbers of struct bundle in the order of
 * bundle.c, in the format of rxe/state_stream.h.
 */
#ifndef URXE_VM_REPLACE_BUNDLE_H
#define URXE_VM_REPLACE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vnic/vfio_server.h>

#include "vm/host/switch_link.h"

#define BUNDLE_FUNCTIONS 2u
/* Descriptors: three listening sockets (of two functions, and of channel.h), the memory of the
 * doorbells, four of the link to the switch, and those of the functions. */
#define BUNDLE_FDS (3u + 1u + 4u + BUNDLE_FUNCTIONS * VNIC_VFIO_FDS)

/* Options that the machine's hypervisor and drivers have seen: both processes have the same. */
struct bundle_options {
	uint8_t mac[6];
	uint16_t mtu; /* largest MTU of the vmxnet3 */
	bool roce_v1;
	bool map_doorbells;
};

struct bundle {
	struct bundle_options options;
	int listeners[BUNDLE_FUNCTIONS];
	int replace_listener; /* listening socket for the process that replaces the new one later */
	int doorbells;        /* doorbell memory (uar_memory.h); -1: !map_doorbells */
	struct switch_link_handover link;
	struct vnic_vfio_handover functions[BUNDLE_FUNCTIONS];
};

/*
 * Writes the stream, which the caller frees with free(3), and lists the descriptors, which stay the
 * owners'. Returns 0 or a negative errno value.
 */
int bundle_encode(const struct bundle *b, uint8_t **stream, size_t *length, int fds[BUNDLE_FDS],
		  uint32_t *n_fds);
/*
 * Reads a stream, which may be hostile, as may be the descriptors. *b owns the descriptors then;
 * those that the stream does not name are closed. The caller calls bundle_close, also after an
 * error. -EBADMSG: the stream is truncated or damaged, or contradicts itself or the number of
 * descriptors; -EPROTONOSUPPORT: of a later version; -ENOMEM.
 */
int bundle_decode(struct bundle *b, const uint8_t *stream, size_t length, const int fds[BUNDLE_FDS],
		  uint32_t n_fds);
/*
 * Closes the descriptors that are still in *b (not -1), and frees the streams of the functions.
 */
void bundle_close(struct bundle *b);

#endif
