/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's run directory, and the name of its device. Any thread; no lock. */
#ifndef URXE_VERBS_PROCESS_RUN_DIR_H
#define URXE_VERBS_PROCESS_RUN_DIR_H

/* Nanoseconds between two attempts to reach a daemon in the run directory. */
#define RECONNECT_INTERVAL_NS 20000000u

/* The absolute path of the run directory, from URXE_DIR at the first call. NULL: URXE_DIR names
 * none, so the library plays no device. */
const char *run_dir_path(void);

/* The name of the device's node in /dev/infiniband: VNIC_UVERBS_NAME, or VNIC_UVERBS_OTHER if the
 * run directory has a node of that name. */
const char *run_dir_uverbs_name(void);

#endif
