/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "function_state.h"

#include <stdlib.h>
#include <string.h>

#include <rxe/state_stream.h>

#include "vfio_server_private.h"

static const struct state_format format = {.name = "urxevfio", .version = 1};

/* Writes or reads the configuration space. -EINVAL: a stream whose read-only bits differ is of
 * another kind of function. */
static void config_record(struct state_stream *s, struct config_space *config)
{
	static const uint8_t zeros[CONFIG_SPACE_SIZE];
	uint8_t bytes[CONFIG_SPACE_SIZE];

	memcpy(bytes, config->bytes, sizeof(bytes));
	state_bytes(s, bytes, sizeof(bytes));
	/* Zeros come from earlier versions of urxe, whose servers had no configuration space before
	 * their first client. */
	if (!memcmp(bytes, zeros, sizeof(bytes)))
		return;
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		if ((bytes[i] ^ config->bytes[i]) & ~config->writable[i])
			state_fail(s, -EINVAL);
	if (s->restoring && !s->error)
		memcpy(config->bytes, bytes, sizeof(bytes));
}

static void pending_record(struct state_stream *s, struct irq_vectors *irq)
{
	uint64_t pending = irq->pending;

	state_u64(s, &pending);
	state_require(s, irq->count == 64 || !(pending >> irq->count));
	if (s->restoring && !s->error)
		irq->pending |= pending;
}

int function_state_save(struct vnic_vfio_server *server, uint8_t **stream, size_t *length)
{
	struct state_stream s;
	uint8_t *model = NULL;
	size_t size = 0;
	uint32_t n;
	int rc = server->attr.migration->save(server->attr.ctx, &model, &size);

	if (rc)
		return rc;
	stream_begin_save(&s, &format);
	config_record(&s, &server->config);
	pending_record(&s, &server->irq);
	state_require(&s, size <= UINT32_MAX);
	n = state_count(&s, (uint32_t)size, 1);
	state_bytes(&s, model, n);
	free(model);
	return stream_finish_save(&s, stream, length);
}

int function_state_restore(struct vnic_vfio_server *server, const uint8_t *stream, size_t length)
{
	struct config_space config = server->config;
	struct irq_vectors irq = server->irq;
	struct state_stream s;
	const uint8_t *model;
	uint32_t n;

	stream_begin_restore(&s, &format, stream, length);
	config_record(&s, &config);
	pending_record(&s, &irq);
	n = state_count(&s, 0, 1);
	model = state_take(&s, n);
	if (!stream_finish_restore(&s))
		s.error = server->attr.migration->restore(server->attr.ctx, model, n);
	if (!s.error) {
		server->config = config;
		server->irq.pending = irq.pending;
	}
	server_apply_master(server);
	return s.error;
}
