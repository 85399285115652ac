/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handlers of fork for the adapter: they take its locks before the fork, and detach the child
 * from the parent's adapter. The child has the parent's rings mapped, but must not use them. It has
 * no device until it opens one itself. process/fork_handlers.c calls the handlers.
 *
 * A signal handler may fork while its thread holds adapter.lock or waits for it. Then the handlers
 * of fork take no lock, because the thread would wait for itself. The child gets private memory in
 * place of the parent's rings, so that the interrupted call reaches no other process. When that
 * call releases the lock, the child forgets the adapter.
 */
#ifndef URXE_VERBS_ATTACH_FORK_H
#define URXE_VERBS_ATTACH_FORK_H

/* When the process attaches: makes the handlers of fork take the locks. Any thread. */
void adapter_enable_fork_handlers(void);

#endif
