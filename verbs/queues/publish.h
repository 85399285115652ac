/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Makes the engine's results visible to the program. */
#ifndef URXE_VERBS_QUEUES_PUBLISH_H
#define URXE_VERBS_QUEUES_PUBLISH_H

/* Publishes all CQs and QPs of adapter.dirty_cqs and adapter.dirty_qps: the program sees the
 * completions, gets its events, and gets back ring slots. Then sends the events of
 * comp_channel_send_published(). With adapter.lock. */
void adapter_publish(void);

#endif
