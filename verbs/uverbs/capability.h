/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The capabilities of the calling thread, as capable() in the kernel's verbs. */
#ifndef URXE_VERBS_UVERBS_CAPABILITY_H
#define URXE_VERBS_UVERBS_CAPABILITY_H

#include <stdbool.h>

/* Whether the thread has CAP_NET_RAW. Commands that need it fail with the kernel's errors. The
 * check protects nothing, because the engine belongs to the process. The kernel checks the initial
 * user namespace, this function the thread's own. */
bool capability_net_raw(void);

#endif
