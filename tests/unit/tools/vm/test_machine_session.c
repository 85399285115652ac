/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How often the device process attaches its session to a daemon that does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "common/clock.h"
#include "vm/host/machine_session.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static unsigned attempts;
static int answer;

/* The linker puts this function in the place of vnic_driver_attach_machine. */
int __wrap_vnic_driver_attach_machine(const char *run_dir, const uint8_t of[6],
				      const struct vnic_attach_welcome *was,
				      struct vnic_attach_welcome *now, struct vnic_driver **drv);

int __wrap_vnic_driver_attach_machine(const char *run_dir, const uint8_t of[6],
				      const struct vnic_attach_welcome *was,
				      struct vnic_attach_welcome *now, struct vnic_driver **drv)
{
	(void)run_dir, (void)of, (void)was, (void)now, (void)drv;
	attempts++;
	return answer;
}

static void look_for_a_minute(struct vm_session *s, uint64_t begin)
{
	attempts = 0;
	for (uint64_t now = begin; now < begin + 60 * NS_PER_SEC; now += NS_PER_SEC / 20)
		assert_true(vm_session_tick(s, now) > now);
}

static void test_a_silent_daemon_is_asked_rarely(void **state)
{
	const struct session_queries queries = {0};
	const uint64_t begin = now_ns();
	struct vm_session s;

	(void)state;
	answer = -ETIMEDOUT;
	assert_int_equal(vm_session_open(&s, "/nonexistent", mac, &queries), 0);
	look_for_a_minute(&s, begin);
	assert_in_range(attempts, 4, 8);
	/* Without a daemon no look waits, so they are frequent. */
	answer = -ENOENT;
	look_for_a_minute(&s, begin + 60 * NS_PER_SEC);
	assert_true(attempts > 100);
	vm_session_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_daemon_is_asked_rarely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
