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

#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxed/session/process_info.h"

/* Slots begin at a page boundary, and each lies within one page. So an interrupted write has
 * changed either all of a slot or nothing. */
#define FIRST_SLOT_OFFSET 4096
#define RETRY_NS          1000000000ull

struct header {
	char format[32];
	char boot_id[PROCESS_BOOT];
};

struct slot {
	uint64_t sum;  /* checksum of the members behind it */
	uint32_t size; /* size of the object in data, bytes; 0 = unused slot */
	uint32_t reserved;
	uint8_t data[SLOT_FILE_BYTES];
};

static_assert(FIRST_SLOT_OFFSET % sizeof(struct slot) == 0, "no slot crosses a page");
static_assert(SLOT_FILE_BYTES % sizeof(uint64_t) == 0, "data is whole words");

/* FNV-1a over words; needs zeros behind the object in data. */
static uint64_t slot_checksum(const struct slot *slot)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325) ^ slot->size, word;

	for (uint32_t i = 0; i < slot->size; i += sizeof(word)) {
		memcpy(&word, slot->data + i, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x100000001b3);
		sum ^= sum >> 32;
	}
	return sum;
}

/*
 * Returns how many bytes of a slot to write or read: all before `data`, and `size` bytes of `data`.
 */
static uint32_t written_size(uint32_t size)
{
	return (uint32_t)offsetof(struct slot, data) + size;
}

static off_t slot_offset(uint32_t index)
{
	return (off_t)(FIRST_SLOT_OFFSET + (uint64_t)index * sizeof(struct slot));
}

static bool has_header(int fd, const struct header *own)
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
	int rc;

	*s = (struct slot_file){.fd = -1};
	snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	s->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0)
		return -errno;
	snprintf(own.format, sizeof(own.format), "%s", format);
	process_boot(own.boot_id);
	if (!has_header(s->fd, &own)) {
		errno = EIO; /* for a short write */
		if (ftruncate(s->fd, 0) || pwrite(s->fd, &own, sizeof(own), 0) != sizeof(own)) {
			rc = -errno;
			close(s->fd);
			s->fd = -1;
			return rc;
		}
	}
	end = lseek(s->fd, 0, SEEK_END);
	if (end > FIRST_SLOT_OFFSET)
		/* Counts also an incomplete last slot. */
		s->n = (uint32_t)((end - FIRST_SLOT_OFFSET - 1) / (off_t)sizeof(struct slot)) + 1;
	return 0;
}

/* Makes the slot available to slot_file_put. If memory is lacking, the slot stays unused until the
 * next daemon. */
static void add_free_slot(struct slot_file *s, uint32_t index)
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
	s->free[s->n_free++] = index;
}

int slot_file_get(const struct slot_file *s, uint32_t index, void *data, uint32_t size)
{
	struct slot slot = {.size = 0};

	if (index >= s->n)
		return -ENODATA;
	if (pread(s->fd, &slot, written_size(size), slot_offset(index)) !=
		    (ssize_t)written_size(size) ||
	    slot.size != size || slot.sum != slot_checksum(&slot))
		return -ENOENT;
	memcpy(data, slot.data, size);
	return 0;
}

/* Makes room so that s->unwritten[index] exists. */
static bool make_unwritten_room(struct slot_file *s, uint32_t index)
{
	const uint32_t room = index + index / 2 + 64;
	struct slot **more;

	if (index < s->unwritten_room)
		return true;
	more = reallocarray(s->unwritten, room, sizeof(struct slot *));
	if (!more)
		return false;
	memset(more + s->unwritten_room, 0, (room - s->unwritten_room) * sizeof(struct slot *));
	s->unwritten = more;
	s->unwritten_room = room;
	return true;
}

/* Keeps a slot's new content in memory. If memory is lacking, the file keeps the slot's old
 * content. */
static void keep_unwritten(struct slot_file *s, uint32_t index, const struct slot *slot)
{
	struct slot *copy = make_unwritten_room(s, index) ? malloc(written_size(slot->size)) : NULL;

	if (!copy)
		return;
	memcpy(copy, slot, written_size(slot->size));
	s->unwritten[index] = copy;
	s->n_unwritten++;
}

static void forget_unwritten(struct slot_file *s, uint32_t index)
{
	if (index >= s->unwritten_room || !s->unwritten[index])
		return;
	free(s->unwritten[index]);
	s->unwritten[index] = NULL;
	s->n_unwritten--;
}

static bool try_write(const struct slot_file *s, uint32_t index, const struct slot *slot)
{
	const ssize_t size = (ssize_t)written_size(slot->size);
	const ssize_t written = pwrite(s->fd, slot, (size_t)size, slot_offset(index));

	/* A short write sets no errno; it means that the rest had no room. */
	if (written >= 0 && written < size)
		errno = ENOSPC;
	return written == size;
}

static void write_slot(struct slot_file *s, uint32_t index, const struct slot *slot)
{
	static struct log_ratelimit limit;

	forget_unwritten(s, index);
	if (try_write(s, index, slot))
		return;
	log_ratelimited(&limit, now_ns(), "cannot store state for the next urxed: %s",
			strerror(errno));
	keep_unwritten(s, index, slot);
}

/* Writes the contents kept in memory. Stops at the first error, because the file system still has
 * no room. */
static void write_unwritten(struct slot_file *s)
{
	for (uint32_t i = 0; i < s->unwritten_room && s->n_unwritten; i++) {
		if (!s->unwritten[i])
			continue;
		if (!try_write(s, i, s->unwritten[i]))
			return;
		forget_unwritten(s, i);
	}
}

uint32_t slot_file_put(struct slot_file *s, uint32_t index, const void *data, uint32_t size)
{
	struct slot slot = {.size = size};

	if (s->fd < 0)
		return SLOT_FILE_NONE;
	if (index == SLOT_FILE_NONE)
		index = s->n_free ? s->free[--s->n_free] : s->n++;
	memcpy(slot.data, data, size);
	slot.sum = slot_checksum(&slot);
	write_slot(s, index, &slot);
	return index;
}

void slot_file_drop(struct slot_file *s, uint32_t index)
{
	const struct slot nothing = {.size = 0};

	if (s->fd < 0 || index == SLOT_FILE_NONE)
		return;
	write_slot(s, index, &nothing);
	add_free_slot(s, index);
}

uint64_t slot_file_tick(struct slot_file *s, uint64_t now)
{
	if (!s->n_unwritten)
		s->retry_at = UINT64_MAX;
	else if (s->retry_at == UINT64_MAX)
		s->retry_at = now + RETRY_NS;
	if (now >= s->retry_at) {
		write_unwritten(s);
		s->retry_at = s->n_unwritten ? now + RETRY_NS : UINT64_MAX;
	}
	return s->retry_at;
}

void slot_file_close(struct slot_file *s, const char *run_dir, const char *name, bool keep)
{
	if (s->fd >= 0) {
		if (keep)
			write_unwritten(s);
		else
			rundir_remove(run_dir, name);
		close(s->fd);
	}
	for (uint32_t i = 0; i < s->unwritten_room; i++)
		free(s->unwritten[i]);
	free(s->unwritten);
	free(s->free);
	*s = (struct slot_file){.fd = -1};
}
