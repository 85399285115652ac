/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Eventfds of another process, which may change their flags and fill their counters. */
#ifndef URXE_VNIC_EVENTFD_H
#define URXE_VNIC_EVENTFD_H

#include <stdbool.h>

/*
 * Checks that a descriptor of another process is an eventfd. Returns 0; -EINVAL: another kind of
 * file; or another negative errno value: /proc cannot tell. A write to a pipe without a reader
 * would raise SIGPIPE, and a write to a file could do anything.
 */
int vnic_eventfd_check(int fd);
/*
 * Makes the eventfd readable, and leaves errno alone. False: the eventfd is not readable, because
 * the number is no descriptor of the calling thread, for example. The write waits only if the other
 * process has cleared O_NONBLOCK and fills the counter between this function's poll(2) and its
 * write, or at any time if poll(2) fails, as under an RLIMIT_NOFILE of 0.
 */
bool vnic_eventfd_raise(int fd);

#endif
