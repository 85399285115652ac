/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shows the program what the engine has completed. */
#ifndef URXE_VERBS_QUEUES_PUBLISH_H
#define URXE_VERBS_QUEUES_PUBLISH_H

/* Shows the program all completions of the engine. With adapter.lock. */
void adapter_publish(void);

#endif
