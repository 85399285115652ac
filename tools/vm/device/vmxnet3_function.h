/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Function 0: the vmxnet3 device of vnic/device behind a vfio-user server. */
#ifndef URXE_VM_DEVICE_VMXNET3_FUNCTION_H
#define URXE_VM_DEVICE_VMXNET3_FUNCTION_H

#include <vnic/device.h>

#include "vm/device/function.h"

struct vmxnet3_function {
	struct function function;
	struct vnic_device *dev;
	void *bars;
};

/* path: as of function_serve. mtu: the largest that the driver may set. owner: NULL, or valid as
 * long as the function. Returns 0, or a negative errno value and a sentence in `error`; then the
 * caller still calls vmxnet3_function_close. */
int vmxnet3_function_open(struct vmxnet3_function *f, const char *path, const uint8_t mac[6],
			  uint16_t mtu, const struct function_owner *owner,
			  char error[FUNCTION_ERROR]);
void vmxnet3_function_close(struct vmxnet3_function *f);

#endif
