/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload references (struct urxe_reference) that peers may not have copied yet. The engine ends
 * them before the program gets the payload's memory back without an acknowledgement: a request
 * ends in an error, or the memory is deregistered or unmapped.
 */
#ifndef URXE_OBJECTS_REFERENCES_H
#define URXE_OBJECTS_REFERENCES_H

#include <stdint.h>

struct urxe_dev;
struct urxe_qp;

/* The QP sends a frame with a payload reference: adds the QP to dev->referencing. */
void add_reference(struct urxe_qp *qp);
/*
 * If a peer may not have copied a reference of this QP yet, ends the references of all QPs, because
 * a device has one generation. Called before requests complete without an acknowledgement.
 */
void end_references(struct urxe_qp *qp);
/*
 * If an outstanding SEND names the key of a region, ends the references of all QPs. Called when the
 * region, or a part of it, is registered no longer. The requests are repeated in packets.
 */
void end_references_by_key(struct urxe_dev *dev, uint32_t lkey);
/* Ends all references that a peer may not have copied yet. The requests are repeated in packets. */
void end_all_references(struct urxe_dev *dev);

#endif
