/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recordings of processes (rxe/record.h) in a pcapng file, in blocks of a local type beside the
 * frames. urxe capture writes them, urxe replay --engine reads them. docs/replay.md has the format.
 * Integers are in the byte order of the machine that wrote the file.
 */
#ifndef URXE_CAPTURE_RECORDING_FILE_H
#define URXE_CAPTURE_RECORDING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/pcapng.h"

#define RECORDING_BLOCK   (PCAPNG_LOCAL | 0x757278u) /* "urx" */
#define RECORDING_VERSION 2                          /* 1 has no number of lost frames */
#define RECORDING_PORT    64                         /* bytes of a port's name, with its NUL */
#define RECORDING_PROGRAM 32
#define RECORDING_CHUNK   32768 /* most bytes of a recording in a block */
/* The reader refuses a file with more processes, and urxe capture adds no more. */
#define RECORDING_PROCESSES 8192

/* A process. engine_ns and wall_ns are the time when its recording began, in ns: by the engine's
 * clock, and since 1970. */
struct recording_process {
	int32_t pid;
	int32_t error; /* a negative errno value: no recording was possible; else 0 */
	uint64_t engine_ns;
	uint64_t wall_ns;
	uint8_t mac[6];
	uint8_t reserved[2];
	char program[RECORDING_PROGRAM];
	char port[RECORDING_PORT]; /* name of its port, which is also an interface of the file */
};

/* Why a process could not be recorded, for a user; `error` is that of struct recording_process. */
const char *recording_error_text(int error);

/* Writes a process. Its number counts the processes of the file from 0. Returns 0 or a negative
 * errno value. */
int recording_put_process(struct pcapng *w, uint32_t number, const struct recording_process *p);
/* Writes the next n bytes of the process's recording, at most RECORDING_CHUNK. Returns 0 or a
 * negative errno value. */
int recording_put_bytes(struct pcapng *w, uint32_t number, const void *bytes, uint32_t n);
/* Writes, at the end, the number of frames that the capture lost. Returns 0 or a negative errno
 * value. */
int recording_put_lost(struct pcapng *w, uint64_t lost);

/* --- Reading. */

struct recording {
	struct recording_process process;
	uint8_t *bytes;
	size_t n, room;
};

struct recorded_frame {
	const uint8_t *data;
	uint32_t len;
	uint8_t direction; /* enum pcapng_direction; 0 = unknown */
	uint64_t time;     /* ns since 1970 */
	char port[RECORDING_PORT];
};

/* The contents of a file, up to its end or to a block that is cut. */
struct recording_file {
	uint8_t *bytes; /* frames point into it */
	struct recording *recordings;
	uint32_t n_recordings;
	struct recorded_frame *frames;
	uint32_t n_frames, frames_room;
	uint64_t lost; /* frames that the capture lost; 0 also if the file does not say it */
	bool cut;      /* the file ends within a block */
};

#define RECORDING_ERROR 256

/*
 * Reads a whole file; a file that ends within a block is read up to that block. False: `error` has
 * one sentence. The caller calls recording_file_close in each case.
 */
bool recording_file_open(struct recording_file *f, const char *path, char error[RECORDING_ERROR]);
/*
 * Reads the n bytes of a file, which came from malloc(3). *f owns the bytes, also after an error.
 * Returns 0 or a negative errno value. The caller calls recording_file_close in each case.
 */
int recording_file_parse(struct recording_file *f, uint8_t *bytes, size_t n);
void recording_file_close(struct recording_file *f);

#endif
