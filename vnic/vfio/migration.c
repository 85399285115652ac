/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* States of a migration, and the data that the client reads and writes in them. */
#include "migration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "function_state.h"
#include "vfio_server_private.h"

/* Bytes of a stream that a client may write: more than the state of a full device takes, which has
 * 16 bytes for each of up to 128 Mi pieces of memory. */
#define STREAM_MAX UINT64_C(0xffffffff)

/* next_state_towards[from][to]: the first state on the way; MIGRATION_ERROR: no way exists. */
static const uint8_t next_state_towards[MIGRATION_STATES][MIGRATION_STATES] = {
	[MIGRATION_STOP] = {[MIGRATION_RUNNING] = MIGRATION_RUNNING,
			    [MIGRATION_STOP_COPY] = MIGRATION_STOP_COPY,
			    [MIGRATION_RESUMING] = MIGRATION_RESUMING,
			    [MIGRATION_PRE_COPY] = MIGRATION_RUNNING},
	[MIGRATION_RUNNING] = {[MIGRATION_STOP] = MIGRATION_STOP,
			       [MIGRATION_STOP_COPY] = MIGRATION_STOP,
			       [MIGRATION_RESUMING] = MIGRATION_STOP,
			       [MIGRATION_PRE_COPY] = MIGRATION_PRE_COPY},
	/* No way leads by STOP and RUNNING to PRE_COPY: VFIO forbids it. */
	[MIGRATION_STOP_COPY] = {[MIGRATION_STOP] = MIGRATION_STOP,
				 [MIGRATION_RUNNING] = MIGRATION_STOP,
				 [MIGRATION_RESUMING] = MIGRATION_STOP},
	[MIGRATION_RESUMING] = {[MIGRATION_STOP] = MIGRATION_STOP,
				[MIGRATION_RUNNING] = MIGRATION_STOP,
				[MIGRATION_STOP_COPY] = MIGRATION_STOP,
				[MIGRATION_PRE_COPY] = MIGRATION_STOP},
	/* STOP_COPY may be the end of a way, but no step of one. */
	[MIGRATION_PRE_COPY] = {[MIGRATION_STOP] = MIGRATION_RUNNING,
				[MIGRATION_RUNNING] = MIGRATION_RUNNING,
				[MIGRATION_STOP_COPY] = MIGRATION_STOP_COPY,
				[MIGRATION_RESUMING] = MIGRATION_RUNNING},
};

static const struct vnic_vfio_migration_ops *ops_of(const struct vnic_vfio_server *server)
{
	return server->attr.migration;
}

static void drop_stream(struct migration *m)
{
	free(m->stream);
	m->stream = NULL;
	m->length = m->at = m->room = 0;
	m->save_due = false;
}

static void set_logging(struct vnic_vfio_server *server, bool on)
{
	struct migration *m = &server->migration;

	if (on)
		vnic_guest_memory_start_log(server->attr.memory);
	else
		vnic_guest_memory_stop_log(server->attr.memory);
	if (m->logging != on)
		ops_of(server)->logging(server->attr.ctx, on);
	m->logging = on;
}

bool migration_is_running(const struct vnic_vfio_server *server)
{
	return server->migration.state == MIGRATION_RUNNING ||
	       server->migration.state == MIGRATION_PRE_COPY;
}

void migration_reset(struct vnic_vfio_server *server)
{
	struct migration *m = &server->migration;
	const bool was_running = migration_is_running(server);

	drop_stream(m);
	m->state = MIGRATION_RUNNING;
	if (ops_of(server) && !was_running)
		ops_of(server)->start(server->attr.ctx);
}

void migration_end(struct vnic_vfio_server *server)
{
	if (server->migration.logging)
		set_logging(server, false);
	migration_reset(server);
}

int migration_save(struct vnic_vfio_server *server)
{
	struct migration *m = &server->migration;
	int rc;

	if (!m->save_due)
		return 0;
	m->save_due = false;
	rc = function_state_save(server, &m->stream, &m->length);
	if (rc)
		m->state = MIGRATION_STOP;
	return rc;
}

/* Restores the model from the stream, which the client has written as a whole. Returns as
 * function_state_restore. */
static int finish_resume(struct vnic_vfio_server *server)
{
	struct migration *m = &server->migration;
	const int rc = function_state_restore(server, m->stream, m->length);

	drop_stream(m);
	if (rc && ops_of(server)->refused)
		ops_of(server)->refused(server->attr.ctx, rc);
	return rc;
}

/* Changes to a neighbouring state. 0; or an error of finish_resume: the function's state is then
 * MIGRATION_ERROR. */
