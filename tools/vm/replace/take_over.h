/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that replaces another one: takes the device of a running machine over. */
#ifndef URXE_VM_REPLACE_TAKE_OVER_H
#define URXE_VM_REPLACE_TAKE_OVER_H

#include "vm/vm.h"

struct bundle;

/*
 * Asks the running process for the device, which stands still from now on, until that process goes
 * on with it or take_over_finish succeeds. The session of *vm is open. On error `error` has a
 * sentence; after 0 the caller calls bundle_close.
 */
int take_over_begin(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
		    char error[VM_ERROR]);
/*
 * Loads the running process's state into the device of *vm, lets that process end, and starts the
 * device. All parts of *vm are open. After an error the caller must not reset the device: the
 * running process goes on with it.
 */
int take_over_finish(struct vm *vm, struct bundle *b, char error[VM_ERROR]);
/* The connection to the process that was replaced is readable: it has ended. */
void take_over_settle(struct vm *vm);

#endif
