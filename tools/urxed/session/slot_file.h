/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small things on record in a file of the run directory, so that they survive the daemon: each
 * has a place of its own, and each change is one write, which a daemon that is killed has made or
 * not. The file is the daemon's own, and of one boot: after another it counts as empty, as does
 * one of another format; so does a place whose checksum is wrong.
 */
#ifndef URXE_URXED_SESSION_SLOT_FILE_H
#define URXE_URXED_SESSION_SLOT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define SLOT_FILE_BYTES 1008       /* that a place has room for */
#define SLOT_FILE_NONE  UINT32_MAX /* no place */

struct slot_file {
	int fd;         /* -1 = nothing is written */
	uint32_t n;     /* places that the file has */
	uint32_t *free; /* those that nobody has, */
	uint32_t n_free, room;
};

/* format: up to 31 characters. 0 or a negative errno value. */
int slot_file_open(struct slot_file *s, const char *run_dir, const char *name, const char *format);
/* Removes the file, unless something is to be kept. Nothing where it is not open. */
void slot_file_close(struct slot_file *s, const char *run_dir, const char *name, bool keep);

/*
 * What an earlier daemon has put in a place. -ENOENT: nothing of that size; -ENODATA: nor is there
 * anything behind it. Places that are not in use are to be dropped once.
 */
int slot_file_get(const struct slot_file *s, uint32_t place, void *data, uint32_t size);
/* Puts something in its place, or with SLOT_FILE_NONE in a free one: where it is now. */
uint32_t slot_file_put(struct slot_file *s, uint32_t place, const void *data, uint32_t size);
void slot_file_drop(struct slot_file *s, uint32_t place);

#endif
