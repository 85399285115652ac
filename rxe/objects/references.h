/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload references (struct urxe_reference) that peers may not have copied yet. If a request ends
 * in an error, or its memory is deregistered or unmapped, the program gets the memory back without
 * an acknowledgement. Before that, the engine ends the references.
 */
#ifndef URXE_OBJECTS_REFERENCES_H
#define URXE_OBJECTS_REFERENCES_H

#include <stdint.h>

struct urxe_dev;
struct urxe_qp;

/* The QP sends a frame with a payload reference: adds the QP to dev->referencing. */
void add_reference(struct urxe_qp *qp);
/* Ends the references of all QPs, because a device has one generation, if a peer may not have
 * copied a reference of this QP yet. Called before requests complete without an acknowledgement. */
void end_references(struct urxe_qp *qp);
/* If an outstanding SEND names the key of a region, ends the references of all QPs. Called when the
 * region, or a part of it, is deregistered or unmapped. The SEND then goes in packets. */
void end_references_by_key(struct urxe_dev *dev, uint32_t lkey);
/* Ends all references that a peer may not have copied yet. The SENDs then go in packets. */
void end_all_references(struct urxe_dev *dev);

#endif
