/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "turns.h"

#include <stddef.h>

#include "handle.h"
#include "qp.h"

/* Objects come and go meanwhile: what a handle names is looked up each time. */
static struct qp *find(const struct handle_table *handles, uint32_t handle)
{
	return (struct qp *)handle_find(handles, OBJECT_QP, handle);
}

static uint32_t coming(const struct turns *turns, uint32_t since)
{
	return turns->coming[(turns->n - since) % TURNS_AHEAD];
}

/* What one fetches, the next follows. */
static void fetch(const struct turns *turns, const struct handle_table *handles)
{
	const struct object *object;
	const struct qp *qp;

	handle_fetch(handles, coming(turns, 0));
	object = handle_look(handles, coming(turns, 1));
	if (object)
		qp_fetch_context(object);
	qp = find(handles, coming(turns, 2));
	if (qp)
		qp_fetch_post(qp);
	qp = find(handles, coming(turns, 3));
	if (qp)
		qp_fetch_request(qp, 0);
}

/* The next turn is most likely one of as many posts. */
static void go_on(struct turns *turns, const struct handle_table *handles)
{
	const struct qp *next = find(handles, coming(turns, 4));

	turns->posts++;
	if (next)
		qp_fetch_request(next, turns->posts);
}

void turns_take(struct turns *turns, const struct handle_table *handles, struct qp *qp)
{
	uint32_t handle = qp->object.handle, at;
	struct qp *before;

	if (turns->posted[turns->n % TURNS_AHEAD] == handle) {
		go_on(turns, handles);
		return;
	}
	turns->posts = 0;
	at = ++turns->n % TURNS_AHEAD;
	before = find(handles, turns->posted[at]);
	if (before)
		before->ahead = handle;
	turns->posted[at] = handle;
	turns->coming[at] = qp->ahead;
	fetch(turns, handles);
}
