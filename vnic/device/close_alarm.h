/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon closes descriptors that clients have sent. Closing the last descriptor of a socket
 * with SO_LINGER blocks for as long as its owner has set, unless a signal interrupts the wait. So
 * between begin and end a timer sends this process SIGALRM each millisecond, and calls in between
 * may fail with EINTR.
 */
#ifndef URXE_VNIC_DEVICE_CLOSE_ALARM_H
#define URXE_VNIC_DEVICE_CLOSE_ALARM_H

void vnic_close_alarm_begin(void);
void vnic_close_alarm_end(void);

#endif
