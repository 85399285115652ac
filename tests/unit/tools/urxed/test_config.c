/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "urxed/config.h"

static struct options options;
static char text[1024];
static char error[OPTIONS_ERROR];

static int parse_bytes(const char *bytes, size_t len)
{
	assert_true(len < sizeof(text));
	memcpy(text, bytes, len);
	memset(&options, 0, sizeof(options));
	error[0] = '\0';
	return config_parse(&options, "file", text, len, error);
}

static int parse(const char *lines)
{
	return parse_bytes(lines, strlen(lines));
}

static void refused(const char *lines, const char *sentence)
{
	assert_int_equal(parse(lines), -EINVAL);
	assert_string_equal(error, sentence);
}

static void empty_file_is_valid(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("\n\n# a\n   \t\n  # b"), 0);
	assert_int_equal(options.daemon.n_uplinks, 0);
	assert_null(options.run_dir);
}

static void a_value_follows_a_blank_or_an_equals_sign(void **state)
{
	(void)state;
	assert_int_equal(parse("uplink tap:a\nuplink=tap:b\n uplink = tap:c \r\nuplink\ttap:d"), 0);
	assert_int_equal(options.daemon.n_uplinks, 4);
	for (int i = 0; i < 4; i++) {
		char expected[] = {'t', 'a', 'p', ':', (char)('a' + i), '\0'};

		assert_string_equal(options.daemon.uplinks[i], expected);
	}
}

static void a_value_may_have_blanks_and_equals_signs_and_hashes(void **state)
{
	(void)state;
	assert_int_equal(parse("uplink dpdk:net_x,a=b c#d # e"), 0);
	assert_string_equal(options.daemon.uplinks[0], "dpdk:net_x,a=b c#d");
}

static void flag_takes_no_value_or_yes_or_no(void **state)
{
	(void)state;
	assert_int_equal(parse("private\nforeground no\n"), 0);
	assert_true(options.daemon.private);
	assert_false(options.foreground);
	assert_int_equal(parse("private=yes"), 0);
	assert_true(options.daemon.private);
	refused("\nprivate 1\n", "file:2: option private is yes or no, not 1");
	refused("private =\n", "file:1: option private needs a value: yes or no");
}

static void unknown_option_is_reported_with_its_line(void **state)
{
	(void)state;
	refused("uplink tap:a\n\nfoo bar", "file:3: unknown option foo");
	refused("--uplink tap:a", "file:1: unknown option --uplink");
	refused("= x", "file:1: unknown option ");
	refused("uplink", "file:1: option uplink needs a value, SPEC");
}

static void option_that_does_not_repeat_is_refused_twice(void **state)
{
	(void)state;
	refused("run-dir /a\n#\nrun-dir /b", "file:3: option run-dir is already set on line 1");
}

static void number_of_uplinks_is_limited(void **state)
{
	char lines[512] = "", *end = lines;

	(void)state;
	for (int i = 0; i <= SWITCH_UPLINKS; i++)
		end += sprintf(end, "uplink tap:%d\n", i);
	assert_int_equal(parse(lines), -ENOSPC);
	assert_string_equal(error, "file:9: uplink tap:8 exceeds the limit: at most 8 are allowed");
}

static void duplicate_address_is_refused(void **state)
{
	(void)state;
	assert_int_equal(parse("address 192.0.2.1/24\naddress 192.0.2.2/24\naddress fd00::1/64"),
			 0);
	assert_int_equal(parse("address fd00::1/64\naddress 192.0.2.1/24\naddress fd00::0:1/64@5"),
			 -EEXIST);
	assert_string_equal(error, "file:3: address fd00::0:1/64@5 is given twice");
}

static void bond_has_a_mode(void **state)
{
	(void)state;
	assert_int_equal(parse("bond active-backup"), 0);
	assert_int_equal(options.daemon.bond, BOND_ACTIVE_BACKUP);
	assert_int_equal(parse("bond=balance"), 0);
	assert_int_equal(options.daemon.bond, BOND_BALANCE);
	refused("bond 802.3ad", "file:1: bond 802.3ad is not a mode: active-backup or balance");
	refused("bond balance\nbond balance", "file:2: option bond is already set on line 1");
}

static void nul_byte_is_refused(void **state)
{
	static const char bytes[] = "private\0foo\n";

	(void)state;
	assert_int_equal(parse_bytes(bytes, sizeof(bytes) - 1), -EINVAL);
	assert_string_equal(error, "file:1: the line contains a NUL byte");
}

static void every_option_can_be_set(void **state)
{
	static const char *const values[OPTIONS] = {
		"tap:x",   "balance", "192.0.2.1/24", "0x8001",   "52:54:00:12:34:56@7=tap:x",
		"drop=1%", "@root",   "@root",        "mlx5_0:2", "urxe7",
		"1500",    "/x",      "root",         "yes",      "no"};

	(void)state;
	for (uint32_t i = 0; i < OPTIONS; i++) {
		const struct options_row *row = &options_rows[i];
		int rc;

		memset(&options, 0, sizeof(options));
		assert_ptr_equal(options_find(row->name), row);
		/* Only root's daemon may set a group. */
		rc = geteuid() && !strcmp(row->name, "group") ? -EPERM : 0;
		assert_int_equal(options_set(&options, row, values[i], error), rc);
		assert_int_equal(options_set(&options, row, "", error), -EINVAL);
		assert_int_equal(options_set(&options, row, NULL, error),
				 row->argument ? -EINVAL : 0);
	}
}

static void read_errors_are_reported(void **state)
{
	char *buffer = text;

	(void)state;
	assert_int_equal(config_read(&options, "/nowhere/urxe.conf", &buffer, error), -ENOENT);
	assert_string_equal(error, "cannot read /nowhere/urxe.conf: No such file or directory");
	assert_null(buffer);
	assert_int_equal(config_read(&options, "/", &buffer, error), -EISDIR);
	assert_int_equal(config_read(&options, "/dev/zero", &buffer, error), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_file_is_valid),
		cmocka_unit_test(a_value_follows_a_blank_or_an_equals_sign),
		cmocka_unit_test(a_value_may_have_blanks_and_equals_signs_and_hashes),
		cmocka_unit_test(flag_takes_no_value_or_yes_or_no),
		cmocka_unit_test(unknown_option_is_reported_with_its_line),
		cmocka_unit_test(option_that_does_not_repeat_is_refused_twice),
		cmocka_unit_test(number_of_uplinks_is_limited),
		cmocka_unit_test(duplicate_address_is_refused),
		cmocka_unit_test(bond_has_a_mode),
		cmocka_unit_test(nul_byte_is_refused),
		cmocka_unit_test(every_option_can_be_set),
		cmocka_unit_test(read_errors_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
