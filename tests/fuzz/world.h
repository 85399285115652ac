/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For fuzz targets whose world (hosts, tables, connections, virtual time) lives on between inputs:
 * a world is built for a number of inputs, and an input is a few steps in it. world.c has
 * LLVMFuzzerTestOneInput; a target has LLVMFuzzerInitialize.
 *
 * A finding may depend on all inputs since the world was built. With -artifact_prefix=PREFIX they
 * are in the file PREFIXhistory-PID, which outlives any death of the process, and is removed when
 * the process ends well. TARGET FILE runs the inputs of such a file, and ends the world.
 */
#ifndef URXE_FUZZ_WORLD_H
#define URXE_FUZZ_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_INPUTS_MAX 4096
#define WORLD_BYTES_MAX  256

struct world {
	uint32_t inputs; /* inputs of one world, at most WORLD_INPUTS_MAX; then it is rebuilt */
	uint32_t bytes;  /* used bytes of an input, at most WORLD_BYTES_MAX; others are ignored */
	void (*open)(void);
	void (*run)(const uint8_t *data, size_t size);
	/* Checks the world's final state, and frees the world. */
	void (*close)(void);
	bool bounded; /* an input that takes more than 2 s of processor time is a finding */
};

/* Call from LLVMFuzzerInitialize. Does not return if the arguments name a file of inputs. */
void world_start(const struct world *world, int *argc, char ***argv);
/* Number of inputs that the world has had, with the current one. */
uint32_t world_inputs(void);

#endif
