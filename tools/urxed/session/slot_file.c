/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/slot_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/rundir.h"
#include "urxed/session/process_info.h"

/* A place lies in one page, which a write that is interrupted has changed or not. */
#define FIRST_AT 4096

struct header {
	char format[32];
	char boot_id[PROCESS_BOOT];
};

struct slot {
	uint64_t sum;  /* of what follows */
	uint32_t size; /* of data; 0 = nobody has the place */
	uint32_t reserved;
	uint8_t data[SLOT_FILE_BYTES];
};

static_assert(FIRST_AT % sizeof(struct slot) == 0, "no place crosses a page");
static_assert(SLOT_FILE_BYTES % sizeof(uint64_t) == 0, "data is whole words");

/* FNV-1a, of words: data is 0 behind its end. */
static uint64_t sum_of(const struct slot *slot)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ slot->size, word;

	for (uint32_t i = 0; i < slot->size; i += sizeof(word)) {
		memcpy(&word, slot->data + i, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 32;
	}
	return sum;
}

/* What of a place is written: of one that nobody has only that. */
static uint32_t written(uint32_t size)
{
	return (uint32_t)offsetof(struct slot, data) + size;
}

static off_t at(uint32_t place)
{
	return (off_t)(FIRST_AT + (uint64_t)place * sizeof(struct slot));
}

static bool is_ours(int fd, const struct header *own)
{
	struct header found;

	return pread(fd, &found, sizeof(found), 0) == sizeof(found) &&
	       !memcmp(&found, own, sizeof(found));
}

int slot_file_open(struct slot_file *s, const char *run_dir, const char *name, const char *format)
{
	struct header own = {.format = {0}};
	char path[PATH_MAX];
	off_t end;

	*s = (struct slot_file){.fd = -1};
	snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0)
		return -errno;
	snprintf(own.format, sizeof(own.format), "%s", format);
	process_boot(own.boot_id);
	if (!is_ours(s->fd, &own) &&
	    (ftruncate(s->fd, 0) || pwrite(s->fd, &own, sizeof(own), 0) != sizeof(own))) {
		close(s->fd);
		s->fd = -1;
		return -EIO;
	}
	end = lseek(s->fd, 0, SEEK_END);
	if (end > FIRST_AT)
		/* The last one need not be whole. */
		s->n = (uint32_t)((end - FIRST_AT - 1) / (off_t)sizeof(struct slot)) + 1;
	return 0;
}

void slot_file_close(struct slot_file *s, const char *run_dir, const char *name, bool keep)
{
	if (s->fd >= 0) {
		if (!keep)
			rundir_remove(run_dir, name);
		close(s->fd);
	}
	free(s->free);
	*s = (struct slot_file){.fd = -1};
}

/* Without memory it is free again for the next daemon. */
static void set_free(struct slot_file *s, uint32_t place)
{
	uint32_t room = s->room ? 2 * s->room : 64;
	uint32_t *more;

	if (s->n_free == s->room) {
		more = reallocarray(s->free, room, sizeof(*more));
		if (!more)
			return;
		s->free = more;
		s->room = room;
	}
	s->free[s->n_free++] = place;
}

int slot_file_get(const struct slot_file *s, uint32_t place, void *data, uint32_t size)
{
	struct slot slot = {.size = 0};

	if (place >= s->n)
		return -ENODATA;
	if (pread(s->fd, &slot, written(size), at(place)) != (ssize_t)written(size) ||
	    slot.size != size || slot.sum != sum_of(&slot))
		return -ENOENT;
	memcpy(data, slot.data, size);
	return 0;
}

static void write_slot(const struct slot_file *s, uint32_t place, const struct slot *slot)
{
	if (pwrite(s->fd, slot, written(slot->size), at(place)) != (ssize_t)written(slot->size))
		log_line("cannot write to the record of rdma_cm: %s", strerror(errno));
}

uint32_t slot_file_put(struct slot_file *s, uint32_t place, const void *data, uint32_t size)
{
	struct slot slot = {.size = size};

	if (s->fd < 0)
		return SLOT_FILE_NONE;
	if (place == SLOT_FILE_NONE)
		place = s->n_free ? s->free[--s->n_free] : s->n++;
	memcpy(slot.data, data, size);
	slot.sum = sum_of(&slot);
	write_slot(s, place, &slot);
	return place;
}

void slot_file_drop(struct slot_file *s, uint32_t place)
{
	const struct slot nothing = {.size = 0};

	if (s->fd < 0 || place == SLOT_FILE_NONE)
		return;
	write_slot(s, place, &nothing);
	set_free(s, place);
}
