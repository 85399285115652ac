/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions in the place of libc's, which every call of a program passes, whether it has to do with
 * verbs or not. Each is two: the one that the program calls is a look at what we have open, or at
 * the first letters of a path, and a jump to libc's; hooked_NAME is all of it, for the calls that
 * are ours, and for the first, which has to find libc's.
 */
#ifndef URXE_VERBS_INTERPOSE_INTERPOSE_H
#define URXE_VERBS_INTERPOSE_INTERPOSE_H

#include "interpose/libc_real.h"

#define HOOKED(type, name) static __attribute__((noinline)) type hooked_##name

#define HOOK_HEAD(type, symbol, name, parameters, concerned, arguments)      \
	type symbol parameters                                               \
	{                                                                    \
		__typeof__(&hooked_##name) real =                            \
			(__typeof__(&hooked_##name))real_known(REAL_##name); \
                                                                             \
		if (__builtin_expect(!real || (concerned), 0))               \
			return hooked_##name arguments;                      \
		return real arguments;                                       \
	}

/* `concerned` may be true too often: hooked_NAME looks again. */
#define HOOK(type, name, parameters, concerned, arguments) \
	HOOK_HEAD(type, name, name, parameters, concerned, arguments)

/*
 * Of a function of variable arguments, all that there may be: they are passed as named ones are on
 * the processors that we know, and what was not given is handed on unread.
 */
#if !defined(__x86_64__) && !defined(__aarch64__)
#error "how are variable arguments passed on this processor?"
#endif
#define HOOK_VARIABLE(type, name, parameters, concerned, arguments) \
	type all_of_##name parameters __asm__(#name);               \
	HOOK_HEAD(type, all_of_##name, name, parameters, concerned, arguments)

#endif
