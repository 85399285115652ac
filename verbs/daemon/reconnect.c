/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/reconnect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "port/port.h"
#include "report/log.h"

#define SECOND          UINT64_C(1000000000)
#define DEFAULT_SECONDS 5
#define MOST_SECONDS    3600

static struct outage *const outage = &port.outage;

uint64_t outage_patience(void)
{
	const char *text = getenv("URXE_RECONNECT_S");
	unsigned long seconds;
	char *end;

	if (!text)
		return DEFAULT_SECONDS * SECOND;
	seconds = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && seconds <= MOST_SECONDS)
		return seconds * SECOND;
	log_warning("URXE_RECONNECT_S is a number of seconds up to %d, not '%s'", MOST_SECONDS,
		    text);
	return DEFAULT_SECONDS * SECOND;
}

void outage_begin(void)
{
	uint64_t now = clock_monotonic();

	*outage = (struct outage){.on = true, .since = now, .until = now + outage_patience()};
	log_warning("urxed has gone: looking for another one");
	clock_stop();
}

/* What another attempt would not change. */
static bool is_final(int rc)
{
	return rc == -EPERM || rc == -EPROTO || rc == -ESTALE;
}

static const char *why_not(int rc)
{
	switch (rc) {
	case -ETIME: return "urxed has gone";
	case -ESTALE: return "the urxed that is there now is another host";
	case -EPROTO: return "the urxed that is there now has another version";
	default: return "the urxed that is there now has no lease for this process";
	}
}

void outage_look(void)
{
	int rc = clock_monotonic() < outage->until ? port_attach_again() : -ETIME;

	if (!rc)
		log_warning("attached again after %llu ms",
			    (unsigned long long)((clock_monotonic() - outage->since) / 1000000));
	else if (!is_final(rc) && rc != -ETIME)
		return;
	outage->on = false;
	clock_go();
	if (rc)
		port_lost(why_not(rc));
	port_tell_waiting();
}
