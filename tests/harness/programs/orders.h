/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands of obedient.py: reads letters from standard input, executes each, and repeats it on
 * standard output. */
#ifndef URXE_TEST_ORDERS_H
#define URXE_TEST_ORDERS_H

#include <stdio.h>
#include <unistd.h>

static inline void take_orders(void (*obey)(int order))
{
	char order;

	setlinebuf(stdout);
	puts("open");
	while (read(STDIN_FILENO, &order, 1) == 1) {
		obey(order);
		printf("%c\n", order);
	}
}

#endif
