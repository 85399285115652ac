/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests use the simulator's random numbers. */
#ifndef URXE_TEST_RAND_H
#define URXE_TEST_RAND_H

#include "sim/rand.h"

#endif
