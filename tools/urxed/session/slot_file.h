/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file of equal slots in the run directory, by which objects survive the daemon: ucma_store keeps
 * rdma_cm IDs in one, mac_store the MACs of machines in another. Each change is a single write, so
 * a killed daemon leaves either the old content or the new one. If a content cannot be written, for
 * example because the file system is full, it stays in memory and is written later. The file is
 * valid for one boot and one format; otherwise it counts as empty. A slot with a wrong checksum
 * counts as empty, too.
 */
#ifndef URXE_URXED_SESSION_SLOT_FILE_H
#define URXE_URXED_SESSION_SLOT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define SLOT_FILE_BYTES 1008       /* capacity of a slot, bytes */
#define SLOT_FILE_NONE  UINT32_MAX /* no slot */

struct slot;

struct slot_file {
	int fd;                /* -1 = nothing is stored */
	uint32_t n;            /* number of slots in the file */
	uint32_t *free;        /* unused slots */
	uint32_t n_free, room; /* number of slots in `free`; number that fits there */
	/* New contents that could not be written, by slot; NULL: the file has the slot's present
	 * content. */
	struct slot **unwritten;
	uint32_t n_unwritten, unwritten_room;
	uint64_t retry_at; /* ns; when slot_file_tick tries again; UINT64_MAX = not planned */
};

/* Opens or makes the file `name` in run_dir. format: at most 31 characters; a file of another
 * format becomes empty. Returns 0 or a negative errno value. */
int slot_file_open(struct slot_file *s, const char *run_dir, const char *name, const char *format);
/* Closes the file. With `keep`, first writes the contents that could not be written before; without
 * it, removes the file. Does nothing if the file is not open. */
void slot_file_close(struct slot_file *s, const char *run_dir, const char *name, bool keep);

/*
 * Reads an object of `size` bytes from a slot that an earlier daemon has written. Returns 0;
 * -ENOENT: the slot has no object of that size; -ENODATA: the file ends before this slot. The
 * caller calls slot_file_drop once for each unused slot, so that slot_file_put can use it.
 */
int slot_file_get(const struct slot_file *s, uint32_t index, void *data, uint32_t size);
/* Writes an object to the slot `index`, or for SLOT_FILE_NONE to an unused slot. Returns the slot;
 * SLOT_FILE_NONE if the file is not open. */
uint32_t slot_file_put(struct slot_file *s, uint32_t index, const void *data, uint32_t size);
/* Makes the slot unused; does nothing for SLOT_FILE_NONE, or if the file is not open. */
void slot_file_drop(struct slot_file *s, uint32_t index);
/* Call it repeatedly: each second it tries again to write the contents that could not be written.
 * Returns the time of the next attempt in ns; UINT64_MAX = all are written. */
uint64_t slot_file_tick(struct slot_file *s, uint64_t now);

#endif
