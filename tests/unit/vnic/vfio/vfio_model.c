/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vfio_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static uint64_t model_read(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	(void)bar, (void)size;
	return ((struct vfio_model *)ctx)->state[offset];
}

static void model_write(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	struct vfio_model *m = ctx;

	(void)bar, (void)size;
	assert_false(m->stopped);
	m->state[offset] = (uint8_t)value;
	m->writes++;
}

static void model_reset(void *ctx)
{
	struct vfio_model *m = ctx;

	memset(m->state, 0, sizeof(m->state));
	m->resets++;
}

static void model_added(void *ctx, uint64_t addr, uint64_t size)
{
	struct vfio_model *m = ctx;

	assert_non_null(vnic_guest_memory_range(m->memory, addr, size, false));
	m->added++;
}

static void model_removed(void *ctx, uint64_t addr, uint64_t size)
{
	(void)addr, (void)size;
	((struct vfio_model *)ctx)->removed++;
}

static bool model_settled(void *ctx)
{
	return !((struct vfio_model *)ctx)->busy;
}

static void model_stop(void *ctx)
{
	struct vfio_model *m = ctx;

	assert_false(m->stopped);
	m->stopped = true;
	m->stops++;
}

static void model_start(void *ctx)
{
	struct vfio_model *m = ctx;

	assert_true(m->stopped);
	m->stopped = false;
	m->starts++;
}

static int model_save(void *ctx, uint8_t **stream, size_t *length)
{
	struct vfio_model *m = ctx;

	assert_true(m->stopped && !m->busy);
	if (m->save_error)
		return m->save_error;
	*length = m->saved;
	*stream = malloc(*length);
	memcpy(*stream, m->state, *length);
	return 0;
}

static int model_restore(void *ctx, const uint8_t *stream, size_t length)
{
	struct vfio_model *m = ctx;

	assert_true(m->stopped);
	if (m->restore_error)
		return m->restore_error;
	assert_int_equal(length, m->saved);
	memcpy(m->state, stream, length);
	return 0;
}

static void model_refused(void *ctx, int error)
{
	((struct vfio_model *)ctx)->refused = error;
}

static void model_logging(void *ctx, bool on)
{
	((struct vfio_model *)ctx)->logging = on;
}

static void model_mark(void *ctx)
{
	((struct vfio_model *)ctx)->marks++;
}

static const struct vnic_vfio_migration_ops migration = {
	.stop = model_stop,
	.start = model_start,
	.save = model_save,
	.restore = model_restore,
	.refused = model_refused,
	.logging = model_logging,
	.mark = model_mark,
};

void vfio_model_open(struct vfio_model *m, uint16_t device, bool migrates,
		     struct vnic_vfio_server **server)
{
	struct vnic_vfio_attr attr = {
		.function = {.vendor = 0x15ad,
			     .device = device,
			     .class_code = 0x020000,
			     .bar_size = {4096, 4096, 8192},
			     .vectors = 3,
			     .msix_bar = 2,
			     .pba_offset = 4096},
		.ops = {.read = model_read,
			.write = model_write,
			.reset = model_reset,
			.memory_added = model_added,
			.memory_removed = model_removed,
			.settled = model_settled},
		.migration = migrates ? &migration : NULL,
		.ctx = m,
	};

	memset(m, 0, sizeof(*m));
	m->saved = sizeof(m->state);
	assert_int_equal(vnic_guest_memory_create(&m->memory), 0);
	attr.memory = m->memory;
	assert_int_equal(vnic_vfio_server_create(&attr, server), 0);
}
