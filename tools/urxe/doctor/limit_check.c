/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <stdbool.h>
#include <sys/resource.h>

/*
 * The lowest limit of descriptors (RLIMIT_NOFILE) without a finding: Linux' default. liburxe.so
 * keeps its own descriptors at numbers from 1024 on. With a limit below 1152 they have the last 128
 * numbers below the limit; below 256, the upper half (process/high_fd.c).
 */
#define DESCRIPTORS 1024
/*
 * The lowest limit of file size (RLIMIT_FSIZE) without a finding: the memory of a process's vNIC, a
 * memfd that urxed creates, is smaller. (A recording needs more: VNIC_RECORD_SIZE.)
 */
#define FILE_BYTES (8u << 20)

void check_limits(struct findings *f)
{
	struct rlimit descriptors, bytes;
	bool fine = true;

	if (!getrlimit(RLIMIT_NOFILE, &descriptors) && descriptors.rlim_cur < DESCRIPTORS) {
		finding_add(f, "limits", FINDING_NOTE, "ulimit -n 1024",
			    "a program may open %lu descriptors only; a completion channel needs "
			    "3, an rdma_cm event channel 5 or 6",
			    (unsigned long)descriptors.rlim_cur);
		fine = false;
	}
	if (!getrlimit(RLIMIT_FSIZE, &bytes) && bytes.rlim_cur < FILE_BYTES) {
		finding_add(f, "limits", FINDING_NOTE, "ulimit -f unlimited",
			    "files may have %lu bytes only: a urxed that this shell starts may be "
			    "unable to give programs the device",
			    (unsigned long)bytes.rlim_cur);
		fine = false;
	}
	if (fine)
		finding_add(
			f, "limits", FINDING_OK, NULL,
			"enough descriptors; registered memory is not locked and needs no limit");
}
