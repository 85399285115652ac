/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/verbs_mw.h"

#include <stdlib.h>

#include <rxe/rxe.h>

#include "objects/uverbs_file.h"
#include "objects/verbs_pd.h"

void mw_destroy(struct object *object)
{
	struct mw *mw = (struct mw *)object;

	urxe_mw_dealloc(mw->mw);
	mw->pd->object.users--;
	handle_remove(&object->file->handles, object);
	free(mw);
}
