/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The records of a saved device. One function for each record both writes and reads it
 * (rxe/state_stream.h). After an error in the stream such a function does nothing; pvrdma_state.c
 * frees the objects that earlier records have made.
 */
#ifndef URXE_PVRDMA_STATE_PVRDMA_RECORDS_H
#define URXE_PVRDMA_STATE_PVRDMA_RECORDS_H

#include <rxe/state.h>
#include <rxe/state_stream.h>

#include "pvrdma_device.h"

/* A restored region, by its key. */
struct pv_key {
	uint32_t key;
	struct pv_mr *mr;
};

struct pv_state {
	struct state_stream stream;
	struct pvrdma *dev;
	/*
	 * The guest's memory in the process that saves: translates addresses of that process to
	 * guest addresses. The saving process translates the addresses of the rings' pages. The
	 * restoring process translates those of memory regions, because the engine's stream has
	 * addresses of the saving process.
	 */
	struct vnic_guest_region source[VNIC_GUEST_REGIONS];
	uint32_t n_source;
	uint32_t last; /* index of the region in which the previous address was found */
	/* Restoring: */
	struct pv_key *keys; /* the restored memory regions, sorted by key */
	uint32_t n_keys;
	struct urxe_extent *extents; /* of the region that is being restored */
	uint32_t n_extents, room;
	bool foreign; /* the engine's stream has objects that the records do not have */
};

/* pvrdma_address_record.c */
/* Writes or reads the table st->source. */
void pv_source_record(struct pv_state *st);
/* Writes or reads the guest address of a page of a ring; *page is its address in this process. */
void pv_page_record(struct pv_state *st, uint8_t **page);
/* urxe_state_restore.memory: replaces the region's addresses in the saving process by those in this
 * process. `arg`: the struct pv_state. */
int pv_translate_region(void *arg, struct urxe_state_region *region);

/* pvrdma_device_record.c */
void pv_device_record(struct pv_state *st);
/* Writes or reads the pages of a ring, and returns their number. 0: no ring, or its memory is gone.
 */
uint32_t pv_pages_record(struct pv_state *st, const struct pv_ring *ring, struct pv_pages *pages);
/* Writes or reads the device's index in the ring. */
void pv_ring_index_record(struct pv_state *st, struct pv_ring *ring);

/* object_record.c: all objects, and the free handles, of each kind; due notifications of CQs. */
void pv_objects_record(struct pv_state *st);

/* engine_record.c: the engine, last. */
void pv_engine_record(struct pv_state *st, uint64_t now);

#endif
