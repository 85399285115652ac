/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's event loop: its start, and how long it sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "urxed/daemon.h"
#include "urxed/daemon_state.h"

void __wrap_monitor_log_counters(const struct monitor *m);
void __wrap_rdmacm_log_counters(const struct rdmacm *r);
uint64_t __wrap_rdmacm_tick(struct rdmacm *r, uint64_t now);

/* A daemon that was not started has none. */
void __wrap_monitor_log_counters(const struct monitor *m)
{
	(void)m;
}

void __wrap_rdmacm_log_counters(const struct rdmacm *r)
{
	(void)r;
}

uint64_t __wrap_rdmacm_tick(struct rdmacm *r, uint64_t now)
{
	(void)r;
	(void)now;
	return UINT64_MAX;
}

static struct daemon waiting;
static uint64_t waits_ns; /* the time for which the loop waits for events */

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
			const sigset_t *mask);
bool __wrap_direct_uplink_fill(struct direct_uplink *d, const struct host *host);
void __wrap_sessions_update_uplink(struct sessions *sessions);
int __wrap_vnic_server_notice(struct vnic_server_client *client,
			      const struct vnic_attach_port *port);
int __wrap_vnic_server_notice_fd(const struct vnic_server_client *client);

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
			const sigset_t *mask)
{
	(void)fd;
	(void)events;
	(void)n;
	(void)mask;
	waits_ns = timeout ? (uint64_t)timeout->tv_sec * NS_PER_SEC + (uint64_t)timeout->tv_nsec
			   : UINT64_MAX;
	waiting.stop = true;
	return 0;
}

/* Another member of the bond carries the frames of processes. */
bool __wrap_direct_uplink_fill(struct direct_uplink *d, const struct host *host)
{
	(void)d;
	(void)host;
	return true;
}

void __wrap_sessions_update_uplink(struct sessions *sessions)
{
	(void)sessions;
}

/* The kernel has no memory for the notice. */
int __wrap_vnic_server_notice(struct vnic_server_client *client,
			      const struct vnic_attach_port *port)
{
	(void)client;
	(void)port;
	return -ENOBUFS;
}

int __wrap_vnic_server_notice_fd(const struct vnic_server_client *client)
{
	(void)client;
	return -1;
}

static void a_failed_notice_of_the_bond_ends_the_sleep(void **state)
{
	static struct session session;

	(void)state;
	TAILQ_INIT(&waiting.sw.turns);
	waiting.sessions.list = &session;
	waiting.sessions.n = 1;
	waiting.sessions.host = &waiting.host;
	waiting.sessions.sw = &waiting.sw;
	waiting.sessions.lease_store = &waiting.lease_store;
	waiting.sessions.claims_ended = true;
	/* Nothing else is due. */
	waiting.sessions.late_check = waiting.hca.scan_at = waiting.files.retry_at =
		waiting.neigh.next_due = UINT64_MAX;
	assert_int_equal(daemon_run(&waiting), 0);
	assert_in_range(waits_ns, 1, NS_PER_SEC - 1);
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
		cmocka_unit_test(a_failed_notice_of_the_bond_ends_the_sleep),
		cmocka_unit_test(programs_may_claim_from_the_first_round_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
