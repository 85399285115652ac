/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registers the engine's memory regions with the HCA. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_MR_H
#define URXE_VERBS_HCA_OBJECTS_HCA_MR_H

#include <stdint.h>

struct urxe_mr_attr;

/* mr_reg and mr_dereg of struct urxe_offload_ops; ctx is a struct hca. */
int hca_mr_reg(void *ctx, const struct urxe_mr_attr *attr, void **mr, uint32_t *key);
void hca_mr_dereg(void *mr);

#endif
