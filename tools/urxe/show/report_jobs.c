/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/show/report_jobs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_fields.h"
#include "common/printable.h"
#include "common/rundir.h"

/* Copies the value of URXE_JOB without control characters, and returns whether the environment has
 * it. */
static bool find_job(FILE *environment, char job[JOB_NAME])
{
	static const char prefix[] = JOB_VARIABLE "=";
	char *entry = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && getdelim(&entry, &size, '\0', environment) > 0) {
		found = !strncmp(entry, prefix, strlen(prefix));
		if (found)
			printable_copy(job, JOB_NAME, entry + strlen(prefix));
	}
	free(entry);
	return found;
}

static json_t *read_job(json_int_t pid)
{
	char path[64], job[JOB_NAME];
	FILE *environment;
	bool found;

	snprintf(path, sizeof(path), "/proc/%lld/environ", (long long)pid);
	environment = fopen(path, "re");
	if (!environment)
		return json_null();
	found = find_job(environment, job);
	fclose(environment);
	return found ? json_string(job) : json_null();
}

void report_jobs_add(json_t *report)
{
	json_t *leases = json_object_get(report, "leases"), *lease;
	/* In a PID namespace other than the daemon's, its PIDs name other processes. */
	bool known = json_get_number(json_object_get(report, "host"), "pidns") ==
		     (json_int_t)rundir_pidns();
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		json_object_set_new(lease, "job",
				    known ? read_job(json_get_number(lease, "pid")) : json_null());
	}
}
