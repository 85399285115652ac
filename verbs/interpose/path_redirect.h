/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which paths are redirected into the daemon's run directory. */
#ifndef URXE_VERBS_INTERPOSE_PATH_REDIRECT_H
#define URXE_VERBS_INTERPOSE_PATH_REDIRECT_H

#include <limits.h>
#include <stdbool.h>

/* The daemon's run directory, from URXE_DIR; NULL: the library is inert. */
const char *path_run_dir(void);

/* Whether it may be a path that is redirected, or a device: begins as one of those does. */
bool path_watched(const char *path);

/* Whether a look at its first letters leaves that open. */
static inline bool path_suspect(const char *path)
{
	/* Where libc declares that a path is never NULL, programs give it NULL all the same, and
	 * get EFAULT: the compiler must not know. */
	__asm__("" : "+r"(path));
	if (!path || path[0] != '/')
		return false;
	return path[1] == 's' ? path[2] == 'y' && path[3] == 's' && path[4] == '/' && path[5] == 'c'
			      : path[1] == 'd' && path[2] == 'e' && path[3] == 'v' &&
					path[4] == '/' && path[5] == 'i';
}

/*
 * The path to use instead of `path`: `path` itself, or, for what urxed plays, the
 * place in the run directory, written to buf. A result that would not fit
 * PATH_MAX is left alone: no such file exists.
 */
const char *path_redirect(const char *path, char buf[PATH_MAX]);

#endif
