/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends the program if a condition does not hold. Works with NDEBUG and outside of cmocka. */
#ifndef URXE_TEST_REQUIRE_H
#define URXE_TEST_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define require(condition)                                                                        \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

#endif
