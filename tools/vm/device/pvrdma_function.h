/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Function 1: the PVRDMA device of verbs/pvrdma behind a vfio-user server. */
#ifndef URXE_VM_DEVICE_PVRDMA_FUNCTION_H
#define URXE_VM_DEVICE_PVRDMA_FUNCTION_H

#include <pvrdma/pvrdma.h>

#include "vm/device/function.h"
#include "vm/device/uar_memory.h"
#include "vm/rest.h"

/*
 * How long the reply to the register write of a command waits for the HCA (pvrdma_command_waits),
 * ns. Linux' driver would give up a command if a signal came before the response, but the virtual
 * processor handles no signal before the reply. Within this time the host's kernel has usually
 * resolved a peer that answers.
 */
#define COMMAND_HOLD_NS 1000000u

struct pvrdma_function {
	struct function function;
	struct pvrdma *dev;
	const struct pvrdma_owner *device_owner;
	struct poll_hold hold;
	/* End of the wait of a command's reply for the HCA, at most COMMAND_HOLD_NS after the
	 * command; ns */
	uint64_t command_until;
	struct rest_doorbells doorbells; /* trapped doorbells */
	struct uar_memory uar;           /* if uar.bytes is NULL, doorbells come as messages */
};

struct pvrdma_function_attr {
	const char *path; /* of the function's socket; NULL as for function_serve */
	uint8_t mac[6];
	uint32_t mtu; /* longest Ethernet payload of the link, bytes */
	bool roce_v1; /* this and device_owner: as roce_v1 and owner of struct pvrdma_attr */
	bool map_doorbells;
	/* With map_doorbells: descriptor of the memory of doorbells that the replaced process has
	 * made. pvrdma_function_open takes it over, and sets it to -1. NULL: new memory. */
	int *doorbells;
	const struct pvrdma_owner *device_owner;
	const struct function_owner *owner; /* as of vmxnet3_function_open */
};

/* Makes the guest's memory, the model and the server, and listens at attr->path. Returns 0, or a
 * negative errno value and a sentence in `error`; then the caller still calls
 * pvrdma_function_close. */
int pvrdma_function_open(struct pvrdma_function *f, const struct pvrdma_function_attr *attr,
			 char error[FUNCTION_ERROR]);
void pvrdma_function_close(struct pvrdma_function *f);

#endif
