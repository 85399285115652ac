/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The checks of urxe doctor. Each adds one finding or several, and changes nothing on the host;
 * only check_device may start a private daemon, as `urxe run` does.
 */
#ifndef URXE_URXE_DOCTOR_CHECK_H
#define URXE_URXE_DOCTOR_CHECK_H

#include <stdbool.h>

#include "urxe/doctor/finding.h"

/* A run directory that remedies propose, in shell syntax. */
#define MEMORY_DIR "/dev/shm/urxe-$(id -u)"

/*
 * Which daemon serves the run directory, and with which uplinks. True: the directory has a daemon's
 * socket, even if no daemon answers.
 */
bool check_daemon(struct findings *f, const char *run_dir);
/* Can a program that `urxe run` starts open the daemon's device by libibverbs? */
void check_device(struct findings *f, const char *run_dir);
/*
 * Is the run directory in memory? If not, urxed waits for the disk. Called after check_device,
 * which may make the directory. `served`: the result of check_daemon.
 */
void check_run_dir(struct findings *f, const char *run_dir, bool served);
/*
 * `urxe doctor --probe`, which check_device starts under `urxe run`: opens the device. Prints
 * "ok<TAB>DEVICE", or "SENTENCE<TAB>COMMAND" with the command that mends it, if any. Returns the
 * exit status of `urxe doctor --probe`.
 */
int device_probe(void);
/* Does the kernel let one process copy from the memory of another one? */
void check_copies(struct findings *f);
/* Limits of descriptors and file sizes (getrlimit(2)): are they high enough? */
void check_limits(struct findings *f);
/* RDMA devices of the kernel, and whether a socket of any program or rdma_rxe has UDP port 4791. */
void check_kernel(struct findings *f);
/*
 * The MTU of each Ethernet interface that is up, and whether it suffices for the largest path MTU.
 */
void check_interfaces(struct findings *f);
/* May this user start a urxed with uplinks? */
void check_uplinks(struct findings *f);
/* Whether a chain of nftables at an interface (netdev) takes frames before packet sockets do. */
void check_firewall(struct findings *f);

#endif
