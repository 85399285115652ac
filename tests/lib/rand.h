/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The simulator's random numbers are the tests' too. */
#ifndef URXE_TEST_RAND_H
#define URXE_TEST_RAND_H

#include "sim/rand.h"

#endif
