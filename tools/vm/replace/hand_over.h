/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that is replaced: hands the machine's device to the process that asks for it. */
#ifndef URXE_VM_REPLACE_HAND_OVER_H
#define URXE_VM_REPLACE_HAND_OVER_H

struct vm;

/* The listening socket is readable: accepts a process, or refuses a second one. */
void hand_over_accept(struct vm *vm);
/*
 * The requester's connection is readable: stops the device, and hands it over. Then the device goes
 * on, unless vm->replacement.replaced is set: then it is the other process's, and this one must not
 * touch it any more. Waits for some packets, each for CHANNEL_OLD_MS at most.
 */
void hand_over(struct vm *vm);
void hand_over_close(struct vm *vm);

#endif
