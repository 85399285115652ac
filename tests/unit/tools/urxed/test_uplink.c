/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An uplink that is opened again makes its settings again, or is closed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "urxed/uplink/uplink.h"

static const uint8_t another_mac[ETHER_MAC_LEN] = {2, 0, 0, 0, 0, 9};

static struct {
	struct uplink uplink;
	struct netdev *far_end;
	int refuses_all, refuses_mac; /* 0, or the errno value with which the port refuses */
	bool hears_all;
	uint32_t macs;
} w;

/* --- In place of urxed's ports */

int port_open(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR])
{
	struct netdev *ends[2];

	(void)spec;
	(void)error;
	assert_int_equal(netdev_mem_pair(1, ends), 0);
	*port = ends[0];
	if (w.far_end)
		netdev_close(w.far_end);
	w.far_end = ends[1];
	return 0;
}

bool port_is_xdp(const char *spec)
{
	(void)spec;
	return false;
}

int vhost_process_start(struct vhost_process *p, const char *spec, uint32_t mtu,
			char error[VHOST_PROCESS_ERROR])
{
	(void)p;
	(void)spec;
	(void)mtu;
	(void)error;
	return -EINVAL;
}

void vhost_process_stop(struct vhost_process *p)
{
	(void)p;
}

int __wrap_netdev_set_promiscuous(struct netdev *port, bool on);
int __wrap_netdev_add_mac(struct netdev *port, const uint8_t mac[6]);

int __wrap_netdev_set_promiscuous(struct netdev *port, bool on)
{
	assert_non_null(port);
	w.hears_all = on && !w.refuses_all;
	return -w.refuses_all;
}

int __wrap_netdev_add_mac(struct netdev *port, const uint8_t mac[6])
{
	assert_non_null(port);
	assert_memory_equal(mac, another_mac, sizeof(another_mac));
	w.macs += !w.refuses_mac;
	return -w.refuses_mac;
}

static int open_uplink(void **state)
{
	static const struct uplink_impair none;
	char error[UPLINK_ERROR];

	(void)state;
	memset(&w, 0, sizeof(w));
	return uplink_open(&w.uplink, "mem:", &none, NULL, error) ||
	       uplink_hear_all(&w.uplink, error) || uplink_hear_mac(&w.uplink, another_mac, error);
}

static int close_uplink(void **state)
{
	(void)state;
	uplink_close(&w.uplink);
	netdev_close(w.far_end);
	return 0;
}

/* --- Tests */

static void reopen_makes_the_settings_again(void **state)
{
	char error[UPLINK_ERROR];

	(void)state;
	w.hears_all = false;
	w.macs = 0;
	assert_int_equal(uplink_reopen(&w.uplink, error), 0);
	assert_non_null(w.uplink.port);
	assert_true(w.hears_all);
	assert_int_equal(w.macs, 1);
}

static void expect_closed_until_settings_succeed(void **state, int refused)
{
	const uint16_t mtu = w.uplink.mtu;
	char error[UPLINK_ERROR];

	assert_int_equal(uplink_reopen(&w.uplink, error), -refused);
	assert_null(w.uplink.port);
	assert_int_equal(w.uplink.mtu, mtu);
	w.refuses_all = w.refuses_mac = 0;
	reopen_makes_the_settings_again(state);
}

static void port_that_cannot_hear_all_is_closed(void **state)
{
	w.refuses_all = ENOMEM;
	expect_closed_until_settings_succeed(state, ENOMEM);
}

static void port_that_cannot_hear_a_mac_is_closed(void **state)
{
	w.refuses_mac = ENOSPC;
	expect_closed_until_settings_succeed(state, ENOSPC);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_uplink, close_uplink)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reopen_makes_the_settings_again),
		TEST(port_that_cannot_hear_all_is_closed),
		TEST(port_that_cannot_hear_a_mac_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
