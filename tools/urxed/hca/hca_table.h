/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the table with which liburxe.so translates answers of the kernel's rdma_cm: which GUIDs,
 * P_Keys and GIDs of the HCA's port correspond to which of urxe0. sysfs_tree.c writes it to
 * VNIC_HCA_FILE.
 */
#ifndef URXE_URXED_HCA_HCA_TABLE_H
#define URXE_URXED_HCA_HCA_TABLE_H

#include "urxed/hostnet/host.h"

/* Room for the result of hca_table_print(), with its NUL. */
#define HCA_TABLE_TEXT 4000

/*
 * Prints the lines of VNIC_HCA_FILE behind the first one, for the HCA of `h`. The text is "" if the
 * HCA's GUID or P_Keys are unknown. It has the line "closed" if the HCA has P_Keys that urxe0
 * lacks, a longer path MTU than urxe0, or as many GIDs as the list can hold.
 */
void hca_table_print(const struct host *h, char text[HCA_TABLE_TEXT]);

#endif
