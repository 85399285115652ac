/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_cm's part in the report (report.h). */
#ifndef URXE_TOOLS_REPORT_RDMACM_H
#define URXE_TOOLS_REPORT_RDMACM_H

#include <jansson.h>

#include "rdmacm.h"

/* The IDs of all programs. */
json_t *report_ids(const struct rdmacm *r);

#endif
