/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interposed libc functions that take a path: each calls libc's function with the result of
 * path_redirect. Functions that no header of glibc declares any more (the stat family before 2.33,
 * and the fortified ones) are declared here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "interpose/device_node.h"
#include "interpose/gid_file.h"
#include "interpose/interpose.h"
#include "interpose/path_redirect.h"
#include "process/emulated_fd.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
char *__realpath_chk(const char *path, char *to, size_t room);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

static int open_device(enum device device, int flags)
{
	int fd = device_open(device, flags);

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

/* Defines redirected_NAME, which calls libc's function with the result of path_redirect. Not
 * inlined in hooked_NAME: the buffer must not be on the stack while a thread with a small stack
 * opens the device. */
#define REDIRECTED(type, name, parameters, arguments)                      \
	static __attribute__((noinline)) type redirected_##name parameters \
	{                                                                  \
		char buf[PATH_MAX];                                        \
                                                                           \
		path = path_redirect(path, buf);                           \
		return REAL(name) arguments;                               \
	}

#define OPEN_HOOKED(name, parameters, arguments)                                  \
	REDIRECTED(int, name, parameters, arguments)                              \
	HOOKED(int, name) parameters                                              \
	{                                                                         \
		enum device device = device_by_path(path);                        \
                                                                                  \
		if (device)                                                       \
			return open_device(device, flags);                        \
		return gid_file_opened(path, redirected_##name arguments, flags); \
	}

/* Defines open(2) and variants. Without O_CREAT and O_TMPFILE programs leave `mode` out; it is
 * passed on unread (HOOK_VARIABLE). */
#define OPEN(name)                                                                         \
	OPEN_HOOKED(name, (const char *path, int flags, mode_t mode), (path, flags, mode)) \
	HOOK_VARIABLE(int, name, (const char *path, int flags, mode_t mode),               \
		      path_may_be_watched(path), (path, flags, mode))

#define OPENAT(name)                                                                  \
	OPEN_HOOKED(name, (int dir, const char *path, int flags, mode_t mode),        \
		    (dir, path, flags, mode))                                         \
	HOOK_VARIABLE(int, name, (int dir, const char *path, int flags, mode_t mode), \
		      path_may_be_watched(path), (dir, path, flags, mode))

#define OPEN_2(name)                                                    \
	OPEN_HOOKED(name, (const char *path, int flags), (path, flags)) \
	HOOK(int, name, (const char *path, int flags), path_may_be_watched(path), (path, flags))

#define OPENAT_2(name)                                                                     \
	OPEN_HOOKED(name, (int dir, const char *path, int flags), (dir, path, flags))      \
	HOOK(int, name, (int dir, const char *path, int flags), path_may_be_watched(path), \
	     (dir, path, flags))

#define FOPEN(name)                                                                         \
	REDIRECTED(FILE *, name, (const char *path, const char *mode), (path, mode))        \
	HOOKED(FILE *, name)(const char *path, const char *mode)                            \
	{                                                                                   \
		FILE *stream = redirected_##name(path, mode);                               \
                                                                                            \
		return gid_file_fopened(path, stream, mode);                                \
	}                                                                                   \
	HOOK(FILE *, name, (const char *path, const char *mode), path_may_be_watched(path), \
	     (path, mode))

/* Replaces a function of libc that takes one path and further arguments. */
#define BY_PATH(type, name, parameters, arguments)    \
	REDIRECTED(type, name, parameters, arguments) \
	HOOKED(type, name) parameters                 \
	{                                             \
		return redirected_##name arguments;   \
	}                                             \
	HOOK(type, name, parameters, path_may_be_watched(path), arguments)

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

FOPEN(fopen)
FOPEN(fopen64)
BY_PATH(DIR *, opendir, (const char *path), (path))
BY_PATH(int, scandir,
	(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	 int (*compare)(const struct dirent **, const struct dirent **)),
	(path, list, filter, compare))
BY_PATH(int, scandir64,
	(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
	 int (*compare)(const struct dirent64 **, const struct dirent64 **)),
	(path, list, filter, compare))
BY_PATH(int, access, (const char *path, int mode), (path, mode))
BY_PATH(int, faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags))
BY_PATH(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size))
BY_PATH(ssize_t, readlinkat, (int dir, const char *path, char *to, size_t size),
	(dir, path, to, size))
BY_PATH(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room),
	(path, to, size, room))
