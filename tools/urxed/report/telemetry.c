/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DPDK's telemetry thread calls these commands. They ask the daemon's thread on the control socket,
 * as any client does: so only the daemon's thread reads the daemon's state, and needs no lock. */
#include "urxed/report/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <netdev/telemetry.h>

#include "common/json_fields.h"
#include "common/rundir.h"
#include "urxed/report/control_client.h"

/*
 * A path of the greatest length: netdev/dpdk/eal.c makes the prefix from network namespace and PID.
 */
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

/* Returns the row in which the integer `key` equals the parameter, which is decimal or, with 0x,
 * hexadecimal; NULL: none. */
static json_t *find_row(const json_t *list, const char *key, const char *parameter)
{
	char *end;
	long long number = strtoll(parameter, &end, 0);
	json_t *row;
	size_t i;

	if (end == parameter || *end)
		return NULL;
	json_array_foreach(list, i, row)
	{
		if (json_get_number(row, key) == number)
			return row;
	}
	return NULL;
}

static json_t *get_report(void)
{
	char error[CONTROL_CLIENT_ERROR];

	return control_client_report(run_dir, 0, error);
}

static int answer_host(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();

	(void)parameter;
	add_members(answer, "", json_object_get(report, "host"));
	json_decref(report);
	return report ? 0 : -EIO;
}

/*
 * Adds the integer `key` of each row of a list to the answer, which has room for
 * NETDEV_TELEMETRY_MAX numbers. The parameter says how many rows to skip, so that a client can get
 * further ones. Returns 0; -EINVAL if the parameter is no number; -EIO if the daemon gave no
 * report.
 */
static int answer_list(struct netdev_telemetry *answer, const char *list, const char *key,
		       const char *parameter)
{
	char *end;
	size_t i = strtoul(parameter, &end, 10);
	json_t *report, *rows;

	if (*end || *parameter == '-')
		return -EINVAL;
	report = get_report();
	rows = json_object_get(report, list);
	for (; i < json_array_size(rows); i++)
		netdev_telemetry_number(answer, NULL,
					(uint64_t)json_get_number(json_array_get(rows, i), key));
	json_decref(report);
	return report ? 0 : -EIO;
}

static int answer_ports(const char *parameter, struct netdev_telemetry *answer)
{
	return answer_list(answer, "ports", "number", parameter);
}

static int answer_port(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();
	json_t *found = find_row(json_object_get(report, "ports"), "number", parameter);

	add_members(answer, "", found);
	add_members(answer, "", json_object_get(found, "counters"));
	add_members(answer, "drop_", json_object_get(found, "drops"));
	add_members(answer, "device_", json_object_get(found, "device"));
	json_decref(report);
	return found ? 0 : -EINVAL;
}

static int answer_counters(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report(), *row;
	char name[64];
	size_t i;

	(void)parameter;
	json_array_foreach(json_object_get(report, "counters"), i, row)
	{
		snprintf(name, sizeof(name), "%s_%s", json_get_text(row, "of"),
			 json_get_text(row, "name"));
		netdev_telemetry_number(answer, name, (uint64_t)json_get_number(row, "value"));
	}
	json_decref(report);
	return report ? 0 : -EIO;
}

static int answer_leases(const char *parameter, struct netdev_telemetry *answer)
{
	return answer_list(answer, "leases", "qpn_first", parameter);
}

static int answer_lease(const char *parameter, struct netdev_telemetry *answer)
{
	json_t *report = get_report();
	json_t *found = find_row(json_object_get(report, "leases"), "qpn_first", parameter);

	add_members(answer, "", found);
	json_decref(report);
	return found ? 0 : -EINVAL;
}

static const struct netdev_telemetry_command commands[] = {
	{"/urxe/host", "The daemon and its host. No parameters", false, answer_host},
	{"/urxe/ports", "256 numbers of the switch's ports. Parameters: how many to skip", true,
	 answer_ports},
	{"/urxe/port", "One port's counters. Parameters: number", false, answer_port},
	{"/urxe/counters", "Sums of all counters. No parameters", false, answer_counters},
	{"/urxe/leases", "First queue pair numbers of 256 leases. Parameters: how many to skip",
	 true, answer_leases},
	{"/urxe/lease", "One lease. Parameters: first queue pair number", false, answer_lease},
};

int telemetry_start(void)
{
	return netdev_telemetry_register(commands, sizeof(commands) / sizeof(commands[0]));
}
