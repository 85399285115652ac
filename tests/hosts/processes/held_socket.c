/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program with a direct uplink that keeps the kernel's lock of its packet socket: it sets a
 * filter whose instructions are in a file that is never read (blocking_file.h). Prints "holds", and
 * ends with its standard input. direct_uplink.py runs it as root, with the run directory.
 */
#include <linux/filter.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "asleep.h"
#include "blocking_file.h"
#include "raw.h"
#include "require.h"

static struct sock_fprog program = {.len = 1};
static int uplink;
static _Atomic pid_t holder; /* the thread that keeps the lock */

static void *set_filter(void *unused)
{
	holder = gettid();
	(void)setsockopt(uplink, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	return unused;
}

int main(int argc, char **argv)
{
	struct vnic_attach_uplink answer;
	int uplinks[VNIC_UPLINK_SOCKETS];
	struct raw raw;
	pthread_t thread;
	int file;
	char byte;

	require(argc == 2);
	file = blocking_file_open();
	program.filter = mmap(NULL, BLOCKING_FILE_SIZE, PROT_READ, MAP_PRIVATE, file, 0);
	require(program.filter != MAP_FAILED);
	raw_open(&raw, argv[1]);
	require(vnic_driver_uplink(raw.drv, &answer, uplinks) == 1);
	uplink = uplinks[0];
	require(!pthread_create(&thread, NULL, set_filter, NULL));
	while (!holder)
		usleep(1000);
	blocked_await(holder);
	puts("holds");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return 0;
}
