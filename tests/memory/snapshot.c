/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "snapshot.h"

#include <err.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "row.h"

#define LARGE (16 * MIB)

enum { CHILD_SAW_SNAPSHOT = 0, CHILD_SAW_WRITES = 1, CHILD_FAILED = 2 };

/*
 * The child: tells the parent that it has begun, waits for the parent's writes, compares, and
 * writes itself. System calls only.
 */
static void compare_in_child(struct region *region, int begun, int go)
{
	char byte;
	int status;

	if (write(begun, "", 1) != 1 || read(go, &byte, 1) != 1)
		_exit(CHILD_FAILED);
	status = region_holds(region->bytes, region->size, SNAPSHOT_BEFORE) ? CHILD_SAW_SNAPSHOT
									    : CHILD_SAW_WRITES;
	memset(region->bytes, 0xcc, region->size);
	_exit(status);
}

static int run_child(struct region *region, pid_t (*make_child)(void))
{
	int begun[2], go[2], status;
	pid_t child;
	char byte;

	if (pipe(begun) || pipe(go))
		err(1, "pipe");
	child = make_child();
	if (child < 0)
		err(1, "fork");
	if (!child)
		compare_in_child(region, begun[1], go[0]);
	close(begun[1]);
	/* Until a child has left a poll that its fork interrupted, it could take a completion. */
	if (read(begun[0], &byte, 1) != 1)
		errx(1, "the child ends early");
	region_fill(region, SNAPSHOT_AFTER);
	region->bytes[region->size / 2] = 0xaa;
	if (write(go[1], "", 1) != 1)
		err(1, "write");
	if (waitpid(child, &status, 0) != child)
		err(1, "waitpid");
	close(begun[0]);
	close(go[0]);
	close(go[1]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == CHILD_FAILED)
		errx(1, "the child ends with status %#x", (unsigned int)status);
	return WEXITSTATUS(status);
}

void snapshot_check_forks(struct region *region, pid_t (*make_child)(void), int forks)
{
	int wrong = 0, changed = 0;

	for (int i = 0; i < forks; i++) {
		uint8_t *middle = &region->bytes[region->size / 2];
		bool same;

		region_fill(region, SNAPSHOT_BEFORE);
		wrong += run_child(region, make_child) == CHILD_SAW_WRITES;
		same = *middle == 0xaa;
		*middle = (uint8_t)(SNAPSHOT_AFTER + region->size / 2 / PAGE);
		changed += !same || !region_holds(region->bytes, region->size, SNAPSHOT_AFTER);
	}
	say("children that saw the parent's later writes: %d of %d", wrong, forks);
	say("parents whose memory the child changed: %d of %d", changed, forks);
}

void snapshot_check(struct region *region, pid_t (*make_child)(void))
{
	snapshot_check_forks(region, make_child, region->size > LARGE ? 1 : 5);
}

pid_t snapshot_fork(void)
{
	return fork();
}
