/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that replaces another one: takes the device of a running machine over. */
#ifndef URXE_VM_REPLACE_TAKE_OVER_H
#define URXE_VM_REPLACE_TAKE_OVER_H

#include "vm/vm.h"

struct bundle;

/*
 * Asks the running process for the device. From then on the device stands still, until the running
 * process resumes it or take_over_finish succeeds. The caller has opened the session of *vm.
 * Returns 0, and the caller calls bundle_close; or a negative errno value and a sentence in
 * `error`.
 */
int take_over_begin(struct vm *vm, const struct vm_attr *attr, struct bundle *b,
		    char error[VM_ERROR]);
/*
 * Loads the running process's state into the device of *vm, lets that process end, and starts the
 * device. The caller has opened all parts of *vm. Returns 0, or a negative errno value and a
 * sentence in `error`; then the running process goes on with the device.
 */
int take_over_finish(struct vm *vm, struct bundle *b, char error[VM_ERROR]);
/*
 * Call it when the connection to the replaced process is readable: that process has ended, so the
 * session demands the numbers of its queue pairs from urxed.
 */
void take_over_settle(struct vm *vm);

#endif
