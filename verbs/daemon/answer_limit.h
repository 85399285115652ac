/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long a thread waits for the daemon's answer to a request: 5 s during an attachment and at its
 * end, because fork() in another thread waits for adapter_open_lock meanwhile; 30 s between. A
 * daemon that stores records for the next one may wait seconds for a disk that programs write to.
 */
#ifndef URXE_VERBS_DAEMON_ANSWER_LIMIT_H
#define URXE_VERBS_DAEMON_ANSWER_LIMIT_H

/* Sets the limit to 30 s: call it once the process is attached. The caller holds adapter_open_lock
 * or adapter.lock, so that adapter.nic is not replaced meanwhile. */
void answer_limit_extend(void);

#endif
