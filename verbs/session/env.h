/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Environment variables by their names without prefix. The prefix is URXE_, but URXE_OUTER_ in
 * liburxe-outer.so, which a nested `urxe run` preloads beside liburxe.so. For all parts that read
 * the environment.
 */
#ifndef URXE_VERBS_SESSION_ENV_H
#define URXE_VERBS_SESSION_ENV_H

/* "URXE_", from session/env_prefix.c; in liburxe-outer.so "URXE_OUTER_", from
 * session/env_prefix_outer.c. */
extern const char env_prefix[] __attribute__((visibility("hidden")));

/* As getenv(3), for the variable whose name is the prefix and `name`, such as "DIR". */
const char *env_get(const char *name);

#endif
