/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that files of attach/ share. */
#ifndef URXE_VERBS_ATTACH_ATTACH_PRIVATE_H
#define URXE_VERBS_ATTACH_ATTACH_PRIVATE_H

struct adapter_saved;
struct urxe_copy_table;

/* In a forked child: no user; initialises both locks. */
void adapter_forget_users(void);

/* Creates adapter.dev with the attributes of the adapter; `table` as in struct urxe_dev_attr. */
int adapter_make_engine(struct urxe_copy_table *table);
/* The same from the stream of a saved process. -EADDRNOTAVAIL: the device has another
 * MAC address. */
int adapter_restore_engine(const struct adapter_saved *saved, struct urxe_copy_table *table);

#endif
