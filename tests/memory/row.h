/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A row is one thing that a program does with registered memory. The program `memory` runs one row,
 * and run.py compares what it prints with and without urxe.
 */
#ifndef URXE_TEST_MEMORY_ROW_H
#define URXE_TEST_MEMORY_ROW_H

#include <stdint.h>

#define PAGE 4096ul
#define MIB  (1024ul * 1024)

struct row {
	const char *name;
	/* Prints what a program can observe, which must be the same in each run. Exits if the test
	 * itself fails. */
	void (*run)(uintptr_t arg);
	uintptr_t arg;
};

/* One for each theme; the last entry has no name. */
extern const struct row fork_rows[], pin_rows[], uring_rows[], file_rows[], futex_rows[],
	madvise_rows[], mapping_rows[], stack_rows[], debugger_rows[], fault_rows[],
	descriptor_rows[], dmabuf_rows[];

/* Prints one observation. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the row as skipped, because the kernel forbids it. */
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the row as skipped, with errno's text, if the kernel lacks or forbids the call. */
void skip_unless(int supported, const char *call);

#endif
