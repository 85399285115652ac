/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The start of the daemon's event loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/clock.h"
#include "urxed/daemon.h"
#include "urxed/daemon_state.h"

void __wrap_monitor_log_counters(const struct monitor *m);
void __wrap_rdmacm_log_counters(const struct rdmacm *r);

/* A daemon that was not started has none. */
void __wrap_monitor_log_counters(const struct monitor *m)
{
	(void)m;
}

void __wrap_rdmacm_log_counters(const struct rdmacm *r)
{
	(void)r;
}

static void programs_may_claim_from_the_first_round_on(void **state)
{
	static struct daemon d = {.stop = true};
	const uint64_t before = now_ns();

	(void)state;
	d.sessions.claims_until = d.rdmacm.ucma.claim_deadline = UINT64_MAX;
	assert_int_equal(daemon_run(&d), 0);
	assert_in_range(d.sessions.claims_until, before + SESSION_CLAIM_NS,
			now_ns() + SESSION_CLAIM_NS);
	assert_in_range(d.rdmacm.ucma.claim_deadline, before + UCMA_CLAIM_TIME_NS,
			now_ns() + UCMA_CLAIM_TIME_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_may_claim_from_the_first_round_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
