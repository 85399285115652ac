/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_mr.h"

#include <stdlib.h>

#include <rxe/rxe.h>
#include <samehost/peer.h>

#include "adapter/adapter.h"
#include "memory/mr_index.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_pd.h"

int mr_count(const struct mr *mr)
{
	int rc = mr->on_demand ? 0 : mr_index_add(mr->start, mr->length);

	if (!rc)
		adapter.on_demand_mrs += mr->on_demand;
	return rc;
}

void mr_uncount(const struct mr *mr)
{
	if (mr->on_demand)
		adapter.on_demand_mrs--;
	else
		mr_index_remove(mr->start, mr->length);
}

void mr_release(struct mr *mr)
{
	LIST_INSERT_HEAD(&adapter.released_mrs, mr, released_link);
	if (peers_settled(&adapter_peers))
		mr_free_released();
}

void mr_free_released(void)
{
	struct mr *mr;

	while ((mr = LIST_FIRST(&adapter.released_mrs))) {
		LIST_REMOVE(mr, released_link);
		mr_uncount(mr);
		free(mr);
	}
}

int mr_dereg(struct mr *mr)
{
	int rc = urxe_mr_dereg(mr->mr);

	if (rc)
		return rc;
	mr->pd->object.users--;
	handle_remove(&mr->object.file->handles, &mr->object);
	mr_release(mr);
	return 0;
}

/* Cannot fail, because no window is bound to the region: the windows of a closed context are
 * destroyed before its regions, and a new region has no window yet. */
void mr_destroy(struct object *object)
{
	mr_dereg((struct mr *)object);
}

void mr_unmap(struct mr *mr, const struct urxe_extent *bytes)
{
	/* If no memory is left for the list of unmapped ranges, withdraws the whole region. */
	if (urxe_mr_unmap(mr->mr, bytes))
		urxe_mr_unmap_all(mr->mr);
}
