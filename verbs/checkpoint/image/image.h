/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A saved process, as it was read from a stream: checked, but not yet part of this process. image.c
 * checks the order of the records, how many there are, and their indexes of contexts, channels and
 * rdma_cm devices; distinct.c, that no two objects have one number. rebuild.c checks the handles
 * and addresses by which objects refer to each other and to rings. join.c compares the objects with
 * the engine's.
 */
#ifndef URXE_VERBS_CHECKPOINT_IMAGE_H
#define URXE_VERBS_CHECKPOINT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint/image/checkpoint_records.h"

/* Bytes in the stream that is read. */
struct image_bytes {
	const uint8_t *at;
	size_t length;
};

/* Unread events of a channel. The program reads each as event_size bytes of the uverbs ABI. */
struct image_events {
	uint32_t channel;
	uint32_t n;
	struct event_record *events;
};

struct image_ring {
	struct ring_bytes_record record;
	uint32_t n_pages;
	struct image_bytes pages; /* for each page its index (4 bytes), and RING_PAGE bytes */
};

/* urxed's state of an rdma_cm device or ID; `device` is the index of the rdma_cm device. */
struct image_rdmacm_state {
	uint32_t device;
	struct image_bytes bytes;
};

struct image {
	struct process_record process;
	uint32_t n[CHECKPOINT_KINDS];  /* records of each kind */
	void *lists[CHECKPOINT_KINDS]; /* the lists below, by the kind of their records */
	struct channel_record *channels;
	struct context_record *contexts;
	struct pd_record *pds;
	struct mr_record *mrs;
	struct mw_record *mws;
	struct ah_record *ahs;
	struct cq_record *cqs;
	struct srq_record *srqs;
	struct qp_record *qps;
	struct image_bytes engine; /* stream of urxe_state_save */
	struct descriptor_record *descriptors;
	struct mapping_record *mappings;
	struct image_events *events;
	struct image_ring *rings;
	struct rdmacm_record *rdmacms;
	struct rdmacm_id_record *rdmacm_ids;
	struct image_rdmacm_state *rdmacm_states;
};

/* A stored page of a ring: its RING_PAGE bytes, and its index in the ring. */
struct image_page {
	uint32_t index;
	const uint8_t *bytes;
};

/*
 * Returns 0 and fills the image, which points into `stream`: the caller keeps `stream` as long as
 * the image. After -EBADMSG, -EPROTONOSUPPORT or -ENOMEM the image is empty.
 */
int image_read(struct image *image, const uint8_t *stream, size_t length);
void image_free(struct image *image);
struct image_page image_page(const struct image_ring *ring, uint32_t i);

#endif
