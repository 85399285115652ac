/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams of earlier versions of the format, kept as files: vVERSION/SCENE-SIDE. Each scene is
 * built, its devices are replaced by those of the files, and it goes on to the same end.
 *
 * `test_rxe_state_fixtures --write DIRECTORY` writes the files of the current version.
 */
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "move.h"
#include "require.h"
#include "scene.h"

#define PATH_LEN 512
#define MAX_FILE 262144

enum { TAG_SEND_CQ = 1, TAG_RECV_CQ, TAG_OTHER };

/* The node that a stream belongs to, and its scene. */
struct side {
	struct scene *scene;
	struct node *node;
	unsigned side;
	uint64_t base; /* address of the memory when it was saved */
	struct urxe_extent extents[8];
};

static bool file_name(char path[PATH_LEN], const char *directory, const struct scene *s,
		      unsigned side)
{
	return snprintf(path, PATH_LEN, "%s/%s-%u", directory, s->name, side) < PATH_LEN;
}

/* --- Writing. */

static uint64_t on_tag(void *arg, enum urxe_state_kind kind, void *ctx)
{
	const struct node *node = arg;

	if (kind != URXE_STATE_CQ)
		return TAG_OTHER;
	return ctx == &node->send_cq ? TAG_SEND_CQ : TAG_RECV_CQ;
}

static void write_file(const char *directory, struct scene *s, unsigned side)
{
	const struct urxe_state_save how = {
		.arg = s->pair->node[side], .tag = on_tag, .completion = move_completion};
	char path[PATH_LEN];
	uint8_t *stream;
	size_t length;
	FILE *file;

	require(file_name(path, directory, s, side));
	require(urxe_state_save(s->pair->node[side]->dev, s->pair->now, &how, &stream, &length) ==
		0);
	file = fopen(path, "wb");
	require(file && fwrite(stream, 1, length, file) == length && !fclose(file));
	urxe_state_free(stream);
}

static int write_all(const char *directory)
{
	struct scene *s;

	for (unsigned i = 0; (s = scene_open(i)); i++) {
		for (unsigned side = 0; side < 2; side++)
			write_file(directory, s, side);
		scene_close(s);
	}
	return 0;
}

/* --- Reading. */

static struct endpoint *find_end(const struct side *side, uint32_t qpn)
{
	for (uint32_t i = 0; i < side->scene->n; i++)
		if (side->scene->end[i][side->side].qpn == qpn)
			return &side->scene->end[i][side->side];
	return NULL;
}

static void *on_context(void *arg, const struct urxe_state_object *object)
{
	struct side *side = arg;
	struct endpoint *end;
	struct node_cq *cq;

	switch (object->kind) {
	case URXE_STATE_CQ:
		cq = object->tag == TAG_SEND_CQ ? &side->node->send_cq : &side->node->recv_cq;
		cq->head = cq->tail = 0;
		return cq;
	case URXE_STATE_SRQ: return &side->scene->srq_queue;
	default:
		end = find_end(side, object->id);
		/* A QP that the scene has replaced. */
		return end ? &end->queue : &side->scene->end[0][side->side].queue;
	}
}

/* The first region is that of all of the memory. */
static int on_memory(void *arg, struct urxe_state_region *region)
{
	struct side *side = arg;

	require(region->n_extents && region->n_extents <= 8);
	if (!side->base)
		side->base = (uintptr_t)region->extents[0].addr;
	for (uint32_t i = 0; i < region->n_extents; i++) {
		side->extents[i] = region->extents[i];
		if (side->extents[i].addr)
			side->extents[i].addr =
				side->node->mem + ((uintptr_t)side->extents[i].addr - side->base);
	}
	region->extents = side->extents;
	return 0;
}

static int on_completion(void *arg, void *cq_ctx, const struct urxe_wc *wc)
{
	struct node_cq *cq = cq_ctx;

	(void)arg;
	cq->ring[cq->tail++] = *wc;
	return 0;
}

static void on_restored(void *arg, const struct urxe_state_object *object)
{
	const struct side *side = arg;
	struct endpoint *end = object->kind == URXE_STATE_QP ? find_end(side, object->id) : NULL;

	if (end)
		end->qp = object->qp;
}

static void restore_file(struct scene *s, unsigned number, const char *directory)
{
	static uint8_t stream[MAX_FILE];
	struct side side = {.scene = s, .node = s->pair->node[number], .side = number};
	const struct urxe_state_restore how = {
		.arg = &side,
		.context = on_context,
		.memory = on_memory,
		.completion = on_completion,
		.restored = on_restored,
	};
	struct urxe_state_attr saved;
	char path[PATH_LEN];
	size_t length;
	FILE *file;

	assert_true(file_name(path, directory, s, number));
	file = fopen(path, "rb");
	assert_non_null(file);
	length = fread(stream, 1, sizeof(stream), file);
	fclose(file);
	assert_int_equal(urxe_state_read_attr(stream, length, &saved), 0);
	saved.attr.ctx = side.node;
	saved.attr.ops = side.node->ops;
	urxe_dev_destroy(side.node->dev);
	assert_int_equal(urxe_state_restore(&saved.attr, s->pair->now, &how, stream, length,
					    &side.node->dev),
			 0);
}

static void expect_same_completions(struct node_cq *cq, struct node_cq *other)
{
	assert_int_equal(cq->tail - cq->head, other->tail - other->head);
	for (uint32_t i = 0; i < cq->tail - cq->head; i++) {
		const struct urxe_wc *a = &cq->ring[cq->head + i];
		const struct urxe_wc *b = &other->ring[other->head + i];

		assert_int_equal(a->wr_id, b->wr_id);
		assert_int_equal(a->status, b->status);
		assert_int_equal(a->qpn, b->qpn);
	}
}

static void check_version(unsigned version, const char *directory)
{
	struct scene *s, *fresh;

	for (unsigned i = 0; (s = scene_open(i)); i++) {
		if (s->since > version) {
			scene_close(s);
			continue;
		}
		fresh = scene_open(i);
		for (unsigned side = 0; side < 2; side++)
			restore_file(s, side, directory);
		pair_run(s->pair, s->pair->now + 1000000);
		pair_run(fresh->pair, fresh->pair->now + 1000000);
		for (unsigned side = 0; side < 2; side++) {
			struct node *node = s->pair->node[side], *other = fresh->pair->node[side];

			expect_same_completions(&node->send_cq, &other->send_cq);
			expect_same_completions(&node->recv_cq, &other->recv_cq);
			assert_memory_equal(node->mem, other->mem, node->mem_size);
		}
		scene_close(s);
		scene_close(fresh);
	}
}

/* A new version without files fails. */
static void test_streams_of_each_version_are_restored(void **state)
{
	char directory[PATH_LEN];

	(void)state;
	for (unsigned version = 1; version <= URXE_STATE_VERSION; version++) {
		snprintf(directory, sizeof(directory), STATE_FIXTURES "/v%u", version);
		check_version(version, directory);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams_of_each_version_are_restored),
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_all(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
