/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a fuzz target without libFuzzer on the files of its corpus, and on mutations of each, which
 * are the same on every machine.
 *
 *	TARGET DIRECTORY...
 *
 * URXE_FUZZ_MUTATIONS in the environment has another number of mutations for each file.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rand.h"

#define MAX_FILE 65536
#ifndef MUTATIONS
#define MUTATIONS 100
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Some targets have it. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
/* Whether the target has accepted its last input, if it has to accept each file of its corpus. */
__attribute__((weak)) bool fuzz_accepted(void);

/* A block of exactly n bytes, so that AddressSanitizer sees a read behind the input. */
static uint8_t *copy_input(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n);

	if (!copy)
		abort();
	memcpy(copy, data, n);
	return copy;
}

static void mutate(const uint8_t *data, size_t size, uint64_t seed)
{
	struct rand rand = {seed};
	size_t n = rand_chance(&rand, 0.3) ? rand_below(&rand, (uint32_t)size + 1) : size;
	uint8_t *copy = copy_input(data, n);

	for (unsigned i = rand_in(&rand, 1, 8); i && n; i--)
		copy[rand_below(&rand, (uint32_t)n)] = (uint8_t)rand_next(&rand);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static uint64_t count_mutations(void)
{
	const char *number = getenv("URXE_FUZZ_MUTATIONS");

	return number ? strtoull(number, NULL, 10) : MUTATIONS;
}

static int run_file(const char *path)
{
	const uint64_t mutations = count_mutations();
	static uint8_t data[MAX_FILE];
	FILE *file = fopen(path, "rb");
	uint8_t *copy;
	size_t size;

	if (!file) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	if (size == sizeof(data)) {
		fprintf(stderr, "%s: too large\n", path);
		return 1;
	}
	copy = copy_input(data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	if (fuzz_accepted && !fuzz_accepted()) {
		fprintf(stderr, "%s: refused\n", path);
		return 1;
	}
	for (uint64_t seed = 0; seed < mutations; seed++)
		mutate(data, size, seed);
	return 0;
}

static int hide_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Runs the files in the order of their names. An empty directory is a failure. */
static int run_directory(const char *directory)
{
	struct dirent **entries;
	int n = scandir(directory, &entries, hide_dots, alphasort), failed = 0;
	char path[4096];

	if (n <= 0) {
		fprintf(stderr, "%s: no corpus\n", directory);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		failed |= run_file(path);
		free(entries[i]);
	}
	free(entries);
	printf("%s: %d files, %llu mutations each\n", directory, n,
	       (unsigned long long)count_mutations());
	return failed;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		failed |= run_directory(argv[i]);
	return failed;
}
