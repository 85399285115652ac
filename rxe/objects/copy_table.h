/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's table of the copy transport (rxe/copy_transport.h): regions, windows and QPs publish
 * their rights here; requesters of peers read them. The functions do nothing if the device has no
 * table.
 */
#ifndef URXE_OBJECTS_COPY_TABLE_H
#define URXE_OBJECTS_COPY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/copy_transport.h>

struct urxe_dev;
struct mr_piece;

/* Called when the device is created (0 or -ENOMEM), and when it is destroyed. The table may be that
 * of an earlier device, which has withdrawn everything. */
int copy_table_init(struct urxe_dev *dev);
void copy_table_free(struct urxe_dev *dev);

/*
 * Publishes the rights of a key, unless the key's place in the table is taken, its pieces are too
 * many, or the table has no room for them. `pieces` has grant->n_pieces entries; it is not read if
 * that is 1.
 */
void copy_table_publish_grant(struct urxe_dev *dev, const struct urxe_copy_grant *grant,
			      const struct mr_piece *pieces);
/*
 * Removes the rights of the key, and does not wait: copies that peers have begun by these rights go
 * on until copies_ended returns true. When a program deregisters memory, the device's owner waits
 * for that without its lock.
 */
void copy_table_withdraw_key(struct urxe_dev *dev, uint32_t key);
/* Interval at which the engine checks whether copies of peers have ended, ns. */
#define COPIES_AGAIN_NS 100000
/* Whether all copies by rights that were withdrawn have ended. */
bool copies_ended(struct urxe_dev *dev);
/* Publishes a QP, or replaces its entry; qp->version is ignored. Does nothing if each chunk of the
 * table has QPs of other blocks. */
void copy_table_publish_qp(struct urxe_dev *dev, const struct urxe_copy_qp *qp);
void copy_table_withdraw_qp(struct urxe_dev *dev, uint32_t qpn);
/*
 * The path or partition of a published QP has changed: the peer has to show again, by an
 * acknowledged packet, that its packets arrive, before it copies.
 */
void copy_table_renew_qp(struct urxe_dev *dev, uint32_t qpn);
/* The addresses or partitions of the device have changed: acts as copy_table_renew_qp for all QPs.
 * The device's own QPs need a new acknowledgement, too, before they copy. */
void copy_table_reset_proofs(struct urxe_dev *dev);

/* --- For requesters: any device's table. */

/* The only place where the table may have the grant of a key. It may have another key's, or none.
 */
struct urxe_copy_grant *copy_table_grant(struct urxe_copy_table *table, uint32_t key);
/* The only place where the table may have the QP; the place may be empty. NULL: the QPN's block has
 * no chunk, so the table does not have the QP. */
struct urxe_copy_qp *copy_table_qp(struct urxe_copy_table *table, uint32_t qpn);
/* Copies an entry of size bytes. False: its device is changing it, or has changed it meanwhile, and
 * the copy is not valid. */
bool copy_table_read_entry(const void *place, void *entry, size_t size);

#endif
