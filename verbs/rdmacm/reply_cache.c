/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rdmacm/reply_cache.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

/* Of one ID. */
struct answers {
	uint32_t number;
	uint32_t len; /* 0: there are none */
	uint8_t bytes[CM_ATTACH_FORETOLD];
};

struct rdmacm_foretold {
	uint32_t next; /* the oldest, whose place is taken next */
	struct answers at[RDMACM_FORETOLD];
};

static struct answers *find(const struct rdmacm_file *file, uint32_t number)
{
	struct rdmacm_foretold *foretold = file->foretold;

	for (uint32_t i = 0; foretold && i < RDMACM_FORETOLD; i++)
		if (foretold->at[i].len && foretold->at[i].number == number)
			return &foretold->at[i];
	return NULL;
}

static void drop(struct rdmacm_file *file, uint32_t number)
{
	struct answers *answers = find(file, number);

	if (answers)
		answers->len = 0;
}

/* NULL: no memory, so that urxed is asked. */
static struct answers *place(struct rdmacm_file *file)
{
	if (!file->foretold)
		file->foretold = calloc(1, sizeof(*file->foretold));
	if (!file->foretold)
		return NULL;
	return &file->foretold->at[file->foretold->next++ % RDMACM_FORETOLD];
}

void rdmacm_foretold_keep(struct rdmacm_file *file, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	struct answers *answers;

	drop(file, id);
	answers = len ? place(file) : NULL;
	if (!answers)
		return;
	answers->number = id;
	answers->len = len;
	memcpy(answers->bytes, bytes, len);
}

/* Both commands look alike, but for what the last field is called. */
static bool is_question(const struct rdmacm_request *request)
{
	uint32_t command = request->command.command;

	return (command == RDMA_USER_CM_CMD_QUERY || command == RDMA_USER_CM_CMD_INIT_QP_ATTR) &&
	       request->command.in >= sizeof(struct rdma_ucm_query);
}

/* The bytes of the answer; NULL: it is not among them. */
static const uint8_t *look_up(const struct answers *answers, uint32_t command, uint32_t what,
			      uint32_t *len)
{
	const uint8_t *at = answers->bytes, *end = at + answers->len;
	struct cm_attach_answer head;

	while ((size_t)(end - at) >= sizeof(head)) {
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		if (head.out > (size_t)(end - at))
			break;
		*len = head.out;
		if (head.command == command && head.what == what)
			return at;
		at += head.out;
	}
	return NULL;
}

bool rdmacm_foretold_answer(const struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response)
{
	const struct answers *answers;
	struct rdma_ucm_query query;
	const uint8_t *bytes;
	uint32_t len;

	if (!is_question(request) || !rdmacm_is_open(file, request))
		return false;
	memcpy(&query, request->in, sizeof(query));
	answers = find(file, query.id);
	bytes = answers ? look_up(answers, request->command.command, query.option, &len) : NULL;
	/* With less room there may be another answer, or an error. */
	if (!bytes || len > request->command.out)
		return false;
	memcpy(response->out, bytes, len);
	response->reply = (struct cm_attach_reply){.out = len};
	return true;
}

void rdmacm_foretold_done(struct rdmacm_file *file, const struct rdmacm_request *request)
{
	uint32_t number;

	if (!is_question(request) && rdmacm_id_of(request, &number))
		drop(file, number);
}

void rdmacm_foretold_forget(struct rdmacm_file *file)
{
	free(file->foretold);
	file->foretold = NULL;
}
