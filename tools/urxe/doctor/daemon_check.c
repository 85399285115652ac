/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/json_fields.h"
#include "common/rundir.h"
#include "urxed/report/control_client.h"

#define UPLINKS 256 /* length of the list of uplinks, with the NUL; a longer one is cut */

#define REMEDY 96 /* length of a command with the name of an interface, with the NUL */

/* The command that shows why an interface has no link; NULL for an uplink of other kinds than
 * af_packet: and af_xdp:. */
static const char *link_remedy(const char *uplink, char remedy[REMEDY])
{
	const char *name = strchr(uplink, ':');

	if (strncmp(uplink, "af_packet:", 10) != 0 && strncmp(uplink, "af_xdp:", 7) != 0)
		return NULL;
	name++;
	snprintf(remedy, REMEDY, "ip link show dev %.*s", (int)strcspn(name, ","), name);
	return remedy;
}

/*
 * Names each uplink that is down, or silent in a bond. Ports of virtual machines do not count: a
 * machine may come later.
 */
static void check_links(struct findings *f, const json_t *report)
{
	char remedy[REMEDY];
	json_t *port;
	size_t i;

	json_array_foreach(json_object_get(report, "ports"), i, port)
	{
		const char *kind = json_get_text(port, "kind");
		const char *name = json_get_text(port, "name");
		const char *state = json_get_text(port, "state");

		if (kind && name && state && !strcmp(kind, "uplink") &&
		    (!strcmp(state, "down") || !strcmp(state, "silent")))
			finding_add(f, "daemon", FINDING_NOTE, link_remedy(name, remedy),
				    "the uplink %s is %s: no other host is reached by it", name,
				    state);
	}
}

static void list_uplinks(const json_t *report, char list[UPLINKS])
{
	json_t *port;
	size_t i;

	list[0] = '\0';
	json_array_foreach(json_object_get(report, "ports"), i, port)
	{
		const char *kind = json_get_text(port, "kind");
		const char *name = json_get_text(port, "name");

		/* qemu: and vhost: are uplinks of the kind vm; vm:NAME is a port of urxe vm. */
		if (kind && name && (!strcmp(kind, "uplink") || !strcmp(kind, "vm")) &&
		    strncmp(name, "vm:", 3) != 0)
			snprintf(list + strlen(list), UPLINKS - strlen(list), "%s%s",
				 *list ? ", " : "", name);
	}
}

/*
 * The daemon stores records for the next daemon in files of the run directory. On a disk, while
 * other programs write much to it, each such write may take seconds.
 */
void check_run_dir(struct findings *f, const char *run_dir, bool served)
{
	struct statfs fs;

	if (statfs(run_dir, &fs))
		finding_add(f, "run dir", FINDING_NOTE, NULL, "%s: %s", run_dir, strerror(errno));
	else if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		finding_add(f, "run dir", FINDING_OK, NULL, "%s is in memory", run_dir);
	else
		finding_add(f, "run dir", FINDING_NOTE,
			    served ? "urxed --run-dir " MEMORY_DIR " OPTION..., then "
				     "urxe run --run-dir " MEMORY_DIR " -- CMD"
				   : "urxe run --run-dir " MEMORY_DIR " -- CMD",
			    "%s is not in memory (tmpfs): urxed waits for the disk while "
			    "other programs write much",
			    run_dir);
}

bool check_daemon(struct findings *f, const char *run_dir)
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
		return false;
	}
	report = control_client_report(run_dir, 0, error);
	if (!report) {
		finding_add(f, "daemon", FINDING_NOTE, NULL, "%s", error);
		return true;
	}
	list_uplinks(report, uplinks);
	finding_add(f, "daemon", FINDING_OK, NULL, "urxed serves %s, %s%s", run_dir,
		    *uplinks ? "with the uplinks " : "without an uplink", uplinks);
	check_links(f, report);
	json_decref(report);
	return true;
}
