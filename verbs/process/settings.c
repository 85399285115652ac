/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "process/settings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <session/env.h>

#include "process/log.h"

#define SECOND          UINT64_C(1000000000)
#define DEFAULT_SECONDS 5
#define MAX_SECONDS     3600

static _Atomic uint64_t reconnect_ns = DEFAULT_SECONDS * SECOND;
static _Atomic enum hca_way way = HCA_WAY_AUTO;
static atomic_bool engine_takes_over;

static uint64_t read_reconnect_ns(void)
{
	const char *text = env_get("RECONNECT_S");
	unsigned long seconds;
	char *end;

	if (!text || !*text)
		return DEFAULT_SECONDS * SECOND;
	seconds = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && seconds <= MAX_SECONDS)
		return seconds * SECOND;
	log_warning("URXE_RECONNECT_S is a number of seconds up to %d, not '%s'", MAX_SECONDS,
		    text);
	return DEFAULT_SECONDS * SECOND;
}

void settings_read(void)
{
	const char *wanted = env_get("WAY"), *gone = env_get("HCA_GONE");
	enum hca_way read = HCA_WAY_AUTO;

	if (wanted)
		hca_way_read(wanted, &read);
	reconnect_ns = read_reconnect_ns();
	way = read;
	engine_takes_over = gone && !strcmp(gone, "engine");
}

uint64_t settings_reconnect_ns(void)
{
	return reconnect_ns;
}

enum hca_way settings_hca_way(void)
{
	return way;
}

bool settings_engine_takes_over(void)
{
	return engine_takes_over;
}
