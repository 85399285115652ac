/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "deviation.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct deviation {
	const char *driver; /* as fnmatch(3) has it, each of these */
	const char *test;
	const char *rule; /* all rules that it matches are broken */
	const char *reason;
};

static const struct deviation deviations[] = {
	/* librxe of rdma-core 44, which both have. */
	{"*rxe", "qp/misuse_of_post", "*: what is not sent is named",
	 "librxe does not name a request that the kernel refuses"},
	{"*rxe", "cq/ex_creation", "an attribute that nobody knows is refused",
	 "librxe looks at the completion's fields only"},
	{"*rxe", "cq/ex_polling", "an attribute that nobody knows is refused",
	 "librxe looks at nothing when the CQ is empty"},
	{"*rxe", "cq/ex_polling", "and none twice",
	 "after ibv_next_poll has found nothing librxe's ibv_end_poll steps over an entry"},
	{"*rxe", "qp_rc/posting_api", "and written in one piece",
	 "librxe's ibv_wr_set_inline_data_list says that there are no bytes"},
};

#define N (sizeof(deviations) / sizeof(deviations[0]))

static bool seen[N];

static bool is_about(const struct deviation *d, const char *driver, const char *test)
{
	return !fnmatch(d->driver, driver, 0) && !fnmatch(d->test, test, 0);
}

const char *deviation_find(const char *driver, const char *test, const char *rule)
{
	for (size_t i = 0; i < N; i++) {
		if (!is_about(&deviations[i], driver, test) || fnmatch(deviations[i].rule, rule, 0))
			continue;
		seen[i] = true;
		return deviations[i].reason;
	}
	return NULL;
}

const char *deviation_unseen(const char *driver, const char *test, unsigned int *at)
{
	while (*at < N) {
		size_t i = (*at)++;

		if (is_about(&deviations[i], driver, test) && !seen[i])
			return deviations[i].rule;
	}
	return NULL;
}
