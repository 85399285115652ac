/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that is replaced: hands the machine's device to the process that asks for it. */
#ifndef URXE_VM_REPLACE_HAND_OVER_H
#define URXE_VM_REPLACE_HAND_OVER_H

struct vm;

/* Call it when the listening socket is readable: accepts a process, or refuses a second one. */
void hand_over_accept(struct vm *vm);
/*
 * Call it when the requester's connection is readable: stops the device, and hands it over. If that
 * fails, the device goes on in this process. Otherwise it sets vm->replacement.replaced: the device
 * is the other process's, and this one must not touch it any more. Waits for some packets, each for
 * CHANNEL_OLD_MS at most.
 */
void hand_over(struct vm *vm);
/* Closes the requester's connection, if there is one. */
void hand_over_close(struct vm *vm);

#endif
