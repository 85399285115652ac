/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills the report (report.h) with the RDMA devices of the host. */
#ifndef URXE_URXED_REPORT_REPORT_HCA_H
#define URXE_URXED_REPORT_REPORT_HCA_H

#include <jansson.h>

#include "urxed/hca/hca_monitor.h"

/* Returns the value of the key "hca": one object per port, with the verdict of hca_select. NULL:
 * memory is lacking. */
json_t *report_hcas(const struct hca_monitor *h);

#endif
