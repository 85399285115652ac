/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the calling thread may do, where the kernel's verbs ask capable(). */
#ifndef URXE_VERBS_UVERBS_CAPABILITY_H
#define URXE_VERBS_UVERBS_CAPABILITY_H

#include <stdbool.h>

/*
 * Whether it has CAP_NET_RAW. It protects nothing here, as the engine is the process' own: programs
 * get the kernel's answer. The kernel asks for that of the first user namespace, this for that of
 * the thread's.
 */
bool capability_net_raw(void);

#endif
