/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The `ids` of the daemon's report (report.h), for report.c. */
#ifndef URXE_URXED_REPORT_REPORT_RDMACM_H
#define URXE_URXED_REPORT_REPORT_RDMACM_H

#include <jansson.h>

#include "urxed/cm/rdmacm.h"

/* Returns a new array with the rdma_cm IDs of all programs. */
json_t *report_ids(const struct rdmacm *r);

#endif
