/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RDMA devices of the host in the report (report.h). */
#ifndef URXE_URXED_REPORT_REPORT_HCA_H
#define URXE_URXED_REPORT_REPORT_HCA_H

#include <jansson.h>

#include "urxed/hca/hca_monitor.h"

/* The value of the key "hca": one object a port, which hca_select has judged. NULL: no memory. */
json_t *report_hcas(const struct hca_monitor *h);

#endif
