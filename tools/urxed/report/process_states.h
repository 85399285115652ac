/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collects the states of processes (verbs/session/state_document.h) into the daemon's report.
 * control_client.c calls this, in the client.
 */
#ifndef URXE_URXED_REPORT_PROCESS_STATES_H
#define URXE_URXED_REPORT_PROCESS_STATES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <vnic/attach_protocol.h>

/*
 * Limits of the memory and time that answers may cost. They suffice if each user has two processes
 * with 65,536 QPs, which take 60 MB of text and 5.2 million units (state_reader.h). At most, a
 * process with one block of QPNs and no added QPN costs 255 MB, one with all blocks and no added
 * QPN 785 MB, the processes of one user 1.1 GB, and those of all users 2.2 GB.
 */
#define PROCESS_STATES_BYTES      (128u << 20) /* bytes of one user's documents */
#define PROCESS_STATES_QP_UNITS   64u          /* units per QPN of a process */
#define PROCESS_STATES_MR_UNITS   22u          /* units per MR, for STATE_MRS_MAX MRs */
#define PROCESS_STATES_USER_UNITS 8000000u     /* units of one user's processes */
#define PROCESS_STATES_UNITS      16000000u    /* units of all processes */

/* One socket per attached process, each of which has at least one block of QPNs. */
#define PROCESS_STATES_SOCKETS VNIC_BLOCKS

/* The sockets on which processes answer. */
struct process_sockets {
	uint32_t n;
	int fds[PROCESS_STATES_SOCKETS];        /* -1 = closed, for want of descriptors */
	uint32_t ports[PROCESS_STATES_SOCKETS]; /* number of the process's port at each socket */
};

/*
 * Adds the states that processes send on their sockets to the report, as control_client.h says.
 * Ends when all have answered, or after CONTROL_CLIENT_LONGEST_S. Leaves out a process that has not
 * begun its answer within wait_ms. Each -EINPROGRESS gives its process CONTROL_CLIENT_PROGRESS_MS
 * more; how many of them count depends on the number of the process's QPNs. Processes are not
 * trusted: their packets may contain anything, and each process has one answer.
 */
void process_states_collect(json_t *report, const struct process_sockets *sockets,
			    uint32_t wait_ms);

/* Adds one document, as if the first process that the daemon has asked had sent it. For tests. */
void process_states_add(json_t *report, const char *text, size_t len);

#endif
