/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The congestion control algorithm that the owner of a device has chosen. */
#ifndef URXE_CONG_CONFIG_H
#define URXE_CONG_CONFIG_H

#include <rxe/rxe.h>

#include "congestion/congestion.h"

extern const struct cong_ops cong_none;

/* Fills in the configuration from the device's attributes. -EINVAL: one is out of its range. */
int cong_configure(struct cong_config *config, const struct urxe_dev_attr *attr);

#endif