static int change_state_one_step(struct vnic_vfio_server *server, enum migration_state to)
{
	const struct vnic_vfio_migration_ops *ops = ops_of(server);
	struct migration *m = &server->migration;
	const enum migration_state from = m->state;
	int rc = 0;

	if (from == MIGRATION_RESUMING)
		rc = finish_resume(server);
	else if (from == MIGRATION_STOP_COPY)
		drop_stream(m);
	m->state = rc ? MIGRATION_ERROR : to;
	if (rc)
		return rc;
	if (to == MIGRATION_STOP_COPY)
		m->save_due = true;
	if ((from == MIGRATION_RUNNING && to == MIGRATION_STOP) ||
	    (from == MIGRATION_PRE_COPY && to == MIGRATION_STOP_COPY))
		ops->stop(server->attr.ctx);
	else if (from == MIGRATION_STOP && to == MIGRATION_RUNNING) {
		ops->start(server->attr.ctx);
		irq_raise_pending(&server->irq);
	}
	return 0;
}

static int set_state(struct vnic_vfio_server *server, uint32_t to)
{
	struct migration *m = &server->migration;
	int rc = 0;

	if (to == m->state && to != MIGRATION_ERROR)
		return 0;
	if (to >= MIGRATION_STATES || !next_state_towards[m->state][to])
		return -EINVAL;
	while (!rc && m->state != to)
		rc = change_state_one_step(server, next_state_towards[m->state][to]);
	return rc;
}

/* --- DEVICE_FEATURE */

#define FEATURE_MIGRATION    1u
#define FEATURE_DEVICE_STATE 2u
#define FEATURE_LOG_START    6u
#define FEATURE_LOG_STOP     7u
#define FEATURE_LOG_REPORT   8u
#define FEATURES             9u
#define HAS_STOP_COPY        UINT64_C(1)
#define HAS_PRE_COPY         UINT64_C(4)

/* The data behind the header of a feature; `reply` already has a copy of those of the command. */
struct feature_data {
	uint32_t size; /* bytes of the command's data */
	uint32_t room; /* bytes of room for the reply's data; at most what the client takes */
	uint8_t *reply;
};

/* Each of these methods returns the length of the reply's data, or a negative errno value. */

static int get_migration(struct vnic_vfio_server *server, const struct feature_data *data)
{
	const uint64_t flags = HAS_STOP_COPY | HAS_PRE_COPY;

	(void)server;
	if (data->room < sizeof(flags))
		return -EINVAL;
	memcpy(data->reply, &flags, sizeof(flags));
	return sizeof(flags);
}

static int get_state(struct vnic_vfio_server *server, const struct feature_data *data)
{
	const struct vfio_user_device_state state = {.state = server->migration.state};

	if (data->room < sizeof(state))
		return -EINVAL;
	memcpy(data->reply, &state, sizeof(state));
	return sizeof(state);
}

static int set_device_state(struct vnic_vfio_server *server, const struct feature_data *data)
{
	struct vfio_user_device_state state;
	int rc;

	if (data->size != sizeof(state))
		return -EINVAL;
	memcpy(&state, data->reply, sizeof(state));
	rc = set_state(server, state.state);
	return rc ?: (int)sizeof(state);
}

static int start_log(struct vnic_vfio_server *server, const struct feature_data *data)
{
	struct vfio_user_log_control control;
	struct vfio_user_log_range range;

	if (data->size < sizeof(control) || server->migration.logging)
		return -EINVAL;
	memcpy(&control, data->reply, sizeof(control));
	if ((data->size - sizeof(control)) / sizeof(range) != control.n_ranges ||
	    (data->size - sizeof(control)) % sizeof(range) || !control.page_size ||
	    control.page_size & (control.page_size - 1))
		return -EINVAL;
	for (uint32_t i = 0; i < control.n_ranges; i++) {
		memcpy(&range, data->reply + sizeof(control) + i * sizeof(range), sizeof(range));
		if (!range.length || range.length - 1 > UINT64_MAX - range.iova)
			return -EINVAL;
	}
	/* The log covers the whole memory, not only the ranges that the client names. */
	set_logging(server, true);
	control.page_size = MIGRATION_LOG_PAGE;
	memcpy(data->reply, &control, sizeof(control));
	return (int)data->size;
}

static int stop_log(struct vnic_vfio_server *server, const struct feature_data *data)
{
	if (data->size || !server->migration.logging)
		return -EINVAL;
	set_logging(server, false);
	return 0;
}

static int report_log(struct vnic_vfio_server *server, const struct feature_data *data)
{
	struct vfio_user_log_report report;
	uint64_t bits, bytes, words[VFIO_USER_DATA_MAX / 8] = {0};

	if (data->size != sizeof(report) || !server->migration.logging)
		return -EINVAL;
	memcpy(&report, data->reply, sizeof(report));
	if (!report.page_size || report.page_size & (report.page_size - 1) || !report.length ||
	    report.length - 1 > UINT64_MAX - report.iova)
		return -EINVAL;
	bits = (report.length - 1) / report.page_size + 1;
	if (bits > sizeof(words) * 8)
		return -EINVAL;
	bytes = (bits + 63) / 64 * 8;
	if (bytes > data->room - sizeof(report))
		return -EINVAL;
	ops_of(server)->mark(server->attr.ctx);
	vnic_guest_memory_take_log(server->attr.memory, report.iova, report.length,
				   report.page_size, words);
	memcpy(data->reply + sizeof(report), words, bytes);
	return (int)(sizeof(report) + bytes);
}

