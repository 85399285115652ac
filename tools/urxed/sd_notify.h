/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXED_SD_NOTIFY_H
#define URXE_URXED_SD_NOTIFY_H

/*
 * Tells the service manager that the daemon is ready (sd_notify(3)). Does nothing if NOTIFY_SOCKET
 * is not set. main.c calls this.
 */
void sd_notify_ready(void);

#endif
