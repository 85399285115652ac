/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <string.h>
#include <unistd.h>

#include "common/rundir.h"
#include "urxed/report/control_client.h"

#define UPLINKS 256 /* length of the list of uplinks, with the NUL; a longer one is cut */

static void list_uplinks(const json_t *report, char list[UPLINKS])
{
	json_t *port;
	size_t i;

	list[0] = '\0';
	json_array_foreach(json_object_get(report, "ports"), i, port)
	{
		const char *kind = json_string_value(json_object_get(port, "kind"));
		const char *name = json_string_value(json_object_get(port, "name"));

		if (kind && name && !strcmp(kind, "uplink"))
			snprintf(list + strlen(list), UPLINKS - strlen(list), "%s%s",
				 *list ? ", " : "", name);
	}
}

void check_daemon(struct findings *f, const char *run_dir)
{
	char error[CONTROL_CLIENT_ERROR], uplinks[UPLINKS], socket[RUNDIR_MAX + 16];
	json_t *report;

	snprintf(socket, sizeof(socket), "%s/urxed.sock", run_dir);
	if (access(socket, F_OK)) {
		finding_add(
			f, "daemon", FINDING_OK, NULL,
			"no urxed serves %s: 'urxe run' starts a private one, which reaches this "
			"host only",
			run_dir);
		return;
	}
	report = control_client_report(run_dir, 0, error);
	if (!report) {
		finding_add(f, "daemon", FINDING_NOTE, NULL, "%s", error);
		return;
	}
	list_uplinks(report, uplinks);
	finding_add(f, "daemon", FINDING_OK, NULL, "urxed serves %s, %s%s", run_dir,
		    *uplinks ? "with the uplinks " : "without an uplink", uplinks);
	json_decref(report);
}
