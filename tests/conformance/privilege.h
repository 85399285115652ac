/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_CONFORMANCE_PRIVILEGE_H
#define URXE_CONFORMANCE_PRIVILEGE_H

#include <stdbool.h>

/* Whether this process has a capability, CAP_*. */
bool privilege_held(int capability);
/*
 * Takes it from this process. Linux takes commands from nobody whose credentials have changed since
 * he opened the device or the channel: what is used afterwards has to be opened afterwards.
 */
void privilege_drop(int capability);

#endif
