/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A model behind a vfio-user server that has some bytes, and counts the server's calls. */
#ifndef URXE_TEST_VFIO_MODEL_H
#define URXE_TEST_VFIO_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/vfio_server.h>

#define VFIO_MODEL_BYTES 200000 /* a state that needs several messages */

struct vfio_model {
	struct vnic_guest_memory *memory;
	uint8_t state[VFIO_MODEL_BYTES]; /* BAR0 has the first of them as registers */
	uint32_t saved; /* bytes of the state in a stream; all of them after vfio_model_open */
	uint32_t stops, starts, resets, marks, writes, added, removed;
	bool stopped, logging;
	bool busy; /* not settled */
	int save_error, restore_error;
	int refused; /* the last error of a stream */
};

/* Makes the model, its memory, and a server of a function with that device ID. */
void vfio_model_open(struct vfio_model *m, uint16_t device, bool migrates,
		     struct vnic_vfio_server **server);

#endif
