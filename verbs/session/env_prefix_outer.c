/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The prefix of environment variables in liburxe-outer.so; replaces session/env_prefix.c. */
#include <session/env.h>

const char env_prefix[] = "URXE_OUTER_";
