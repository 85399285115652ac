/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Creates the HCA's address handles in threads of their own. ibv_create_ah(3) waits up to a second
 * for the MAC of a peer that the host does not know, and the device process, which also serves the
 * machine's NIC, must not stand still meanwhile. machine_hca.c calls these functions, in the thread
 * that runs the engine.
 */
#ifndef URXE_VM_HOST_ADDRESS_HANDLES_H
#define URXE_VM_HOST_ADDRESS_HANDLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hca/hca.h>

/* The most handles that are created at the same time. */
#define ADDRESS_HANDLE_JOBS 16
/* The most handles for datagrams among them, so that a connection always finds room. */
#define ADDRESS_HANDLE_DATAGRAM_JOBS 15
/*
 * How long after a job its result is valid, ns: the peer counts as unreachable, or its MAC as
 * known. Within ADDRESS_HANDLE_FOUND_NS the host's kernel resolves the peer at once. Later the
 * kernel may have dropped the MAC: it keeps that of a silent peer for some seconds.
 */
#define ADDRESS_HANDLE_FAILED_NS UINT64_C(1000000000)
#define ADDRESS_HANDLE_FOUND_NS  20000000u

struct address_handles;

struct address_handle_job {
	struct address_handles *all; /* that contains the job */
	enum address_handle_state {
		ADDRESS_HANDLE_NONE,  /* the job is free */
		ADDRESS_HANDLE_RUNS,  /* a thread creates the handle */
		ADDRESS_HANDLE_FOUND, /* the host's kernel has the peer's MAC */
		ADDRESS_HANDLE_FAILED
	} state;
	struct hca *hca;
	uint32_t pd;
	struct urxe_path path;
	struct hca_ah_call *call;
	pthread_t thread;
	int error;         /* the HCA's error, a negative errno value; 0 if ADDRESS_HANDLE_FOUND */
	uint64_t ended_at; /* when the state became _FOUND or _FAILED, ns */
};

struct address_handles {
	int fds[2]; /* a pipe; fds[0] is readable when address_handles_event has something to do */
	struct address_handle_job jobs[ADDRESS_HANDLE_JOBS];
};

/* Returns 0 or a negative errno value of pipe2(2). The structure must not move until
 * address_handles_close. */
int address_handles_open(struct address_handles *h);
/* Waits for the threads. Call it after hca_close; also after a failed address_handles_open. */
void address_handles_close(struct address_handles *h);
/*
 * Makes the host's kernel resolve the peer of the path, by creating a handle in the PD. Datagrams
 * need that only if the HCA has no handle of the path yet, since a handle contains the MAC.
 * `connects`: for a connection, whose ibv_modify_qp(3) resolves the peer again, and uses no handle.
 * 0: the caller may go on, since the HCA will not wait for the peer's MAC now, or cannot have a
 * handle. -EAGAIN: a thread resolves the peer, or all jobs for this use run: call it again after
 * address_handles_event has returned true. Other errors: the HCA found no way to the peer less than
 * ADDRESS_HANDLE_FAILED_NS ago; it could not create a handle of this path, for a datagram; or no
 * thread could be created. `now`: as now_ns().
 */
int address_handles_get(struct address_handles *h, struct hca *hca, uint32_t pd,
			const struct urxe_path *path, bool connects, uint64_t now);
/* Ends the jobs whose threads have ended. True: there were some. */
bool address_handles_event(struct address_handles *h, uint64_t now);

#endif
