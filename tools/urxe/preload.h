/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The environment of a program with the device: LD_PRELOAD and URXE_DIR, and ASAN_OPTIONS and
 * TSAN_OPTIONS, so that programs with these sanitizers run with a preloaded library. For `urxe
 * run`.
 *
 * A `urxe run` within another one with another run directory is nested: the program has both
 * devices, by liburxe.so and liburxe-outer.so, and the outer one may be the HCA of the inner one.
 * The dynamic linker loads a file only once, hence the second library. With more than two
 * levels, a program has only the devices of the two innermost runs.
 */
#ifndef URXE_URXE_PRELOAD_H
#define URXE_URXE_PRELOAD_H

/* Remembers the variables of an outer `urxe run`. Call it before the environment is changed. */
void preload_remember(void);
/* Sets one variable of the environment. Returns 0; -1 after an error, which is logged. */
int preload_set_env(const char *name, const char *value);
/*
 * Sets these variables for a program with the device of run_dir. For a nested program, also sets
 * URXE_OUTER_* to the variables that preload_remember has read, and removes those that were not
 * set. Returns 0; -1 after an error, which is logged.
 */
int preload_set(const char *run_dir);
/*
 * Call it after preload_set, when a daemon serves run_dir. Logs a line if the program is nested,
 * but run_dir does not show the outer device (unknown to the daemon, or of the same name), so that
 * the program has the inner one only.
 */
void preload_check_outer(const char *run_dir);

#endif
