/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sentence that goes with an error of an open function. */
#ifndef URXE_NETDEV_ERROR_TEXT_H
#define URXE_NETDEV_ERROR_TEXT_H

#include <stdint.h>

/* Returns err, so that a caller can write `return netdev_why(...)`. */
__attribute__((format(printf, 4, 5))) int netdev_why(char *why, uint32_t why_size, int err,
						     const char *format, ...);

#endif
