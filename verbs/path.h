/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which paths are redirected into the daemon's run directory. */
#ifndef URXE_VERBS_PATH_H
#define URXE_VERBS_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The daemon's run directory, from URXE_DIR; NULL: the library is inert. */
const char *path_run_dir(void);

/* Whether it may be a path that is redirected, or a device: begins as one of those does. */
bool path_watched(const char *path);

/*
 * The path to use instead of `path`: `path` itself, or, for what urxed plays, the
 * place in the run directory, written to buf. A result that would not fit
 * PATH_MAX is left alone: no such file exists.
 */
const char *path_redirect(const char *path, char buf[PATH_MAX]);

#endif
