/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A build-time program: writes urxe-counters.7 from the lists that define the counters. */
#include <stdio.h>

#include <cm/counters.h>
#include <netdev/netdev.h>
#include <pvrdma/pvrdma.h>
#include <rxe/counters.h>
#include <vnic/device.h>
#include <vnic/inbox.h>

#include "urxed/qp1/gsi.h"
#include "urxed/report/counter_row.h"
#include "urxed/switch/switch_port.h"
#include "vm/host/switch_link.h"

static const struct counter_row switch_rows[] = {SWITCH_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row switch_drops[] = {SWITCH_DROP_LIST(COUNTER_ROW)};
static const struct counter_row nic_rows[] = {VNIC_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row uplink_rows[] = {NETDEV_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row engine_rows[] = {URXE_EVENT_LIST(COUNTER_ROW)};
static const struct counter_row inbox_rows[] = {VNIC_BYPASS_LIST(COUNTER_ROW)};
static const struct counter_row engine_drops[] = {URXE_DROP_LIST(COUNTER_ROW)};
static const struct counter_row machine_rows[] = {PVRDMA_COUNTER_LIST(COUNTER_ROW)
							  SWITCH_LINK_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row cm_rows[] = {CM_COUNTER_LIST(COUNTER_ROW)};
static const struct counter_row gsi_rows[] = {GSI_DROP_LIST(COUNTER_ROW)};
static const struct counter_row neigh_rows[] = {NEIGH_COUNTER_LIST(COUNTER_ROW)};

static const struct {
	const char *title;
	const char *text;
	const struct counter_row *rows;
	size_t n;
} parts[] = {
#define PART(title, text, rows)                                     \
	{                                                           \
		title, text, rows, sizeof(rows) / sizeof((rows)[0]) \
	}
	PART("Ports of the switch",
	     "Frames that the switch received from a port and sent to it.\n"
	     "Their sums over all ports are \"switch\".",
	     switch_rows),
	PART("Frames that the switch dropped",
	     "Counted at the port that sent the frame, or at the port that had no room for it.\n"
	     "Their sums over all ports are \"drop\".",
	     switch_drops),
	PART("NICs of processes",
	     "The vNIC of each process counts them; tx is what the process sends.\n"
	     "Their sums are \"vnic\".",
	     nic_rows),
	PART("Uplinks", "The driver of each uplink counts them.", uplink_rows),
	PART("Engines", "Each process counts them, for all and for each of its queue pairs.",
	     engine_rows),
	PART("Packets that engines dropped",
	     "Each process counts them, for all and for each of its queue pairs.", engine_drops),
	PART("Processes",
	     "Each process counts the frames between its inbox and the inboxes of other processes\n"
	     "of its user, and the waits for the lock of its engine.",
	     inbox_rows),
	PART("Virtual machines",
	     "The device process of each machine counts what the PVRDMA device and the link to "
	     "the\n"
	     "switch do, beside its engine.",
	     machine_rows),
	PART("Connection manager", "The daemon counts messages of rdma_cm; \"cm\".", cm_rows),
	PART("Management datagrams that QP1 dropped", "The daemon counts them; \"gsi\".", gsi_rows),
	PART("Address resolution", "The daemon counts ARP and neighbour discovery; \"neigh\".",
	     neigh_rows),
};

static void print_part(size_t i)
{
	size_t r;

	printf(".Ss %s\n%s\n.Bl -tag -width out_of_sequence\n", parts[i].title, parts[i].text);
	for (r = 0; r < parts[i].n; r++)
		printf(".It Sy %s\n%s\n", parts[i].rows[r].name, parts[i].rows[r].text);
	puts(".El");
}

int main(void)
{
	size_t i;

	puts(".\\\" SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only\n"
	     ".Dd November 22, 2026\n"
	     ".Dt URXE-COUNTERS 7\n"
	     ".Os\n"
	     ".Sh NAME\n"
	     ".Nm urxe-counters\n"
	     ".Nd counters of urxe, and reasons for dropped packets\n"
	     ".Sh DESCRIPTION\n"
	     ".Nm urxe Cm show counter\n"
	     "and its\n"
	     ".Cm port\n"
	     "and\n"
	     ".Cm qp\n"
	     "show these counters; see\n"
	     ".Xr urxe 1 .");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		print_part(i);
	puts(".Sh SEE ALSO\n.Xr urxe 1 ,\n.Xr urxed 8");
	return fflush(stdout) || ferror(stdout);
}
