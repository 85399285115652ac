/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A timer that interrupts a close(2) which waits: the last descriptor of another process's socket
 * may linger for as long as that process has said (SO_LINGER). Clients of the control socket
 * (control_client.c) may receive such descriptors. The process must not use SIGALRM otherwise.
 */
#ifndef URXE_URXED_REPORT_CLOSE_ALARM_H
#define URXE_URXED_REPORT_CLOSE_ALARM_H

/* Call close(2) between begin and end; every system call in between may fail with EINTR. */
void close_alarm_begin(void);
void close_alarm_end(void);

#endif
