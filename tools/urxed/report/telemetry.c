/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Telemetry's thread asks on the control socket like anybody else: so the daemon's one
 * thread tells what it alone may look at, when it has time to, and there is no lock.
 */
#include "urxed/report/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <netdev/telemetry.h>

#include "common/rundir.h"
#include "urxed/report/control_client.h"

/* PREFIX is of netdev/dpdk/eal.c: urxe, the network namespace and the PID. */
#define SOCKET_PATH "/" TELEMETRY_DIR "/urxe-4294967295-4194304/dpdk_telemetry.v2"

static char run_dir[RUNDIR_MAX];

void telemetry_prepare(const char *dir)
{
	struct sockaddr_un address;

	snprintf(run_dir, sizeof(run_dir), "%s", dir);
	rundir_remove(run_dir, TELEMETRY_DIR);
	if (strlen(run_dir) + sizeof(SOCKET_PATH) <= sizeof(address.sun_path))
		setenv("RUNTIME_DIRECTORY", run_dir, 1);
}

/* --- Answers */

static void add_members(struct netdev_telemetry *answer, const char *prefix, json_t *object)
{
	char name[64];
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		snprintf(name, sizeof(name), "%s%s", prefix, key);
		if (json_is_integer(value))
			netdev_telemetry_number(answer, name, (uint64_t)json_integer_value(value));
		else if (json_is_string(value))
			netdev_telemetry_text(answer, name, json_string_value(value));
	}
}

/* One number of each element of a list. */
static void add_list(struct netdev_telemetry *answer, const json_t *list, const char *key)
{
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		netdev_telemetry_number(answer, NULL,
					(uint64_t)json_integer_value(json_object_get(row, key)));
	}
}

/* The element whose number is the parameter, decimal or, with 0x, hexadecimal. */
static json_t *find(const json_t *list, const char *key, const char *parameter)
{
	char *end;
	long long number = strtoll(parameter, &end, 0);
	json_t *row;
	size_t i;

	if (end == parameter || *end)
		return NULL;
	json_array_foreach(list, i, row)
	{
		if (json_integer_value(json_object_get(row, key)) == number)
			return row;
	}
	return NULL;
}

static json_t *get_report(void)
{
	char error[CONTROL_CLIENT_ERROR];

	return control_client_report(run_dir, false, error);
}

static int host(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();

	(void)parameter;
	add_members(answer, "", json_object_get(report, "host"));
	json_decref(report);
	return report ? 0 : -EIO;
}

static int ports(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();

	(void)parameter;
	add_list(answer, json_object_get(report, "ports"), "number");
	json_decref(report);
	return report ? 0 : -EIO;
}

static int port(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();
	json_t *found = find(json_object_get(report, "ports"), "number", parameter);

	add_members(answer, "", found);
	add_members(answer, "", json_object_get(found, "counters"));
	add_members(answer, "drop_", json_object_get(found, "drops"));
	add_members(answer, "device_", json_object_get(found, "device"));
	json_decref(report);
	return found ? 0 : -EINVAL;
}

static int counters(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report(), *row;
	char name[64];
	size_t i;

	(void)parameter;
	json_array_foreach(json_object_get(report, "counters"), i, row)
	{
		snprintf(name, sizeof(name), "%s_%s", json_string_value(json_object_get(row, "of")),
			 json_string_value(json_object_get(row, "name")));
		netdev_telemetry_number(
			answer, name, (uint64_t)json_integer_value(json_object_get(row, "value")));
	}
	json_decref(report);
	return report ? 0 : -EIO;
}

static int leases(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();

	(void)parameter;
	add_list(answer, json_object_get(report, "leases"), "qpn_first");
	json_decref(report);
	return report ? 0 : -EIO;
}

static int lease(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();
	json_t *found = find(json_object_get(report, "leases"), "qpn_first", parameter);

	add_members(answer, "", found);
	json_decref(report);
	return found ? 0 : -EINVAL;
}

static const struct netdev_telemetry_command commands[] = {
	{"/urxe/host", "The daemon and its host. No parameters", false, host},
	{"/urxe/ports", "Numbers of the switch's ports. No parameters", true, ports},
	{"/urxe/port", "One port's counters. Parameters: number", false, port},
	{"/urxe/counters", "Sums of all counters. No parameters", false, counters},
	{"/urxe/leases", "First queue pair numbers of leases. No parameters", true, leases},
	{"/urxe/lease", "One lease. Parameters: first queue pair number", false, lease},
};

int telemetry_start(void)
{
	return netdev_telemetry_register(commands, sizeof(commands) / sizeof(commands[0]));
}
