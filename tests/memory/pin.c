/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that pin memory or count as pinning in /proc, with forks before and after them. */
#include <err.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "region.h"
#include "row.h"
#include "snapshot.h"
#include "uring.h"

static void lock_other_page(void)
{
	skip_unless(!mlock(region_reserve(PAGE), PAGE), "mlock");
}

static void lock_everything(void)
{
	skip_unless(!mlockall(MCL_CURRENT), "mlockall");
}

static void open_or_skip(const char *path)
{
	skip_unless(open(path, O_RDWR | O_CLOEXEC) >= 0, path);
}

static void open_tun(void)
{
	open_or_skip("/dev/net/tun");
}

static void open_fuse(void)
{
	open_or_skip("/dev/fuse");
}

static void init_fanotify(void)
{
	skip_unless(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY) >= 0,
		    "fanotify_init");
}

static void open_userfaultfd(void)
{
	skip_unless(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) >= 0, "userfaultfd");
}

static void set_up_uring(void)
{
	static struct uring ring;

	skip_unless(!uring_open(&ring), "io_uring_setup");
}

/* Registers another buffer with a ring; the region itself is not pinned. */
static void register_buffers(void)
{
	static struct uring ring;
	uint8_t *other = region_reserve(PAGE);

	skip_unless(!uring_open(&ring), "io_uring_setup");
	skip_unless(!uring_register_buffer(&ring, other, PAGE), "IORING_REGISTER_BUFFERS");
}

static void (*const actions[])(void) = {
	lock_other_page, lock_everything,  open_tun,     open_fuse,
	init_fanotify,   open_userfaultfd, set_up_uring, register_buffers,
};
enum { MLOCK, MLOCKALL, TUN, FUSE, FANOTIFY, USERFAULTFD, URING, BUFFERS };

static void act_then_register(uintptr_t action)
{
	struct region region;

	actions[action]();
	region = region_map(MIB);
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void register_then_act(uintptr_t action)
{
	struct region region = region_map(MIB);

	region_fill(&region, 3);
	actions[action]();
	say("the memory is the same: %s", region_says(&region, 3));
	snapshot_check(&region, snapshot_fork);
	region_unmap(&region);
}

static void lock_region(uintptr_t unused)
{
	struct region region = region_map(MIB);

	(void)unused;
	region_fill(&region, 3);
	skip_unless(!mlock(region.bytes, region.size), "mlock");
	say("the memory is the same: %s", region_says(&region, 3));
	snapshot_check(&region, snapshot_fork);
	if (munlock(region.bytes, region.size))
		err(1, "munlock");
	region_unmap(&region);
}

#define BOTH(name, action)                                           \
	{name "_before_registering", act_then_register, action},     \
	{                                                            \
		name "_after_registering", register_then_act, action \
	}

const struct row pin_rows[] = {
	BOTH("mlock_of_another_page", MLOCK),
	BOTH("mlockall", MLOCKALL),
	BOTH("tun", TUN),
	BOTH("fuse", FUSE),
	BOTH("fanotify", FANOTIFY),
	BOTH("userfaultfd", USERFAULTFD),
	BOTH("io_uring_setup", URING),
	BOTH("io_uring_buffers", BUFFERS),
	{"mlock_of_the_region", lock_region, 0},
	{0},
};
