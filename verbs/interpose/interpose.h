/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Macros that define functions in place of libc's. Every call of the program runs them, so each
 * function has two parts. The exported function checks quickly whether the call may concern a
 * descriptor, a path or memory of this library. If so, it calls hooked_NAME, which does the rest;
 * if not, it jumps to libc's function.
 */
#ifndef URXE_VERBS_INTERPOSE_INTERPOSE_H
#define URXE_VERBS_INTERPOSE_INTERPOSE_H

#include "process/libc_real.h"

/* Begins the definition of hooked_NAME, by which a file of this folder replaces libc's function. */
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

/* Defines the exported function. `concerned`: an expression that is true if the call concerns this
 * library. It may be true in other cases, too, because hooked_NAME checks again. */
#define HOOK(type, name, parameters, concerned, arguments) \
	HOOK_HEAD(type, name, name, parameters, concerned, arguments)

/*
 * As HOOK, for functions with variable arguments: `parameters` declares all arguments that there
 * may be. The supported processors pass variable arguments like named ones. An argument that the
 * caller has left out is passed on as it is, and libc does not read it.
 */
#if !defined(__x86_64__) && !defined(__aarch64__)
#error "how are variable arguments passed on this processor?"
#endif
#define HOOK_VARIABLE(type, name, parameters, concerned, arguments) \
	type all_of_##name parameters __asm__(#name);               \
	HOOK_HEAD(type, all_of_##name, name, parameters, concerned, arguments)

#endif
