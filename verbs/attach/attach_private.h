/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that files of attach/ share. */
#ifndef URXE_VERBS_ATTACH_ATTACH_PRIVATE_H
#define URXE_VERBS_ATTACH_ATTACH_PRIVATE_H

struct adapter_saved;
struct urxe_copy_table;

/* In a forked child: sets the number of users of the adapter to 0, adds 1 to
 * adapter_fork_generation, and initialises adapter_open_lock and adapter_lease_lock. */
void adapter_forget_users(void);

/* Creates adapter.dev from adapter.welcome; `table` as in struct urxe_dev_attr. 0 or a negative
 * errno value. */
int adapter_make_engine(struct urxe_copy_table *table);
/* Creates adapter.dev from the engine's stream of a saved process. 0; -EADDRNOTAVAIL: the device
 * has another MAC address than the saved one; or an error of urxe_state_read_attr or
 * urxe_state_restore. */
int adapter_restore_engine(const struct adapter_saved *saved, struct urxe_copy_table *table);

#endif
