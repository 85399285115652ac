/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A file on which a process waits for ever, for tests of what a hostile program does to urxed. */
#ifndef URXE_TEST_BLOCKING_FILE_H
#define URXE_TEST_BLOCKING_FILE_H

#define BLOCKING_FILE_SIZE 4096

/*
 * Opens a file of FUSE, which needs root. Its server never answers a read, nor any request of
 * another process. The server ends with the calling process. Exits with status 77 if this machine
 * has no FUSE.
 */
int blocking_file_open(void);

#endif
