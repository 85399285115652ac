/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sentence that an open function writes for the user when it fails. */
#ifndef URXE_NETDEV_ERROR_TEXT_H
#define URXE_NETDEV_ERROR_TEXT_H

#include <stdint.h>

/* Writes the sentence where error is not NULL. Returns err, for `return error_text_set(...)`. */
__attribute__((format(printf, 4, 5))) int error_text_set(char *error, uint32_t error_size, int err,
							 const char *format, ...);

#endif
