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
	X(signal)                 \
	X(bsd_signal)             \
	X(ssignal)                \
	X(sysv_signal)            \
	X(__sysv_signal)          \
	X(__register_atfork)

/* Not in libc's headers: what pthread_atfork(3) calls. `library` is the caller's; NULL: one that
 * the process keeps loaded. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *library);

#define REAL_ENUM(name) REAL_##name,
enum real_function { REAL_LIST(REAL_ENUM) REAL_COUNT };

extern void *real_functions[REAL_COUNT] __attribute__((visibility("hidden")));

void *real_resolve(enum real_function function);

/*
 * For the constructor of this library. A call of dlsym() later could wait for ever for the dynamic
 * linker's lock: its holder may be allocating, which maps memory with the allocator's lock held, or
 * may run a constructor that waits for the calling thread.
 */
void real_resolve_all(void);

/* libc's function; NULL: it is not resolved yet, or this libc lacks it. */
static inline void *real_known(enum real_function function)
{
	return __atomic_load_n(&real_functions[function], __ATOMIC_RELAXED);
}

/* libc's function. Resolves it if the constructor of another library calls it before the
 * constructor of this library runs. */
static inline void *real_get(enum real_function function)
{
	void *f = real_known(function);

	return __builtin_expect(f != 0, 1) ? f : real_resolve(function);
}

/* libc's function of that name, with its type: REAL(open)(path, flags). */
#define REAL(name) ((__typeof__(&name))real_get(REAL_##name))

#endif
