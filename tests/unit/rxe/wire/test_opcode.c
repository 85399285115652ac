/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* All 256 rows of the opcode table, against table 38 of the specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/opcode.h>

#include "table38.h"

static uint16_t contents_of(uint32_t flags)
{
	static const struct {
		uint32_t flag;
		uint16_t header;
	} map[] = {
		{URXE_OPF_DETH, T38_DETH},
		{URXE_OPF_RETH, T38_RETH},
		{URXE_OPF_ATOMIC_ETH, T38_ATOMICETH},
		{URXE_OPF_AETH, T38_AETH},
		{URXE_OPF_ATOMIC_ACK_ETH, T38_ATOMICACKETH},
		{URXE_OPF_IMM, T38_IMMDT},
		{URXE_OPF_IETH, T38_IETH},
		{URXE_OPF_PAYLOAD, T38_PAYLOAD},
		{URXE_OPF_FETH, T38_FETH},
		{URXE_OPF_XRCETH, T38_XRCETH},
	};
	uint16_t contents = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (flags & map[i].flag)
			contents |= map[i].header;
	return contents;
}

static void test_rows_equal_table_38(void **state)
{
	unsigned named = 0;

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct urxe_opcode_info *info = &urxe_opcodes[opcode];
		const struct table38_row *row = table38_find((uint8_t)opcode);

		assert_int_equal(info->known, row && row->spoken);
		if (!row) {
			assert_null(info->name);
			assert_int_equal(info->flags, 0);
			assert_int_equal(info->hdr_len, 0);
			continue;
		}
		named++;
		assert_string_equal(info->name, row->name);
		assert_int_equal(contents_of(info->flags), row->contents);
		assert_int_equal(info->hdr_len, table38_header_len(row->contents));
	}
	assert_int_equal(named, table38_rows);
}

static bool name_has(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

/* The name in the specification determines the kind of the packet. */
static void test_names_determine_kinds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < table38_rows; i++) {
		const char *name = table38[i].name;
		uint32_t flags = urxe_opcodes[table38[i].opcode].flags;
		bool only = !name_has(name, "_FIRST") && !name_has(name, "_MIDDLE") &&
			    !name_has(name, "_LAST");
		bool response = name_has(name, "RESPONSE") || name_has(name, "ACKNOWLEDGE");

		if (table38[i].opcode == 0x81) /* a CNP is part of no message */
			continue;
		assert_int_equal(!!(flags & URXE_OPF_START), only || name_has(name, "_FIRST"));
		assert_int_equal(!!(flags & URXE_OPF_END), only || name_has(name, "_LAST"));
		assert_int_equal(!!(flags & URXE_OPF_RESPONSE), response);
		assert_int_equal(!!(flags & URXE_OPF_REQUEST), !response);
		assert_int_equal(!!(flags & URXE_OPF_SEND), name_has(name, "_SEND_"));
		assert_int_equal(!!(flags & URXE_OPF_WRITE), name_has(name, "_WRITE_"));
		assert_int_equal(!!(flags & URXE_OPF_READ), name_has(name, "_READ_"));
		assert_int_equal(!!(flags & URXE_OPF_ATOMIC), name_has(name, "_ATOMIC_ACK") ||
								      name_has(name, "COMPARE") ||
								      name_has(name, "FETCH"));
		assert_int_equal(!!(flags & URXE_OPF_FLUSH), name_has(name, "FLUSH"));
		assert_int_equal(!!(flags & URXE_OPF_ATOMIC_WRITE), name_has(name, "ATOMIC_WRITE"));
		assert_int_equal(!!(flags & URXE_OPF_ACK), name_has(name, "RC_ACKNOWLEDGE"));
	}
}

/* The services share the low five bits of an operation's opcode (IBA 9.2.1). */
static void test_services_share_opcodes(void **state)
{
	(void)state;
	for (unsigned op = 0; op <= 0x0b; op++) {
		const struct urxe_opcode_info *rc = &urxe_opcodes[URXE_SERVICE_RC | op];
		const struct urxe_opcode_info *uc = &urxe_opcodes[URXE_SERVICE_UC | op];

		assert_int_equal(rc->flags, uc->flags);
		assert_int_equal(rc->hdr_len, uc->hdr_len);
		assert_string_equal(rc->name + 2, uc->name + 2);
	}
	assert_int_equal(URXE_OPCODE_SERVICE(0x65), URXE_SERVICE_UD);
	assert_int_equal(URXE_OPCODE_OPERATION(0x65), URXE_OP_SEND_ONLY_IMM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_equal_table_38),
		cmocka_unit_test(test_names_determine_kinds),
		cmocka_unit_test(test_services_share_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
