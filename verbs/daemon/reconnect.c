/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/reconnect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "port/port.h"
#include "process/log.h"
#include <session/env.h>

#define SECOND          UINT64_C(1000000000)
#define DEFAULT_SECONDS 5
#define MAX_SECONDS     3600

static struct reconnect *const reconnect = &port.reconnect;

uint64_t reconnect_timeout(void)
{
	const char *text = env_get("RECONNECT_S");
	unsigned long seconds;
	char *end;

	if (!text)
		return DEFAULT_SECONDS * SECOND;
	seconds = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && seconds <= MAX_SECONDS)
		return seconds * SECOND;
	log_warning("URXE_RECONNECT_S is a number of seconds up to %d, not '%s'", MAX_SECONDS,
		    text);
	return DEFAULT_SECONDS * SECOND;
}

void reconnect_begin(void)
{
	uint64_t now = clock_monotonic();

	*reconnect = (struct reconnect){
		.active = true, .since = now, .until = now + reconnect_timeout()};
	log_warning("urxed has gone: looking for another one");
	tx_lose_switch(&port.tx);
	if (!port.uplink)
		clock_stop();
}

/* Errors that a further attempt would not change. */
static bool is_final(int rc)
{
	return rc == -EPERM || rc == -EPROTO || rc == -ESTALE;
}

static const char *failure_text(int rc)
{
	switch (rc) {
	case -ETIME: return "urxed has gone";
	case -ESTALE: return "the new urxed serves another host";
	case -EPROTO: return "the new urxed has another version";
	default: return "the new urxed has no lease for this process";
	}
}

void reconnect_try(void)
{
	uint64_t now = clock_monotonic();
	int rc;

	/* With a direct uplink the engine thread also wakes for other reasons. */
	if (now < reconnect->next)
		return;
	reconnect->next = now + RECONNECT_INTERVAL_NS / 2;
	rc = now < reconnect->until ? port_reattach() : -ETIME;
	if (!rc)
		log_warning("attached again after %llu ms",
			    (unsigned long long)((clock_monotonic() - reconnect->since) / 1000000));
	else if (!is_final(rc) && rc != -ETIME)
		return;
	reconnect->active = false;
	clock_resume();
	if (rc)
		port_fail(failure_text(rc));
	port_wake_waiters();
}