BY_PATH(char *, realpath, (const char *path, char *to), (path, to))
BY_PATH(char *, __realpath_chk, (const char *path, char *to, size_t room), (path, to, room))
BY_PATH(char *, canonicalize_file_name, (const char *path), (path))

/* Changes *st, the result of stat(2) for the device's regular file in the run directory, to that of
 * a character device. */
#define AS_DEVICE(st, device)                        \
	do {                                         \
		(st)->st_mode = S_IFCHR | 0666;      \
		(st)->st_rdev = device_rdev(device); \
	} while (0)

#define STAT(name, parameters, arguments)                                      \
	REDIRECTED(int, name, parameters, arguments)                           \
	HOOKED(int, name) parameters                                           \
	{                                                                      \
		enum device device = device_by_path(path);                     \
		int rc = redirected_##name arguments;                          \
                                                                               \
		if (!rc && device)                                             \
			AS_DEVICE(st, device);                                 \
		else if (!rc)                                                  \
			(st)->st_mtim.tv_nsec += path_device_generation(path); \
		return rc;                                                     \
	}                                                                      \
	HOOK(int, name, parameters, path_may_be_watched(path), arguments)

#define FSTAT(name, parameters, arguments)             \
	HOOKED(int, name) parameters                   \
	{                                              \
		enum device device = device_by_fd(fd); \
		int rc = REAL(name) arguments;         \
                                                       \
		if (!rc && device)                     \
			AS_DEVICE(st, device);         \
		return rc;                             \
	}                                              \
	HOOK(int, name, parameters, fd_any(), arguments)

#define FSTATAT(name, parameters, arguments)                                   \
	REDIRECTED(int, name, parameters, arguments)                           \
	HOOKED(int, name) parameters                                           \
	{                                                                      \
		enum device device = device_at(fd, path, flags);               \
		int rc = redirected_##name arguments;                          \
                                                                               \
		if (!rc && device)                                             \
			AS_DEVICE(st, device);                                 \
		else if (!rc)                                                  \
			(st)->st_mtim.tv_nsec += path_device_generation(path); \
		return rc;                                                     \
	}                                                                      \
	HOOK(int, name, parameters, fd_any() || path_may_be_watched(path), arguments)

STAT(stat, (const char *path, struct stat *st), (path, st))
STAT(stat64, (const char *path, struct stat64 *st), (path, st))
STAT(lstat, (const char *path, struct stat *st), (path, st))
STAT(lstat64, (const char *path, struct stat64 *st), (path, st))
STAT(__xstat, (int version, const char *path, struct stat *st), (version, path, st))
STAT(__xstat64, (int version, const char *path, struct stat64 *st), (version, path, st))
STAT(__lxstat, (int version, const char *path, struct stat *st), (version, path, st))
STAT(__lxstat64, (int version, const char *path, struct stat64 *st), (version, path, st))
FSTAT(fstat, (int fd, struct stat *st), (fd, st))
FSTAT(fstat64, (int fd, struct stat64 *st), (fd, st))
FSTAT(__fxstat, (int version, int fd, struct stat *st), (version, fd, st))
FSTAT(__fxstat64, (int version, int fd, struct stat64 *st), (version, fd, st))
FSTATAT(fstatat, (int fd, const char *path, struct stat *st, int flags), (fd, path, st, flags))
FSTATAT(fstatat64, (int fd, const char *path, struct stat64 *st, int flags), (fd, path, st, flags))
FSTATAT(__fxstatat, (int version, int fd, const char *path, struct stat *st, int flags),
	(version, fd, path, st, flags))
FSTATAT(__fxstatat64, (int version, int fd, const char *path, struct stat64 *st, int flags),
	(version, fd, path, st, flags))

REDIRECTED(int, statx, (int fd, const char *path, int flags, unsigned int mask, struct statx *st),
	   (fd, path, flags, mask, st))

HOOKED(int, statx)(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	enum device device = device_at(fd, path, flags);
	int rc = redirected_statx(fd, path, flags, mask, st);

	if (!rc && device) {
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = major(device_rdev(device));
		st->stx_rdev_minor = minor(device_rdev(device));
	} else if (!rc) {
		st->stx_mtime.tv_nsec += path_device_generation(path);
	}
	return rc;
}
HOOK(int, statx, (int fd, const char *path, int flags, unsigned int mask, struct statx *st),
     fd_any() || path_may_be_watched(path), (fd, path, flags, mask, st))
