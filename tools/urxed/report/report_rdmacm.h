/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_cm's part in the report (report.h). */
#ifndef URXE_URXED_REPORT_REPORT_RDMACM_H
#define URXE_URXED_REPORT_REPORT_RDMACM_H

#include <jansson.h>

#include "urxed/cm/rdmacm.h"

/* The IDs of all programs. */
json_t *report_ids(const struct rdmacm *r);

#endif
