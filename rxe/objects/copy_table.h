/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's table of the copy transport (rxe/copy_transport.h): regions, windows and QPs publish
 * their rights here; requesters of peers read them. The functions do nothing if the device has no
 * table.
 */
#ifndef URXE_COPY_TABLE_H
#define URXE_COPY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/copy_transport.h>

struct urxe_dev;
struct mr_piece;

/*
 * When the device is created and destroyed. The table may have been an earlier device's, which has
 * withdrawn everything. -ENOMEM.
 */
int copy_table_init(struct urxe_dev *dev);
void copy_table_free(struct urxe_dev *dev);

/*
 * Publishes the rights of a key, unless another key has the place, or there is no room for its
 * pieces. `pieces`: grant->n_pieces of them, read if they are more than one.
 */
void copy_table_publish_grant(struct urxe_dev *dev, const struct urxe_copy_grant *grant,
			      const struct mr_piece *pieces);
/*
 * Removes the rights of the key. Peers may still copy by them until copies_ended; for
 * commands of the program, the device's owner waits for that without its lock.
 */
void copy_table_withdraw_key(struct urxe_dev *dev, uint32_t key);
/* Whether all copies by rights that were withdrawn have ended. */
bool copies_ended(struct urxe_dev *dev);
/* Publishes a QP, or updates its entry; qp->version is ignored. */
void copy_table_publish_qp(struct urxe_dev *dev, const struct urxe_copy_qp *qp);
void copy_table_withdraw_qp(struct urxe_dev *dev, uint32_t qpn);

/* --- For requesters: any device's table. */

/* Where the grant of a key stands. */
struct urxe_copy_grant *copy_table_grant(struct urxe_copy_table *table, uint32_t key);
/* Where a QP stands; NULL: its block of QPNs has no chunk. */
struct urxe_copy_qp *copy_table_qp(struct urxe_copy_table *table, uint32_t qpn);
/* Copies an entry of size bytes; false: its owner is changing it. */
bool copy_table_read_entry(const void *place, void *entry, size_t size);

#endif
