/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints what stands for the HCA's port in answers of the kernel's rdma_cm, from the tables of port
 * and device. sysfs_tree.c writes it to VNIC_HCA_FILE for liburxe.so.
 */
#ifndef URXE_URXED_HCA_HCA_TABLE_H
#define URXE_URXED_HCA_HCA_TABLE_H

#include "urxed/hostnet/host.h"

/* Room for the result of hca_table_print(), with its NUL. */
#define HCA_TABLE_TEXT 4000

/*
 * Prints the lines of VNIC_HCA_FILE behind the first one, for the HCA of `h`. The text is "" if the
 * HCA is unknown. It has the line "closed" if the HCA has P_Keys that the device lacks, a longer
 * path MTU, or too many GIDs.
 */
void hca_table_print(const struct host *h, char text[HCA_TABLE_TEXT]);

#endif
