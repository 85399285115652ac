/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A timer that interrupts a waiting close(2). If a process has set SO_LINGER on a socket, closing
 * the socket's last descriptor may wait as long as that process has chosen. Clients of the control
 * socket (control_client.c) may receive such descriptors. The process must not use SIGALRM for
 * anything else.
 */
#ifndef URXE_URXED_REPORT_CLOSE_ALARM_H
#define URXE_URXED_REPORT_CLOSE_ALARM_H

/* Call close(2) between begin and end; each system call in between may fail with EINTR. */
void close_alarm_begin(void);
void close_alarm_end(void);

#endif
