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

/* Commands that vmw_pvrdma lacks, and reasons of more than one of its deviations. */
#define LACKING \
	"@(?(DE)ALLOC_MW|CREATE_AH|DESTROY_AH|RESIZE_CQ|REQ_NOTIFY_CQ|POST_SEND|*TACH_MCAST)"
#define NO_COMMAND     "the driver lacks commands that its provider does not need"
#define NO_IOVA        "the driver passes the virtual address only"
#define NO_AH_CHECK    "the provider makes address handles without a check"
#define NO_INLINE      "the provider ignores inline data, its size and its flag"
#define TAKES_REQUESTS "the device takes requests at once, so its ring has room for more"

static const struct deviation deviations[] = {
	/* librxe, the provider of urxe and rxe. Tests of rdma-core 65 name the driver urxe-65. */
	{"*rxe?(-65)", "qp/misuse_of_post", "*: a refused send is returned in bad_wr",
	 "librxe does not set bad_wr for a request that the kernel refuses"},
	{"*rxe?(-65)", "cq/ex_creation", "an unknown attribute is refused",
	 "librxe checks the completion fields only"},
	{"*rxe?(-65)", "cq/ex_polling", "an unknown attribute is refused",
	 "librxe checks no attribute when the CQ is empty"},
	{"*rxe", "qp_rc/posting_api", "inline data are written in one piece",
	 "librxe's ibv_wr_set_inline_data_list sets length 0, up to rdma-core 44"},
	{"*rxe-65", "device/not_of_this_provider", "ibv_advise_mr is refused",
	 "this librxe has it; Linux 6.1 does not know its ioctl command"},

	/* Linux' ib_core and ib_uverbs. */
	{"!(urxe*|vmw_pvrdma)", "srq/limit", "an unknown attribute is refused",
	 "neither the kernel nor a driver checks the mask of a SRQ change"},
	{"!(urxe*)", "qp_state/uc", "UC SQD to SQD takes AV",
	 "uverbs adds the port to a path (modify_qp), which Linux' table permits for RC only"},
	{"!(urxe*|vmw_pvrdma)", "qp_state/query", "a wrong current state is refused",
	 "Linux uses CUR_STATE as the state without a check"},
	{"!(urxe*)", "mr/address_space", RULE_HARMLESS,
	 "the kernel populates every page of a region until memory runs out"},
	{"!(urxe*)", "cm_ud/groups", "a unicast address cannot be joined",
	 "on RoCE rdma_cm joins any address"},
	{"!(urxe*)", "mr/bad_ranges", "a region without access permission is refused",
	 "up to Linux 6.1 the kernel pins pages with FOLL_FORCE, as for a debugger"},

	/* rdma_rxe of Linux 6.1. */
	{"rxe", "qp_state/u?", "?? goes to SQE by a local error of a send",
	 "rdma_rxe has no SQE: a local error leads to ERR"},
	{"rxe", "qp_state/ranges", "a P_Key index after the last is refused",
	 "rdma_rxe does not check the index"},
	{"rxe", "qp_state/ranges", "a path MTU below 256 is refused",
	 "rdma_rxe checks the maximum only"},
	{"rxe", "qp_state/ranges", "and not one more",
	 "rdma_rxe does not check the responder's limit"},
	{"rxe", "qp_state/query", "a query returns the state",
	 "rdma_rxe does not store the current state"},
	{"rxe", "qp_state/query", "a query returns the path",
	 "rdma_rxe does not store the service level"},
	{"rxe", "mr/zero_based", "a peer accesses a zero based region*",
	 "rdma_rxe ignores IBV_ACCESS_ZERO_BASED"},
	{"rxe", "mr/last_address", "a region beyond the last address*",
	 "rdma_rxe does not check the end of a region"},
	{"rxe", "mcast/delivery", "a member receives its group*",
	 "rdma_rxe does not loop multicast back"},
	{"rxe", "mcast/processes", "a member in another process*",
	 "rdma_rxe does not loop multicast back"},
	{"rxe", "mw/type_1", "a peer cannot write beyond the window",
	 "rdma_rxe checks the region's range, not the window's"},
	{"rxe", "mw/type_1", "a region with a bound window cannot be deregistered",
	 "rdma_rxe returns EINVAL"},
	{"rxe", "mw/type_2", "the receiver's completion has the invalidated key",
	 "rdma_rxe sets the kernel's flag, which means IP_CSUM_OK in libibverbs"},
	{"rxe", "mw/invalid_twice", RULE_HARMLESS,
	 "the kernel crashes in rxe_invalidate_mw (NULL pointer)"},
	{"rxe", "cq/ex_polling", "a poll after the last entry returns ENOENT",
	 "after an empty ibv_next_poll librxe's ibv_end_poll skips an entry"},
	{"rxe", "mw/atomic_write", "an* ATOMIC WRITE*",
	 "Linux 6.1 has no ATOMIC WRITE, although librxe offers it"},
	{"rxe", "mw/atomic_write", "the eight bytes of*",
	 "Linux 6.1 has no ATOMIC WRITE, although librxe offers it"},
	{"rxe", "qp/flushing", RULE_GOES_ON,
	 "receives posted in the error state are not flushed: librxe does not notify the kernel"},
	{"rxe", "qp_rc/local_errors", "an unknown local key: local *",
	 "rdma_rxe returns LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/local_errors", "a region of another PD: local *",
	 "rdma_rxe returns LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/local_errors", "a deregistered region: local *",
	 "rdma_rxe returns LOC_QP_OP_ERR"},
	{"rxe", "qp_rc/receive_errors", "a message longer than its receive: remote *",
	 "rdma_rxe treats the receive as malformed"},
	{"rxe", "qp_rc/receive_errors", "the receive of a too long message has a length error",
	 "rdma_rxe treats the receive as malformed"},
	{"rxe", "qp_rc/receive_errors", "a receive with a wrong key has a protection error",
	 "rdma_rxe treats the receive as malformed"},
	{"rxe", "q*/posting_api", RULE_GOES_ON,
	 "librxe does not mark inline data, so the kernel does not recognize them"},
	{"rxe", "qp_u?/local_error", "a request with a wrong local key fails",
	 "rdma_rxe returns LOC_QP_OP_ERR"},
	{"rxe", "qp_u?/local_error", "a local error leads to SQE*", "rdma_rxe has no SQE"},
	{"rxe", "qp_ud/local_error", "the receive queue still works after a local error",
	 "rdma_rxe has no SQE"},
	{"rxe", "qp_ud/lost", RULE_GOES_ON,
	 "rdma_rxe sends the Q_Key unchanged, also with the highest bit set"},
	{"rxe", "cq_event/unread_at_arming", "arming reports an unread completion*",
	 "rdma_rxe raises events of later completions only, as the specification permits"},
	{"rxe", "async/overflow", "the QP of an overflowed CQ: *",
	 "rdma_rxe raises the event of the CQ only"},
	{"rxe", "async/overflow", "the QP of an overflowed CQ is in ERR",
	 "rdma_rxe raises the event of the CQ only"},
	{"rxe", "async/last_receive", "a QP with an SRQ*", "rdma_rxe raises no such event"},
	{"rxe", "async/drained", RULE_GOES_ON,
	 "after SQD and RTS rdma_rxe does not send requests posted in SQD"},
	{"rxe", "async/established", "the first packet*", "rdma_rxe raises no such event"},
	{"rxe", "async/violated", "a forbidden access of a peer*", "rdma_rxe raises no such event"},

	/* vmw_pvrdma of Linux and its provider, on the PVRDMA device of `urxe vm`. */
	{"vmw_pvrdma", "command/lengths", LACKING " *", NO_COMMAND},
	{"vmw_pvrdma", "command/about_nothing", LACKING " *", NO_COMMAND},
	{"vmw_pvrdma", "command/doorbell", RULE_HARMLESS, NO_COMMAND},
	{"vmw_pvrdma", "command/about_nothing", "ALLOC_PD *",
	 "the driver answers into the buffer of the provider"},
	{"vmw_pvrdma", "device/attributes", "max_res_rd_atom is at least*",
	 "the driver does not report the device's max_res_rd_atom"},
	{"vmw_pvrdma", "pd/busy", RULE_HARMLESS,
	 "the kernel does not know the provider's address handles, so the PD is freed"},
	{"vmw_pvrdma", "mr/length_0", RULE_GOES_ON, "the driver refuses regions of length 0"},
	{"vmw_pvrdma", "mr/bad_ranges", "a region of length 0 @(within|in)*",
	 "the driver refuses regions of length 0"},
	{"vmw_pvrdma", "mr/zero_based", "a peer accesses a zero based region*", NO_IOVA},
	{"vmw_pvrdma", "mr/chosen_address", "a peer *", NO_IOVA},
	{"vmw_pvrdma", "mr/last_address", "a region @(at|beyond) *", NO_IOVA},
	{"vmw_pvrdma", "ah/misuse", "RoCE needs a global route*", NO_AH_CHECK},
	{"vmw_pvrdma", "ah/family", "source GID ?*", NO_AH_CHECK},
	{"vmw_pvrdma", "cq/sizes", "a CQ with 0 entries*", "the provider rounds sizes up"},
	{"vmw_pvrdma", "srq/sizes", "an SRQ of 0 requests*", "the provider rounds sizes up"},
	{"vmw_pvrdma", "cq_event/other_context", "an extended CQ *", "no extended CQs"},
	{"vmw_pvrdma", "srq/posting", "max_wr receives *", TAKES_REQUESTS},
	{"vmw_pvrdma", "srq/posting", "one more receive is refused", TAKES_REQUESTS},
	{"vmw_pvrdma", "qp/overfull", "*receive*", TAKES_REQUESTS},
	{"vmw_pvrdma", "qp/creation", "??: a query returns the *",
	 "the driver does not ask the device in RESET, and takes sq_sig_all for set"},
	{"vmw_pvrdma", "qp/size_limits", "??: more than max_*",
	 "the driver returns EFAULT if the device refuses a queue pair"},
	{"vmw_pvrdma", "qp/size_limits", "??: inline data of 1 MiB *", NO_INLINE},
	{"vmw_pvrdma", "qp/size_limits", "*room for inline data", NO_INLINE},
	{"vmw_pvrdma", "qp/misuse_of_post", "??: a send with too long inline*", NO_INLINE},
	{"vmw_pvrdma", "qp_rc/inline", "inline data *", NO_INLINE},
	{"vmw_pvrdma", "qp_state/retries", "an RNR timer may be above 31", "the driver refuses it"},
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
		if (!is_about(&deviations[i], driver, test) ||
		    fnmatch(deviations[i].rule, rule, FNM_EXTMATCH))
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
