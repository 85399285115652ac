/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doorbells as stores of the guest in memory (pvrdma_attr.uar): a word for queue pairs, one for CQs
 * and one for SRQs in each page. Nothing tells the device of a store, and a later store to the word
 * replaces an earlier one that the device has not seen.
 *
 * So a doorbell of a queue pair or an SRQ only says that some rings of the page have new requests.
 * If a later doorbell replaces that of an SRQ that no queue pair uses, the SRQ's receives wait for
 * its next doorbell or its first queue pair (pv_srq_refill_used).
 *
 * A doorbell of a CQ may have replaced an ARM of any CQ of its page: a program arms a CQ, polls it
 * once more, and sleeps. If no other thread polls, the page has no further CQ doorbell then: after
 * PV_QUIET_NS the device arms all CQs of this quiet page. While other threads poll, the device
 * notifies of each CQ whose completions the driver has left unread for PV_QUIET_NS. A program that
 * keeps finding its CQ empty gets no interrupt. A CQ of the guest's kernel causes none either, if
 * the device saw it polled and never armed.
 */
#ifndef URXE_PVRDMA_DOORBELL_PAGE_H
#define URXE_PVRDMA_DOORBELL_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PV_QUIET_NS 50000u

struct pvrdma;

/* Call it when a context gets the page: from then on, the functions below look at the page, too. */
void pv_doorbell_page_use(struct pvrdma *dev, uint32_t page);
/*
 * Takes the doorbells out of the driver's page and all pages that contexts use or have used, and
 * handles them. Arms the CQs of quiet pages, and makes the notifications of completions left unread
 * due. True: there was a doorbell other than a POLL of a CQ, or a notification is due.
 */
bool pv_doorbell_pages_look(struct pvrdma *dev);
/* Call it before the device pauses: takes and handles all doorbells, and arms the CQs whose ARM a
 * later doorbell may have replaced. */
void pv_doorbell_pages_finish(struct pvrdma *dev);
/* Removes all doorbells from the pages without handling them. */
void pv_doorbell_pages_clear(struct pvrdma *dev);
/* Call it when no context has a page any more. Does not write to the pages. */
void pv_doorbell_pages_forget(struct pvrdma *dev);

#endif
