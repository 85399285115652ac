/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long a thread waits for the daemon's answer to a request: 5 s during an attachment, because
 * fork() in another thread waits for its end; 30 s afterwards. A daemon waits for its disk when it
 * stores records for the next daemon, and may need several seconds beside programs that write much.
 */
#ifndef URXE_VERBS_DAEMON_ANSWER_LIMIT_H
#define URXE_VERBS_DAEMON_ANSWER_LIMIT_H

/* Called at the end of an attachment, before another thread uses adapter.nic or with adapter.lock.
 */
void answer_limit_extend(void);

#endif
