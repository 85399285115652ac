/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/check/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/alloc.h"
#include "sim/host/failure.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

/*
 * A WRITE that ended in an error may have been executed, or a part of it. So the model takes the
 * bytes that memory has of such a WRITE.
 */
static void model_failed_writes(struct stream *stream, const uint8_t *memory)
{
	uint8_t *content = stream->world->scratch;

	stream_initial(stream, stream->model);
	for (uint32_t i = 0; i < stream_executable(stream); i++) {
		const struct request *request = &stream->request[i];
		uint8_t *model = stream->model + request->target;

		if (!is_write(request->opcode))
			continue;
		content_fill(stream->seed, i, content, request->length);
		for (uint32_t k = 0; k < request->length; k++)
			if (i < stream->succeeded || memory[request->target + k] == content[k])
				model[k] = content[k];
	}
}

/* RC: the memory equals the model. UC: each byte has its initial value, because the network or an
 * empty receive queue may cost a WRITE, or the value of the only WRITE to it. */
static void check_target(struct stream *stream)
{
	const uint8_t *memory = stream_to(stream)->host->mem + stream->target;
	const bool lossy = stream->conn->attr.type == URXE_QPT_UC;
	uint8_t *initial;

	if (stream->failed && !lossy)
		model_failed_writes(stream, memory);
	if (!memcmp(memory, stream->model, stream->target_size))
		return;
	initial = sim_alloc(stream->target_size);
	stream_initial(stream, initial);
	for (uint32_t i = 0; i < stream->target_size; i++) {
		if (memory[i] == stream->model[i] || (lossy && memory[i] == initial[i]))
			continue;
		world_fail_stream(stream, "target of qp %06x at %u holds %02x, not %02x",
				  stream_from(stream)->qpn, i, memory[i], stream->model[i]);
		break;
	}
	free(initial);
}

/* Whether the word may have this value in a stream with an error: any atomic after the error may be
 * the first that was not executed. From the mistake on none is executed. */
static bool may_hold(const struct stream *stream, uint32_t word, uint64_t value)
{
	for (uint32_t i = stream->succeeded; stream->failed && i < stream->posted; i++) {
		const struct outstanding *out = stream_out(stream, i);

		if (!is_atomic(stream->request[i].opcode) || out->shared || out->word != word ||
		    failure_is_mistake(stream, i))
			continue;
		if (out->original == value)
			return true;
		if (i >= stream_executable(stream))
			return false;
	}
	return value == stream->word_model[word];
}

static void check_words(struct stream *stream)
{
	const uint8_t *memory = stream_to(stream)->host->mem + stream->words;

	for (uint32_t i = 0; i < STREAM_WORDS; i++) {
		uint64_t value;

		memcpy(&value, memory + 8 * i, sizeof(value));
		if (!may_hold(stream, i, value))
			world_fail_stream(stream, "atomics of qp %06x do not add up",
					  stream_from(stream)->qpn);
	}
}

static void check_all_delivered(struct stream *stream)
{
	if (stream->conn->attr.type != URXE_QPT_RC)
		return; /* unreliable.c checks UC and UD */
	for (uint32_t i = 0; i < (stream->failed ? stream->succeeded : stream->n); i++)
		if (stream->request[i].consumes && !stream->request[i].delivered)
			world_fail_stream(stream, "message %u of qp %06x never arrived", i,
					  stream_from(stream)->qpn);
}

void check_memory(struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			struct stream *stream = &world->conn[i].stream[side];

			if (!stream->model)
				continue;
			check_target(stream);
			check_words(stream);
			check_all_delivered(stream);
		}
}
