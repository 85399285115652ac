/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Width, speed and text that Linux' RoCE devices report for the speed of their interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/verbs.h>

#include "urxed/hostnet/host.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect_text(struct port_rate rate, const char *text)
{
	char found[PORT_RATE_TEXT];

	port_rate_print(rate, found);
	assert_string_equal(found, text);
}

static void interface_speed_gives_width_and_speed_of_ibv(void **state)
{
	static const struct {
		uint32_t mbps;
		int width, speed;
		const char *text;
		enum ibv_rate path;
	} links[] = {
		{0, 1, 1, "2.5 Gb/sec (1X SDR)", IBV_RATE_MAX},
		{1000, 1, 1, "2.5 Gb/sec (1X SDR)", IBV_RATE_MAX},
		{2500, 1, 8, "10 Gb/sec (1X FDR10)", IBV_RATE_10_GBPS},
		{10000, 1, 8, "10 Gb/sec (1X FDR10)", IBV_RATE_10_GBPS},
		{20000, 2, 2, "20 Gb/sec (4X DDR)", IBV_RATE_20_GBPS},
		{25000, 1, 32, "25 Gb/sec (1X EDR)", IBV_RATE_20_GBPS},
		{40000, 2, 8, "40 Gb/sec (4X FDR10)", IBV_RATE_40_GBPS},
		{50000, 16, 32, "50 Gb/sec (2X EDR)", IBV_RATE_40_GBPS},
		{100000, 2, 32, "100 Gb/sec (4X EDR)", IBV_RATE_40_GBPS},
		{200000, 2, 64, "200 Gb/sec (4X HDR)", IBV_RATE_40_GBPS},
		{400000, 2, 128, "400 Gb/sec (4X NDR)", IBV_RATE_40_GBPS},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(links); i++) {
		const struct port_rate rate = port_rate_of_link(links[i].mbps);

		assert_int_equal(rate.width, links[i].width);
		assert_int_equal(rate.speed, links[i].speed);
		expect_text(rate, links[i].text);
		assert_true(port_rate_same(port_rate_parse(links[i].text), rate));
		assert_int_equal(port_rate_of_path(rate), links[i].path);
	}
}

static void rate_texts_of_linux_are_parsed(void **state)
{
	static const char *const texts[] = {"30 Gb/sec (12X SDR)", "80 Gb/sec (8X QDR)",
					    "56 Gb/sec (4X FDR)"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		expect_text(port_rate_parse(texts[i]), texts[i]);
	assert_int_equal(port_rate_of_path(port_rate_parse(texts[0])), IBV_RATE_30_GBPS);
	/* ibv_query_port has no value for XDR; Linux reports NDR there. */
	assert_int_equal(port_rate_parse("800 Gb/sec (4X XDR)").speed, 128);
}

static void unknown_text_has_no_width(void **state)
{
	static const char *const texts[] = {"",
					    "25 Gb/sec",
					    "25 Gb/sec (3X EDR)",
					    "25 Gb/sec (1X ABC)",
					    "25 Gb/sec (1X FDR10000)",
					    "25 Gb/sec (-1X EDR)",
					    "25 Mb/sec (1X EDR)"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(port_rate_parse(texts[i]).width, 0);
}

/* UCX would prefer a faster device to shared memory, which is faster within a host. */
static void host_without_uplink_has_10_gbps(void **state)
{
	struct vnic_attach_port port;
	struct host h;

	(void)state;
	host_init(&h);
	expect_text(host_rate(&h), "10 Gb/sec (4X SDR)");
	host_fill_port(&h, &port);
	assert_int_equal(port.active_width, 2);
	assert_int_equal(port.active_speed, 1);
}

static void hca_keeps_its_rate(void **state)
{
	struct vnic_attach_port port;
	struct host h;

	(void)state;
	host_init(&h);
	h.hca_rate = port_rate_parse("200 Gb/sec (4X HDR)");
	expect_text(host_rate(&h), "200 Gb/sec (4X HDR)");
	host_fill_port(&h, &port);
	assert_int_equal(port.active_width, 2);
	assert_int_equal(port.active_speed, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interface_speed_gives_width_and_speed_of_ibv),
		cmocka_unit_test(rate_texts_of_linux_are_parsed),
		cmocka_unit_test(unknown_text_has_no_width),
		cmocka_unit_test(host_without_uplink_has_10_gbps),
		cmocka_unit_test(hca_keeps_its_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
