/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The user whom getsockopt(SO_PEERCRED) names: a thread that accepts connections takes their
 * processes for this user's. The linker replaces getsockopt (-Wl,--wrap).
 */
#ifndef URXE_TEST_ACCEPTED_USER_H
#define URXE_TEST_ACCEPTED_USER_H

#include <sys/types.h>

extern _Thread_local uid_t accepted_uid; /* 0: the real user */

#endif
