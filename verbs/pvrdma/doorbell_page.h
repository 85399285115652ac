/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doorbells as stores of the guest in memory (pvrdma_attr.uar): a word for queue pairs, one for CQs
 * and one for SRQs in each page. Nothing tells the device of a store, and a later store to the word
 * replaces an earlier one that the device has not seen.
 *
 * So a word of a queue pair or an SRQ only says that rings have new requests. A word of a CQ may
 * stand where an ARM of any CQ of its page stood: a program arms a CQ, polls it once more, and
 * sleeps. But then it rings no doorbell any more. So the device arms all CQs of a page when the
 * page's doorbell of CQs has been quiet for PV_QUIET_NS. A program that polls without a pause is
 * not interrupted.
 */
#ifndef URXE_PVRDMA_DOORBELL_PAGE_H
#define URXE_PVRDMA_DOORBELL_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PV_QUIET_NS 50000u

struct pvrdma;

/* A context uses the page from now on. */
void pv_doorbell_page_use(struct pvrdma *dev, uint32_t page);
/* Takes doorbells out of all pages that contexts use or have used. True: some was no mere poll. */
bool pv_doorbell_pages_look(struct pvrdma *dev);
/* The guest stores nothing more: takes all doorbells, and arms CQs whose doorbell may have stood
 * where another one stands now. */
void pv_doorbell_pages_finish(struct pvrdma *dev);
/* Removes all doorbells. */
void pv_doorbell_pages_clear(struct pvrdma *dev);
/* No page is used any more. */
void pv_doorbell_pages_forget(struct pvrdma *dev);

#endif
