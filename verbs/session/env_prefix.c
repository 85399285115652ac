/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "session/env.h"

const char env_prefix[] = "URXE_";
