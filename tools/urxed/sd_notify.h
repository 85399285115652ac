/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXED_SD_NOTIFY_H
#define URXE_URXED_SD_NOTIFY_H

/*
 * Tells whoever has started this process (NOTIFY_SOCKET, as sd_notify(3) has it) that it is
 * ready. Where nobody wants to know, nothing.
 */
void sd_notify_ready(void);

#endif
