/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "deviation.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "rule.h"

struct deviation {
	const char *driver; /* this and the next two: patterns of fnmatch(3) */
	const char *test;
	const char *rule; /* the driver breaks every rule that matches */
	const char *reason;
};

static const struct deviation deviations[] = {
	/* librxe, the provider of urxe and rxe. Tests of rdma-core 65 name the driver urxe-65. */
	{"*rxe?(-65)", "qp/misuse_of_post", "*: a refused send is returned in bad_wr",
	 "librxe does not name a request that the kernel refuses"},
	{"*rxe?(-65)", "cq/ex_creation", "an unknown attribute is refused",
	 "librxe looks at the completion's fields only"},
	{"*rxe?(-65)", "cq/ex_polling", "an unknown attribute is refused",
	 "librxe looks at nothing when the CQ is empty"},
	{"*rxe", "qp_rc/posting_api", "inline data are written in one piece",
	 "librxe's ibv_wr_set_inline_data_list says that there are no bytes, up to rdma-core 44"},
	{"*rxe-65", "device/not_of_this_provider", "ibv_advise_mr is refused",
	 "librxe asks by ioctl, which urxe0 has not, and Linux 6.1 has no such command"},

	/* Linux' ib_core and ib_uverbs. */
	{"!(urxe*)", "srq/limit", "an unknown attribute is refused",
	 "neither the kernel nor a driver looks at the mask of a SRQ's change"},
	{"!(urxe*)", "qp_state/uc", "UC SQD to SQD takes AV",
	 "uverbs adds the port to a path (modify_qp), which Linux' table takes from RC only"},
	{"!(urxe*)", "qp_state/query", "a wrong current state is refused",
	 "Linux takes CUR_STATE for the state, whatever it is"},
	{"!(urxe*)", "mr/address_space", RULE_HARMLESS,
	 "the kernel makes every page of a region present, until there is no memory left"},
	{"!(urxe*)", "cm_ud/groups", "a unicast address cannot be joined",
	 "on RoCE rdma_cm joins whatever it is told"},
	{"!(urxe*)", "mr/bad_ranges", "a region without access permission is refused",
	 "pages are pinned by force, as for a debugger, until Linux 6.1"},

	/* rdma_rxe of Linux 6.1. */
	{"rxe", "qp_state/u?", "?? goes to SQE by a local error of a send",
	 "it has no SQE: such an error leads to ERR"},
	{"rxe", "qp_state/ranges", "a P_Key index after the last is refused",
	 "it looks at no index"},
	{"rxe", "qp_state/ranges", "a path MTU below 256 is refused",
	 "it compares with the greatest only"},
	{"rxe", "qp_state/ranges", "and not one more", "it looks at no limit of the responder's"},
	{"rxe", "qp_state/ranges", "RNR retry count 8 is refused", "it looks at no retry count"},
	{"rxe", "qp_state/ranges", "retry count 8 is refused", "it looks at no retry count"},
	{"rxe", "qp_state/ranges", "RNR timer 32 is refused", "it looks at no RNR timer"},
	{"rxe", "qp_state/query", "a query returns the state",
	 "it does not keep the current state"},
	{"rxe", "qp_state/query", "a query returns the path", "it does not keep the service level"},
	{"rxe", "mr/last_address", "a region beyond the last address*",
	 "it looks at no end of a region"},
	{"rxe", "mcast/delivery", "a member receives its group*",
	 "it does not send groups to itself"},
	{"rxe", "mcast/processes", "a member in another process*",
	 "it does not send groups to itself"},
	{"rxe", "mw/type_1", "a peer cannot write beyond the window",
	 "it looks at the region's range, not at the window's"},
	{"rxe", "mw/type_1", "a region with a bound window cannot be deregistered",
	 "it says EINVAL"},
	{"rxe", "mw/type_2", "the receiver's completion has the invalidated key",
	 "its flag for that has the kernel's value, which libibverbs takes for IP_CSUM_OK"},
	{"rxe", "mw/invalid_twice", RULE_HARMLESS,
	 "the kernel stops in rxe_invalidate_mw (NULL pointer)"},
	{"rxe", "cq/ex_polling", "a second poll returns no entry again",
	 "after ibv_next_poll has found nothing librxe's ibv_end_poll steps over an entry"},
	{"rxe", "mw/atomic_write", "an* ATOMIC WRITE*",
	 "Linux 6.1 has none; librxe offers it all the same"},
	{"rxe", "mw/atomic_write", "the eight bytes of*",
	 "Linux 6.1 has none; librxe offers it all the same"},
	{"rxe", "qp/flushing", RULE_GOES_ON,
	 "receives posted in the error state are not flushed: librxe tells nobody of them"},
	{"rxe", "qp_rc/local_errors", "an unknown local key: local *", "it says LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/local_errors", "a region of another PD: local *", "it says LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/local_errors", "a deregistered region: local *", "it says LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/receive_errors", "a message longer than its receive: remote *",
	 "it takes it for a malformed receive"},
	{"rxe", "qp_rc/receive_errors", "the receive of a too long message has a length error",
	 "it takes it for a malformed receive"},
	{"rxe", "qp_rc/receive_errors", "a receive with a wrong key has a protection error",
	 "it takes it for a malformed receive"},
	{"rxe", "q*/posting_api", RULE_GOES_ON,
	 "librxe does not say that data are inline, and the kernel does not find out"},
	{"rxe", "qp_u?/local_error", "a request with a wrong local key fails",
	 "it says LOC_QP_OP_ERR"},
	{"rxe", "qp_u?/local_error", "a local error leads to SQE*", "it has no SQE"},
	{"rxe", "qp_ud/local_error", "the receive queue still works after a local error",
	 "it has no SQE"},
	{"rxe", "qp_ud/lost", RULE_GOES_ON, "it sends a Q_Key as it is, whatever its highest bit"},
	{"rxe", "async/overflow", "the QP of an overflowed CQ: *", "it tells the CQ only"},
	{"rxe", "async/overflow", "the QP of an overflowed CQ is in ERR", "it tells the CQ only"},
	{"rxe", "async/last_receive", "a QP with an SRQ*", "it raises no such event"},
	{"rxe", "async/drained", RULE_GOES_ON,
	 "RTS after SQD does not send what was posted in between"},
	{"rxe", "async/established", "the first packet*", "it raises no such event"},
	{"rxe", "async/violated", "a forbidden access of a peer*", "it raises no such event"},
};

#define N (sizeof(deviations) / sizeof(deviations[0]))

static bool seen[N];

static bool is_about(const struct deviation *d, const char *driver, const char *test)
{
	return !fnmatch(d->driver, driver, FNM_EXTMATCH) && !fnmatch(d->test, test, 0);
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
