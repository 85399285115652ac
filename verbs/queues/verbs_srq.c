/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/verbs_srq.h"

#include <stdlib.h>

#include "objects/uverbs_file.h"
#include "objects/verbs_pd.h"

void srq_destroy(struct object *object)
{
	struct srq *srq = (struct srq *)object;

	urxe_srq_destroy(srq->recv.rq);
	queue_destroy(&srq->recv.wq.ring, &object->file->queues);
	srq->pd->object.users--;
	handle_remove(&object->file->handles, object);
	free(srq);
}
