/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that pin memory or count as pinning in /proc, with forks before and after them. */
#include <err.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"
#include "fork.h"
#include "region.h"
#include "row.h"
#include "smaps.h"
#include "snapshot.h"
#include "uring.h"

/* --- Calls that concern other memory, or none */

static void lock_other_page(void)
{
	skip_unless(!mlock(region_reserve(PAGE), PAGE), "mlock");
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
static void register_other_buffer(void)
{
	static struct uring ring;
	uint8_t *other = region_reserve(PAGE);

	skip_unless(!uring_open(&ring), "io_uring_setup");
	skip_unless(!uring_register_buffer(&ring, other, PAGE), "IORING_REGISTER_BUFFERS");
}

static void (*const actions[])(void) = {
	lock_other_page,       open_tun, open_fuse, init_fanotify, open_userfaultfd, set_up_uring,
	register_other_buffer,
};
enum { MLOCK_OTHER, TUN, FUSE, FANOTIFY, USERFAULTFD, URING, URING_OTHER };

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

/* --- Calls that pin the region, and each way to create a child */

static void lock_region(uint8_t *bytes, size_t size)
{
	skip_unless(!mlock(bytes, size), "mlock");
}

static void lock_region_on_fault(uint8_t *bytes, size_t size)
{
	skip_unless(!mlock2(bytes, size, MLOCK_ONFAULT), "mlock2");
}

/* Skips the row if RLIMIT_MEMLOCK forbids the memory that the row maps later. */
static void lock_all(int flags)
{
	const size_t later = 256 * MIB;
	void *probe;

	skip_unless(!mlockall(flags), "mlockall");
	probe = mmap(NULL, later, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	skip_unless(probe != MAP_FAILED, "mmap after mlockall");
	munmap(probe, later);
}

static void lock_present(uint8_t *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	lock_all(MCL_CURRENT);
}

static void lock_future(uint8_t *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	lock_all(MCL_FUTURE);
}

static void lock_on_fault(uint8_t *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	lock_all(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static void register_buffer(uint8_t *bytes, size_t size)
{
	static struct uring ring;

	skip_unless(!uring_open(&ring), "io_uring_setup");
	skip_unless(!uring_register_buffer(&ring, bytes, size), "IORING_REGISTER_BUFFERS");
}

static void read_directly(uint8_t *bytes, size_t size)
{
	int fd = file_make(size, 0x42);
	ssize_t n;

	skip_unless(!fcntl(fd, F_SETFL, O_DIRECT), "O_DIRECT");
	n = pread(fd, bytes, size, 0);
	skip_unless(n >= 0, "read with O_DIRECT");
	if (n != (ssize_t)size)
		errx(1, "read %zd of %zu bytes", n, size);
}

/* The pipe refers to the first pages until the program ends. */
static void splice_into_pipe(uint8_t *bytes, size_t size)
{
	struct iovec pages = {bytes, size < 4 * PAGE ? size : 4 * PAGE};
	int fds[2];

	if (pipe(fds))
		err(1, "pipe");
	skip_unless(vmsplice(fds[1], &pages, 1, 0) > 0, "vmsplice");
}

/* Each page is present, so the kernel reports none as missing. */
static void watch_missing_pages(uint8_t *bytes, size_t size)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register watched = {.range = {(uintptr_t)bytes, size},
					  .mode = UFFDIO_REGISTER_MODE_MISSING};

	skip_unless(fd >= 0, "userfaultfd");
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &watched))
		err(1, "userfaultfd");
}

static void (*const pins[])(uint8_t *bytes, size_t size) = {
	lock_region,     lock_region_on_fault, lock_present,     lock_future,         lock_on_fault,
	register_buffer, read_directly,        splice_into_pipe, watch_missing_pages,
};
enum {
	MLOCK,
	MLOCK_ON_FAULT,
	MLOCKALL_CURRENT,
	MLOCKALL_FUTURE,
	MLOCKALL_ON_FAULT,
	URING_BUFFER,
	DIRECT_READ,
	VMSPLICE,
	UFFD_MISSING
};

/* The argument of a row is a size, a multiple of PAGE, plus a pin. */
static size_t size_of(uintptr_t row)
{
	return row & ~(PAGE - 1);
}

static void pin(uintptr_t row, uint8_t *bytes)
{
	pins[row & (PAGE - 1)](bytes, size_of(row));
}

/* A large region is slow, so only one child copies it. */
static void check_forks(struct region *region)
{
	smaps_say(region->bytes);
	if (region->size > MIB)
		snapshot_check(region, snapshot_fork);
	else
		fork_each_way(region);
	smaps_say(region->bytes);
}

/* MCL_FUTURE concerns only memory that is mapped after the call. */
static void lock_then_register(uintptr_t row)
{
	struct region region;

	pin(row, NULL);
	region = region_map(size_of(row));
	check_forks(&region);
	region_unmap(&region);
}

static void pin_then_register(uintptr_t row)
{
	size_t size = size_of(row);
	uint8_t *bytes = region_reserve(size);
	struct region region;

	memset(bytes, 7, size);
	pin(row, bytes);
	region = region_register(bytes, size);
	check_forks(&region);
	region_unmap(&region);
}

static void register_then_pin(uintptr_t row)
{
	struct region region = region_map(size_of(row));

	if (region.size <= MIB)
		snapshot_check_forks(&region, snapshot_fork, 1);
	region_fill(&region, 3);
	pin(row, region.bytes);
	say("bytes %#x and %#x", region.bytes[0], region.bytes[region.size - 1]);
	check_forks(&region);
	region_unmap(&region);
}

static void lock_and_unlock(uintptr_t size)
{
	struct region region = region_map(size);

	region_fill(&region, 3);
	lock_region(region.bytes, size);
	region_fill(&region, 4);
	if (munlock(region.bytes, size))
		err(1, "munlock");
	say("the memory is the same: %s", region_says(&region, 4));
	check_forks(&region);
	region_unmap(&region);
}

#define BOTH(name, action)                                           \
	{name "_before_registering", act_then_register, action},     \
	{                                                            \
		name "_after_registering", register_then_act, action \
	}

#define ORDERS(name, before, row)                                 \
	{name "_before_registering", before, row},                \
	{                                                         \
		name "_after_registering", register_then_pin, row \
	}

#define SIZES(name, before, pin) \
	ORDERS(name "_1_page", before, PAGE + (pin)), ORDERS(name "_1_mib", before, MIB + (pin))

const struct row pin_rows[] = {
	BOTH("mlock_of_another_page", MLOCK_OTHER),
	BOTH("tun", TUN),
	BOTH("fuse", FUSE),
	BOTH("fanotify", FANOTIFY),
	BOTH("userfaultfd", USERFAULTFD),
	BOTH("io_uring_setup", URING),
	BOTH("io_uring_buffer_elsewhere", URING_OTHER),
	SIZES("mlock", pin_then_register, MLOCK),
	{"mlock_and_munlock", lock_and_unlock, MIB},
	SIZES("mlock_onfault", pin_then_register, MLOCK_ON_FAULT),
	SIZES("mlockall_current", pin_then_register, MLOCKALL_CURRENT),
	SIZES("mlockall_future", lock_then_register, MLOCKALL_FUTURE),
	SIZES("mlockall_onfault", lock_then_register, MLOCKALL_ON_FAULT),
	SIZES("io_uring_buffer", pin_then_register, URING_BUFFER),
	SIZES("o_direct_read", pin_then_register, DIRECT_READ),
	SIZES("vmsplice", pin_then_register, VMSPLICE),
	SIZES("userfaultfd_missing", pin_then_register, UFFD_MISSING),
	ORDERS("mlock_64_mib", pin_then_register, 64 * MIB + MLOCK),
	ORDERS("mlockall_future_64_mib", lock_then_register, 64 * MIB + MLOCKALL_FUTURE),
	ORDERS("io_uring_buffer_64_mib", pin_then_register, 64 * MIB + URING_BUFFER),
	{0},
};
