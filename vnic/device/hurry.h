/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whoever closes the last descriptor of a socket waits as long as its owner wished
 * (SO_LINGER), and descriptors come from strangers: with a message that is received,
 * with one that nobody reads any more. A signal ends that wait, so between these two
 * there is one each millisecond.
 *
 * They use SIGALRM and the process's real-time timer; calls in between may fail with EINTR.
 */
#ifndef URXE_VNIC_DEVICE_HURRY_H
#define URXE_VNIC_DEVICE_HURRY_H

void vnic_hurry_begin(void);
void vnic_hurry_end(void);

#endif
