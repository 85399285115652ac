/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The choice of the HCA that backs the device. */
#include "fake_sysfs.h"

#include "urxed/hca/hca_select.h"

static struct hca_list list;
static struct hca_verdict verdicts[HCA_PORTS];
static struct hca_wish wish;

static void uplink(const char *ifname)
{
	strcpy(wish.uplinks[wish.n_uplinks++], ifname);
}

static int setup(void **state)
{
	wish = (struct hca_wish){.sys = sys, .device = "urxe0"};
	return make_sysfs(state);
}

/* The chosen device; "" = none. */
static const char *choose(const struct vnic_attach_hca *current)
{
	int i;

	hca_scan(sys, NULL, &list);
	i = hca_select(&list, &wish, current, verdicts);
	if (i < 0)
		return "";
	assert_string_equal(verdicts[i].reason, "");
	return list.ports[i].device;
}

static const char *reason(const char *device)
{
	return verdicts[hca_find_port(&list, device, 0) - list.ports].reason;
}

static void options_are_parsed(void **state)
{
	char error[HCA_CHOICE_ERROR];
	struct hca_choice c;

	(void)state;
	assert_int_equal(hca_choice_parse("off", &c, error), 0);
	assert_int_equal(c.mode, HCA_OFF);
	assert_int_equal(hca_choice_parse("auto", &c, error), 0);
	assert_int_equal(c.mode, HCA_AUTO);
	assert_int_equal(hca_choice_parse("mlx5_0", &c, error), 0);
	assert_int_equal(c.mode, HCA_NAMED);
	assert_string_equal(c.device, "mlx5_0");
	assert_int_equal(c.port, 0);
	assert_int_equal(hca_choice_parse("mlx5_0:255", &c, error), 0);
	assert_string_equal(c.device, "mlx5_0");
	assert_int_equal(c.port, 255);
}

static void wrong_options_are_refused(void **state)
{
	static const char *const texts[] = {
		"",           ":1",
		"mlx5_0:",    "mlx5_0:0",
		"mlx5_0:256", "mlx5_0:1x",
		"a/b",        "..",
		"mlx5_0:1:2", "mlx5 0",
		"-x",         "a-name-of-sixty-four-characters-which-is-one-too-many-for-linux-",
	};
	char error[HCA_CHOICE_ERROR];
	struct hca_choice c = {.port = 77};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(hca_choice_parse(texts[i], &c, error), -EINVAL);
	assert_int_equal(c.port, 77);
	assert_string_equal(error,
			    "hca a-name-of-sixty-four-characters-which-is-one-too-many-for-linux- "
			    "is neither auto, off, nor a device with an optional port; examples: "
			    "mlx5_0, mlx5_0:2");
}

static void port_of_an_uplink_is_chosen(void **state)
{
	(void)state;
	make_roce("mlx5_0", "eth0");
	assert_string_equal(choose(NULL), "");
	assert_string_equal(reason("mlx5_0"), "urxed has no uplink on its interface eth0");
	uplink("eth1");
	assert_string_equal(choose(NULL), "");
	assert_string_equal(reason("mlx5_0"), "no uplink sends by its interface eth0");
	uplink("eth0");
	assert_string_equal(choose(NULL), "mlx5_0");
	assert_int_equal(verdicts[0].uplink, 1);
	wish.choice.mode = HCA_OFF;
	assert_string_equal(choose(NULL), "");
	assert_string_equal(reason("mlx5_0"), "--hca off");
}

static void uplink_may_be_above_the_interface(void **state)
{
	(void)state;
	make_roce("mlx5_0", "eth0");
	put("net/br0/lower_eth0/x", "-");
	uplink("br0");
	assert_string_equal(choose(NULL), "mlx5_0");
}

/* The uplink would receive the packets of rdma_rxe's queue pairs in its place. */
static void rdma_rxe_backs_no_device_on_af_xdp(void **state)
{
	char error[HCA_CHOICE_ERROR];

	(void)state;
	make_roce("rxe0", "eth0");
	put("infiniband/rxe0/parent", "eth0");
	make_roce("mlx5_0", "eth1");
	uplink("eth0");
	wish.xdp[0] = true;
	assert_string_equal(choose(NULL), "");
	assert_string_equal(reason("rxe0"),
			    "an af_xdp: uplink would take its packets: use af_packet:eth0");
	assert_int_equal(hca_choice_parse("rxe0", &wish.choice, error), 0);
	assert_string_equal(choose(NULL), "");
	wish.choice.mode = HCA_AUTO;
	uplink("eth1");
	wish.xdp[1] = true;
	assert_string_equal(choose(NULL), "mlx5_0");
	wish.xdp[0] = false;
	assert_string_equal(choose(NULL), "rxe0");
}

