/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The capabilities of the calling thread, as capable() in the kernel's verbs. */
#ifndef URXE_VERBS_UVERBS_CAPABILITY_H
#define URXE_VERBS_UVERBS_CAPABILITY_H

#include <stdbool.h>

/* Whether the thread has CAP_NET_RAW in its own user namespace; the kernel asks for it in the
 * initial one. Commands use this check to fail with the kernel's errors. It protects nothing,
 * because the engine belongs to the process. */
bool capability_net_raw(void);

#endif