static const struct feature {
	int (*get)(struct vnic_vfio_server *server, const struct feature_data *data);
	int (*set)(struct vnic_vfio_server *server, const struct feature_data *data);
} features[FEATURES] = {
	[FEATURE_MIGRATION] = {.get = get_migration},
	[FEATURE_DEVICE_STATE] = {get_state, set_device_state},
	[FEATURE_LOG_START] = {.set = start_log},
	[FEATURE_LOG_STOP] = {.set = stop_log},
	[FEATURE_LOG_REPORT] = {.get = report_log},
};

/* Whether the feature has the methods that the flags name. */
static bool methods_exist(const struct feature *feature, uint32_t flags)
{
	return (!(flags & VFIO_USER_FEATURE_GET) || feature->get) &&
	       (!(flags & VFIO_USER_FEATURE_SET) || feature->set);
}

static const struct feature *find_feature(const struct vnic_vfio_server *server, uint32_t flags)
{
	const uint32_t number = flags & VFIO_USER_FEATURE_NUMBER;
	const struct feature *feature = number < FEATURES ? &features[number] : NULL;

	return ops_of(server) && feature && (feature->get || feature->set) ? feature : NULL;
}

/* Runs the method that the header names. The reply has a copy of the command, of `size` bytes, and
 * room for `room` bytes. Returns the length of the reply, or a negative errno value. */
static int run_feature(struct vnic_vfio_server *server, const struct feature *feature,
		       struct vfio_user_feature *header, uint32_t size, uint8_t *reply,
		       uint32_t room)
{
	const uint32_t most = header->argsz < room ? header->argsz : room;
	const struct feature_data data = {size - (uint32_t)sizeof(*header),
					  most - (uint32_t)sizeof(*header),
					  reply + sizeof(*header)};
	const int n = header->flags & VFIO_USER_FEATURE_GET ? feature->get(server, &data)
							    : feature->set(server, &data);

	if (n < 0)
		return n;
	header->argsz = (uint32_t)sizeof(*header) + (uint32_t)n;
	memcpy(reply, header, sizeof(*header));
	return (int)header->argsz;
}

int migration_feature(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size,
		      uint8_t *reply, uint32_t room)
{
	const uint32_t methods = VFIO_USER_FEATURE_GET | VFIO_USER_FEATURE_SET;
	struct vfio_user_feature header;
	const struct feature *feature;

	memcpy(&header, body, sizeof(header));
	feature = find_feature(server, header.flags);
	if (!feature)
		return -ENOTTY;
	if (header.argsz < size ||
	    header.flags & ~(VFIO_USER_FEATURE_NUMBER | VFIO_USER_FEATURE_PROBE | methods) ||
	    size > room)
		return -EINVAL;
	memcpy(reply, body, size);
	if (header.flags & VFIO_USER_FEATURE_PROBE)
		return methods_exist(feature, header.flags) ? (int)size : -ENOTTY;
	if ((header.flags & methods) == methods || !(header.flags & methods))
		return -EINVAL;
	if (!methods_exist(feature, header.flags))
		return -ENOTTY;
	return run_feature(server, feature, &header, size, reply, room);
}

/* --- Migration data */

int migration_read(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size,
		   uint8_t *reply, uint32_t room)
{
	struct migration *m = &server->migration;
	struct vfio_user_migration_data data;

	memcpy(&data, body, sizeof(data));
	if (size != sizeof(data) || data.size > VFIO_USER_DATA_MAX ||
	    data.size > room - sizeof(data) ||
	    (m->state != MIGRATION_STOP_COPY && m->state != MIGRATION_PRE_COPY))
		return -EINVAL;
	/* PRE_COPY has no data: the state of connections changes with each packet. */
	if (data.size > m->length - m->at)
		data.size = (uint32_t)(m->length - m->at);
	if (data.size)
		memcpy(reply + sizeof(data), m->stream + m->at, data.size);
	m->at += data.size;
	data.argsz = (uint32_t)sizeof(data) + data.size;
	memcpy(reply, &data, sizeof(data));
	return (int)data.argsz;
}

static int make_migration_room(struct migration *m, uint32_t size)
{
	size_t room = m->room ? m->room : VFIO_USER_DATA_MAX;
	uint8_t *grown;

	if (size > STREAM_MAX - m->length)
		return -EFBIG;
	while (room - m->length < size)
		room *= 2;
	if (room == m->room)
		return 0;
	grown = realloc(m->stream, room);
	if (!grown)
		return -ENOMEM;
	m->stream = grown;
	m->room = room;
	return 0;
}

int migration_write(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size)
{
	struct migration *m = &server->migration;
	struct vfio_user_migration_data data;
	int rc;

	memcpy(&data, body, sizeof(data));
	if (data.size != size - sizeof(data) || data.size > VFIO_USER_DATA_MAX ||
	    m->state != MIGRATION_RESUMING)
		return -EINVAL;
	rc = make_migration_room(m, data.size);
	if (rc)
		return rc;
	memcpy(m->stream + m->length, body + sizeof(data), data.size);
	m->length += data.size;
	return 0;
}