static void other_ports_are_not_used(void **state)
{
	(void)state;
	make_roce("roce", "eth0");
	put("infiniband/roce/ports/1/state", "1: DOWN");
	make_roce("nogid", "eth0");
	drop("infiniband/nogid/ports/1/gids");
	make_roce("urxe0", "eth0");
	make_device("ib", "1: CA");
	make_port("ib", 1, "InfiniBand", "4: ACTIVE");
	make_device("iwarp", "4: RNIC");
	make_port("iwarp", 1, "Ethernet", "4: ACTIVE");
	make_device("usnic", "5: usNIC");
	make_port("usnic", 1, "Ethernet", "4: ACTIVE");
	uplink("eth0");
	assert_string_equal(choose(NULL), "");
	assert_string_equal(reason("roce"), "its port is down");
	assert_string_equal(reason("nogid"), "it has no RoCE GID");
	assert_string_equal(reason("urxe0"),
			    "it has the name of urxe's own device: --device chooses another");
	assert_string_equal(reason("ib"), "InfiniBand, not RoCE");
	assert_string_equal(reason("iwarp"), "iWARP, not RoCE");
	assert_string_equal(reason("usnic"), "its transport is unknown, not RoCE");
	put("infiniband/roce/ports/1/state", "4: ACTIVE");
	assert_string_equal(choose(NULL), "roce");
}

/* What the kernel leaves of a device that is removed while programs have it open. */
static void device_that_is_being_removed_is_not_used(void **state)
{
	const struct vnic_attach_hca current = {.name = "rxe0", .port = 1};

	(void)state;
	make_roce("rxe0", "eth0");
	make_roce("rxe1", "eth0");
	uplink("eth0");
	assert_string_equal(choose(&current), "rxe0");
	drop("infiniband_verbs/uverbs-rxe0");
	assert_string_equal(choose(&current), "rxe1");
	assert_string_equal(reason("rxe0"), "it has no verbs device: it is being removed, or "
					    "ib_uverbs is not loaded");
	drop("infiniband_verbs");
	assert_string_equal(choose(&current), "");
}

static void named_port_is_chosen_whatever_the_uplinks(void **state)
{
	char error[HCA_CHOICE_ERROR];

	(void)state;
	make_roce("mlx5_0", "eth0");
	make_port("mlx5_0", 2, "Ethernet", "4: ACTIVE");
	make_gid("mlx5_0", 2, 0, GID_V4, "RoCE v2", "eth1");
	make_roce("mlx5_1", "eth2");
	uplink("eth2");
	assert_int_equal(hca_choice_parse("mlx5_0:2", &wish.choice, error), 0);
	hca_scan(sys, NULL, &list);
	assert_int_equal(hca_select(&list, &wish, NULL, verdicts), 1);
	assert_string_equal(verdicts[0].reason, "--hca names another port: mlx5_0");
	assert_string_equal(reason("mlx5_1"), "--hca names another port: mlx5_0");
	assert_int_equal(hca_choice_parse("mlx5_0", &wish.choice, error), 0);
	assert_int_equal(hca_select(&list, &wish, NULL, verdicts), 0);
	assert_int_equal(hca_choice_parse("mlx5_7", &wish.choice, error), 0);
	assert_int_equal(hca_select(&list, &wish, NULL, verdicts), -1);
}

static void first_uplink_counts_unless_a_port_is_in_use(void **state)
{
	const struct vnic_attach_hca current = {.name = "mlx5_0", .port = 1};

	(void)state;
	make_roce("mlx5_0", "eth0");
	make_roce("mlx5_1", "eth1");
	make_roce("mlx5_2", "eth1");
	uplink("eth1");
	uplink("eth0");
	assert_string_equal(choose(NULL), "mlx5_1");
	assert_string_equal(reason("mlx5_0"), "mlx5_1 backs the device");
	assert_string_equal(choose(&current), "mlx5_0");
	assert_string_equal(reason("mlx5_2"), "mlx5_0 backs the device");
	put("infiniband/mlx5_0/ports/1/state", "1: DOWN");
	assert_string_equal(choose(&current), "mlx5_0");
	assert_string_equal(choose(NULL), "mlx5_1");
	assert_string_equal(reason("mlx5_0"), "its port is down");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, remove_sysfs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_parsed),
		cmocka_unit_test(wrong_options_are_refused),
		TEST(port_of_an_uplink_is_chosen),
		TEST(uplink_may_be_above_the_interface),
		TEST(rdma_rxe_backs_no_device_on_af_xdp),
		TEST(other_ports_are_not_used),
		TEST(device_that_is_being_removed_is_not_used),
		TEST(named_port_is_chosen_whatever_the_uplinks),
		TEST(first_uplink_counts_unless_a_port_is_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
