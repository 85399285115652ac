/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_CONFORMANCE_PRIVILEGE_H
#define URXE_CONFORMANCE_PRIVILEGE_H

#include <stdbool.h>

/* Whether this process has a capability, CAP_*. */
bool privilege_held(int capability);
/*
 * Drops a capability of this process. Linux refuses commands on a device or channel that was opened
 * before the credentials changed, so the test must open both afterwards.
 */
void privilege_drop(int capability);

#endif
