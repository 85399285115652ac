/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Eventfds of another process, which may change their flags and fill their counters. */
#ifndef URXE_VNIC_EVENTFD_H
#define URXE_VNIC_EVENTFD_H

/*
 * 0, or -EINVAL: another kind of file. A write to a pipe without a reader would raise SIGPIPE, and
 * a write to a file could do anything.
 */
int vnic_eventfd_check(int fd);
/* Makes the eventfd readable, and leaves errno alone. Waits only if the other process clears
 * O_NONBLOCK and fills the counter just before the write. */
void vnic_eventfd_raise(int fd);

#endif
