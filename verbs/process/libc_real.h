/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pointers to libc's own versions of the interposed functions. */
#ifndef URXE_VERBS_PROCESS_LIBC_REAL_H
#define URXE_VERBS_PROCESS_LIBC_REAL_H

/* Every interposed libc function, listed once. */
#define REAL_LIST(X)              \
	X(open)                   \
	X(open64)                 \
	X(openat)                 \
	X(openat64)               \
	X(__open_2)               \
	X(__open64_2)             \
	X(__openat_2)             \
	X(__openat64_2)           \
	X(fopen)                  \
	X(fopen64)                \
	X(opendir)                \
	X(scandir)                \
	X(scandir64)              \
	X(access)                 \
	X(faccessat)              \
	X(readlink)               \
	X(readlinkat)             \
	X(__readlink_chk)         \
	X(realpath)               \
	X(__realpath_chk)         \
	X(canonicalize_file_name) \
	X(stat)                   \
	X(stat64)                 \
	X(lstat)                  \
	X(lstat64)                \
	X(fstat)                  \
	X(fstat64)                \
	X(fstatat)                \
	X(fstatat64)              \
	X(statx)                  \
	X(__xstat)                \
	X(__xstat64)              \
	X(__lxstat)               \
	X(__lxstat64)             \
	X(__fxstat)               \
	X(__fxstat64)             \
	X(__fxstatat)             \
	X(__fxstatat64)           \
	X(write)                  \
	X(ioctl)                  \
	X(close)                  \
	X(close_range)            \
	X(closefrom)              \
	X(dup)                    \
	X(dup2)                   \
	X(dup3)                   \
	X(fcntl)                  \
	X(fcntl64)                \
	X(socket)                 \
	X(mmap)                   \
	X(mmap64)                 \
	X(munmap)                 \
	X(mremap)                 \
	X(shmdt)                  \
	X(sigaction)              \
	X(__sigaction)            \
	X(signal)                 \
	X(bsd_signal)             \
	X(ssignal)                \
	X(sysv_signal)            \
	X(__sysv_signal)          \
	X(sigset)                 \
	X(sigignore)              \
	X(siginterrupt)           \
	X(__register_atfork)

/* pthread_atfork(3) calls this function of libc, which libc's headers do not declare. `library` is
 * the __dso_handle of the calling library; NULL: a library that the process never unloads. Returns
 * 0 or a positive errno value. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *library);

/* For functions that run within __register_atfork: ThreadSanitizer's runtime calls it during its
 * own start, when code instrumented for ThreadSanitizer would crash. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("thread")))

#define REAL_ENUM(name) REAL_##name,
enum real_function { REAL_LIST(REAL_ENUM) REAL_COUNT };

extern void *real_functions[REAL_COUNT] __attribute__((visibility("hidden")));

void *real_resolve(enum real_function function);

/*
 * Resolves all functions; those that this libc lacks stay NULL. The constructor of this library
 * calls it, because a later dlsym() could wait for ever for the dynamic linker's lock: the holder
 * of that lock may wait for the allocator's lock, with which the calling thread maps memory; or the
 * holder runs a constructor that waits for the calling thread.
 */
void real_resolve_all(void);

/* libc's function; NULL: it is not resolved yet, or this libc lacks it. */
NOT_INSTRUMENTED static inline void *real_known(enum real_function function)
{
	return __atomic_load_n(&real_functions[function], __ATOMIC_RELAXED);
}

/* libc's function. Resolves the function if the constructor of another library calls it before the
 * constructor of this library runs. Ends the process if this libc lacks the function. */
NOT_INSTRUMENTED static inline void *real_get(enum real_function function)
{
	void *f = real_known(function);

	return __builtin_expect(f != 0, 1) ? f : real_resolve(function);
}

/* libc's function of that name, with its type: REAL(open)(path, flags). */
#define REAL(name) ((__typeof__(&name))real_get(REAL_##name))

#endif
