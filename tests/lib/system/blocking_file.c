/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "blocking_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fuse.h>

#include "require.h"

#define SKIP 77

static int fuse_fd;

static void answer(const struct fuse_in_header *request, const void *body, size_t len)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + len),
					 .unique = request->unique};
	const struct iovec parts[] = {{&header, sizeof(header)}, {(void *)body, len}};

	/* The requester may have ended. */
	if (writev(fuse_fd, parts, len ? 2 : 1) < 0)
		return;
}

static void answer_request(const struct fuse_in_header *request)
{
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = 31,
					   .flags = FUSE_FLOCK_LOCKS,
					   .max_write = 4096};
	const struct fuse_attr_out attr = {
		.attr_valid = 3600,
		.attr = {.ino = 1, .mode = S_IFREG | 0666, .nlink = 1, .size = BLOCKING_FILE_SIZE}};
	const struct fuse_open_out open = {.fh = 1};

	switch (request->opcode) {
	case FUSE_INIT: answer(request, &init, sizeof(init)); return;
	case FUSE_GETATTR: answer(request, &attr, sizeof(attr)); return;
	case FUSE_OPEN: answer(request, &open, sizeof(open)); return;
	case FUSE_READ: return;
	default: answer(request, NULL, 0); return;
	}
}

/*
 * The server is a separate process with the only descriptor of /dev/fuse: its end releases the
 * processes that wait for it. A killed process that is its own server would wait for itself.
 */
static void start_server(uint32_t user)
{
	static union {
		struct fuse_in_header header;
		uint8_t room[FUSE_MIN_READ_BUFFER + 65536];
	} request;

	if (fork()) {
		close(fuse_fd);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse_fd, &request, sizeof(request)) > 0)
		if (request.header.opcode == FUSE_INIT || request.header.pid == user)
			answer_request(&request.header);
	_exit(0);
}

static _Noreturn void skip(const char *what)
{
	printf("no %s here: %s\n", what, strerror(errno));
	exit(SKIP);
}

int blocking_file_open(void)
{
	char mount_point[] = "/tmp/urxe-hostile-XXXXXX", options[96];
	struct stat st;
	int fd;

	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_fd < 0)
		skip("/dev/fuse");
	close(mkstemp(mount_point));
	snprintf(options, sizeof(options), "fd=%d,rootmode=100666,user_id=0,group_id=0,allow_other",
		 fuse_fd);
	if (mount("urxe", mount_point, "fuse", MS_NOSUID | MS_NODEV, options)) {
		unlink(mount_point);
		skip("FUSE mount");
	}
	start_server((uint32_t)getpid());
	fd = open(mount_point, O_RDWR | O_CLOEXEC);
	/* The file system lives as long as the open file. */
	umount2(mount_point, MNT_DETACH);
	unlink(mount_point);
	require(fd >= 0);
	/* The kernel asks for the file's size. */
	require(!fstat(fd, &st));
	return fd;
}
