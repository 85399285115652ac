/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/capture_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static uint8_t *ring_at(struct capture_ring *ring, uint64_t position)
{
	return (uint8_t *)ring + CAPTURE_RING_START + position % CAPTURE_RING_BYTES;
}

/* Bytes from a position to the end of the ring's memory. */
static uint32_t bytes_to_end(uint64_t position)
{
	return CAPTURE_RING_BYTES - (uint32_t)(position % CAPTURE_RING_BYTES);
}

static int map_ring(int fd, struct capture_ring **ring)
{
	void *p = mmap(NULL, CAPTURE_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ring = p;
	return 0;
}

/* --- The daemon's end */

int capture_writer_open(struct capture_writer *w)
{
	int fd = memfd_create("urxe-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	*w = (struct capture_writer){0};
	if (fd < 0)
		return -errno;
	/* Sealed: if the reader shrank the memory, an access behind its end would raise SIGBUS. */
	rc = ftruncate(fd, CAPTURE_RING_SIZE) || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL)
		     ? -errno
		     : map_ring(fd, &w->ring);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

void capture_writer_close(struct capture_writer *w)
{
	munmap(w->ring, CAPTURE_RING_SIZE);
}

void capture_writer_count_lost(struct capture_writer *w)
{
	atomic_store_explicit(&w->ring->lost, ++w->lost, memory_order_relaxed);
}

/* Free bytes of the ring; 0 from now on if the reader's position is impossible. */
static uint64_t get_free_bytes(struct capture_writer *w)
{
	uint64_t tail = atomic_load_explicit(&w->ring->tail, memory_order_acquire);
	uint64_t used = w->head - tail;

	if (used > CAPTURE_RING_BYTES)
		w->broken = true;
	return w->broken ? 0 : CAPTURE_RING_BYTES - used;
}

static void write_padding(struct capture_writer *w, uint32_t size)
{
	const struct capture_record pad = {.size = size, .len = CAPTURE_PAD};

	memcpy(ring_at(w->ring, w->head), &pad, CAPTURE_PAD_LEN);
	w->head += size;
}

bool capture_writer_put(struct capture_writer *w, struct capture_record *record,
			const uint8_t *frame)
{
	uint32_t end = bytes_to_end(w->head), skip;
	uint8_t *place;

	record->size = (uint32_t)((sizeof(*record) + record->len + 7) & ~7ul);
	skip = end < record->size ? end : 0;
	if (get_free_bytes(w) < (uint64_t)skip + record->size) {
		capture_writer_count_lost(w);
		return false;
	}
	if (skip)
		write_padding(w, skip);
	place = ring_at(w->ring, w->head);
	memcpy(place, record, sizeof(*record));
	/* The pointer to a frame of 0 bytes may be NULL. */
	if (record->len)
		memcpy(place + sizeof(*record), frame, record->len);
	w->head += record->size;
	atomic_store(&w->ring->head, w->head);
	return atomic_load(&w->ring->waiting) && atomic_exchange(&w->ring->waiting, 0);
}

void capture_writer_count_unrecorded(struct capture_writer *w)
{
	atomic_store_explicit(&w->ring->unrecorded, ++w->unrecorded, memory_order_relaxed);
}

void capture_writer_set_listed(struct capture_writer *w)
{
	atomic_store_explicit(&w->ring->listed, 1, memory_order_release);
}

/* --- The reader's end */

int capture_reader_open(struct capture_reader *r, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), rc;
	struct stat st;

	*r = (struct capture_reader){0};
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) ||
	    st.st_size != CAPTURE_RING_SIZE)
		return -EPROTO;
	r->copy = malloc(CAPTURE_RING_BYTES);
	if (!r->copy)
		return -ENOMEM;
	rc = map_ring(fd, &r->ring);
	if (rc)
		free(r->copy);
	return rc;
}

void capture_reader_close(struct capture_reader *r)
{
	munmap(r->ring, CAPTURE_RING_SIZE);
	free(r->copy);
}

static bool is_valid_size(uint32_t size, uint32_t len, uint64_t left)
{
	if (size < CAPTURE_PAD_LEN || size % 8 || size > left)
		return false;
	return len == CAPTURE_PAD || (size >= sizeof(struct capture_record) &&
				      len <= size - sizeof(struct capture_record));
}

/*
 * Copies the record at the tail. Returns its size in bytes; 0: there is none; -EPROTO: it is
 * invalid.
 */
static int copy_record(const struct capture_reader *r)
{
	uint64_t left = atomic_load_explicit(&r->ring->head, memory_order_acquire) - r->tail;
	struct capture_record *record = (struct capture_record *)(void *)r->copy;
	const uint8_t *from = ring_at(r->ring, r->tail);
	uint32_t sizes[2];

	if (!left)
		return 0;
	if (left > bytes_to_end(r->tail))
		left = bytes_to_end(r->tail);
	if (left < CAPTURE_PAD_LEN)
		return -EPROTO;
	memcpy(sizes, from, sizeof(sizes));
	if (!is_valid_size(sizes[0], sizes[1], left))
		return -EPROTO;
	memcpy(r->copy, from, sizes[0]);
	/* The writer may have changed the sizes in the ring since they were checked. */
	record->size = sizes[0];
	record->len = sizes[1];
	return (int)sizes[0];
}

int capture_reader_next(struct capture_reader *r, const struct capture_record **record,
			const uint8_t **frame)
{
	int size;

	*record = (const struct capture_record *)(void *)r->copy;
	*frame = (const uint8_t *)(*record + 1);
	do {
		size = copy_record(r);
		if (size <= 0)
			return size;
		r->tail += (uint32_t)size;
		atomic_store_explicit(&r->ring->tail, r->tail, memory_order_release);
	} while ((*record)->len == CAPTURE_PAD);
	return 1;
}

bool capture_reader_wait(struct capture_reader *r)
{
	atomic_store(&r->ring->waiting, 1);
	return atomic_load(&r->ring->head) == r->tail;
}

uint64_t capture_reader_lost(const struct capture_reader *r)
{
	return atomic_load_explicit(&r->ring->lost, memory_order_relaxed);
}

uint32_t capture_reader_unrecorded(const struct capture_reader *r)
{
	return atomic_load_explicit(&r->ring->unrecorded, memory_order_relaxed);
}

bool capture_reader_is_listed(const struct capture_reader *r)
{
	return atomic_load_explicit(&r->ring->listed, memory_order_acquire);
}

uint64_t capture_reader_head(const struct capture_reader *r)
{
	return atomic_load_explicit(&r->ring->head, memory_order_acquire);
}
