/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/qpn_process.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 64u

/* Makes room for one more QPN: doubles a full table. A table with half of its entries used counts
 * as full, so that each search ends soon. 0 or -ENOMEM. */
static int grow_processes(struct qpn_processes *processes)
{
	uint32_t size = processes->entries ? 2 * (processes->mask + 1) : FIRST_SIZE;
	struct qpn_processes larger = {.mask = size - 1, .n = processes->n};

	if (!qpn_processes_full(processes))
		return 0;
	larger.entries = calloc(size, sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (uint32_t i = 0; processes->entries && i <= processes->mask; i++)
		if (processes->entries[i].qpn)
			*qpn_process_entry(&larger, processes->entries[i].qpn) =
				processes->entries[i];
	free(processes->entries);
	*processes = larger;
	return 0;
}

int qpn_process_set(struct qpn_processes *processes, uint32_t qpn, uint32_t process)
{
	int rc = grow_processes(processes);
	struct qpn_process *entry;

	if (rc)
		return rc;
	entry = qpn_process_entry(processes, qpn);
	processes->n += !entry->qpn;
	*entry = (struct qpn_process){qpn, process};
	return 0;
}

void qpn_processes_free(struct qpn_processes *processes)
{
	free(processes->entries);
	*processes = (struct qpn_processes){0};
}
