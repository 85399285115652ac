/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/image/distinct.h"

#include <errno.h>
#include <stdlib.h>

#include "checkpoint/image/checkpoint_error.h"

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

/* `what`: the plural of the objects that have the numbers. Sorts the numbers. */
static void require_distinct(struct state_stream *s, const char *what, uint64_t *numbers,
			     uint32_t n)
{
	if (n)
		qsort(numbers, n, sizeof(*numbers), compare_numbers);
	for (uint32_t i = 1; i < n; i++) {
		if (numbers[i] != numbers[i - 1])
			continue;
		state_fail(s, checkpoint_fail(-EBADMSG, "the stream has two %s with number %#x",
					      what, (uint32_t)numbers[i]));
		return;
	}
}

/* Requires that no two records of the list have the same value of the expression `number`, in which
 * `r` is the record. */
#define REQUIRE_DISTINCT(s, image, list, kind, what, number)                       \
	do {                                                                       \
		const uint32_t n = (image)->n[kind];                               \
		uint64_t *numbers = calloc((size_t)n + 1, sizeof(*numbers));       \
                                                                                   \
		for (uint32_t i = 0; numbers && i < n; i++) {                      \
			const __typeof__((image)->list[0]) *r = &(image)->list[i]; \
                                                                                   \
			numbers[i] = (number);                                     \
		}                                                                  \
		if (numbers)                                                       \
			require_distinct(s, what, numbers, n);                     \
		else                                                               \
			state_fail(s, -ENOMEM);                                    \
		free(numbers);                                                     \
	} while (0)

void image_require_distinct(struct state_stream *s, const struct image *image)
{
	if (s->error)
		return;
	REQUIRE_DISTINCT(s, image, pds, CHECKPOINT_PD, "protection domains", r->number);
	REQUIRE_DISTINCT(s, image, qps, CHECKPOINT_QP, "queue pairs", r->qpn);
	REQUIRE_DISTINCT(s, image, descriptors, CHECKPOINT_DESCRIPTOR, "descriptors", r->number);
	REQUIRE_DISTINCT(s, image, rdmacm_ids, CHECKPOINT_RDMACM_ID, "rdma_cm IDs",
			 (uint64_t)r->device << 32 | r->number);
}
