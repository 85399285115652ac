/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload references (struct urxe_reference) that peers may not have copied yet. The engine ends
 * them before the program gets the payload's memory back without an acknowledgement: a request
 * ends in an error, or the memory is deregistered or unmapped.
 */
#ifndef URXE_REFERENCES_H
#define URXE_REFERENCES_H

#include <stdint.h>

struct urxe_dev;
struct urxe_qp;

/* The QP sends a reference. */
void add_reference(struct urxe_qp *qp);
/*
 * Ends the references to payloads of the QP's requests, with those of all other QPs: references
 * have one generation for the device. Called before requests complete without an acknowledgement.
 */
void end_references(struct urxe_qp *qp);
/*
 * Ends the references of all requests that name the key of a region. Called when the region, or a
 * part of it, is registered no longer. The requests are repeated in packets.
 */
void end_references_by_key(struct urxe_dev *dev, uint32_t lkey);
/* Ends all references that a peer may not have copied yet. The requests are repeated in packets. */
void end_all_references(struct urxe_dev *dev);

#endif
