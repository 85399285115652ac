/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fake_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "require.h"

#define PAGE        4096u
#define FIRST_FD    100000 /* no real descriptor has such a number */
#define FDS         256
#define PARTS       8
#define PART_BYTES  1024
#define PART_FDS    32
#define ARENA_PAGES 4096u

/* Bytes that were sent at once. */
struct part {
	uint8_t bytes[PART_BYTES];
	uint32_t n, taken;
	int fds[PART_FDS];
	uint32_t n_fds;
};

static enum fake_kind kinds_of[FDS];
static uint32_t n_open, next_fd, n_mapped, next_page, room;
static uint64_t file_bytes;
static struct part parts[PARTS];
static uint32_t first_part, n_parts;
static bool is_shut;
static int socket_fd;
/* Pages of the arena lie between pages that are never mapped. */
static uint8_t *arena;
/* A page without access is part of a mapping whose other pages may still be used. */
static enum { PAGE_FREE, PAGE_MAPPED, PAGE_NO_ACCESS } pages[ARENA_PAGES];

/* --- Descriptors */

static bool is_fake(int fd)
{
	return fd >= FIRST_FD && fd < FIRST_FD + FDS;
}

static enum fake_kind kind_of(int fd)
{
	return is_fake(fd) ? kinds_of[fd - FIRST_FD] : FAKE_NONE;
}

/* Numbers are used in turn, so that a number that was closed is not soon another descriptor. */
static int open_fd(enum fake_kind kind)
{
	for (uint32_t i = 0; i < FDS; i++) {
		const uint32_t at = next_fd++ % FDS;

		if (kinds_of[at] != FAKE_NONE)
			continue;
		kinds_of[at] = kind;
		n_open++;
		return FIRST_FD + (int)at;
	}
	require(!"descriptors that nobody closes");
	return -1;
}

static void close_fd(int fd)
{
	require(kind_of(fd) != FAKE_NONE);
	kinds_of[fd - FIRST_FD] = FAKE_NONE;
	n_open--;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
int __wrap_eventfd_write(int fd, eventfd_t value);

/* Descriptors that the server has not received end with the socket. */
static void drop_parts(void)
{
	for (; n_parts; n_parts--, first_part++) {
		struct part *part = &parts[first_part % PARTS];

		for (uint32_t i = 0; !part->taken && i < part->n_fds; i++)
			close_fd(part->fds[i]);
	}
}

int __wrap_close(int fd)
{
	if (!is_fake(fd))
		return __real_close(fd);
	if (fd == socket_fd) {
		drop_parts();
		socket_fd = -1;
	}
	close_fd(fd);
	return 0;
}

/* Files are of memory, which alone has seals. */
int __wrap_fcntl(int fd, int command, ...)
{
	require(kind_of(fd) != FAKE_NONE);
	require(command == F_GETFL || command == F_SETFL || command == F_GET_SEALS);
	if (command == F_GET_SEALS && kind_of(fd) != FAKE_FILE) {
		errno = EINVAL;
		return -1;
	}
	return command == F_GETFL ? O_RDWR : 0;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	require(kind_of(fd) != FAKE_NONE);
	*fs = (struct statfs){
		.f_type = kind_of(fd) == FAKE_FILE ? TMPFS_MAGIC : ANON_INODE_FS_MAGIC,
		.f_bsize = PAGE,
	};
	return 0;
}

int __wrap_fstat(int fd, struct stat *status)
{
	if (!is_fake(fd))
		return __real_fstat(fd, status);
	require(kind_of(fd) != FAKE_NONE);
	*status = (struct stat){
		.st_mode = kind_of(fd) == FAKE_FILE ? S_IFREG : 0,
		.st_size = kind_of(fd) == FAKE_FILE ? (off_t)file_bytes : 0,
	};
	return 0;
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
	(void)value;
	require(kind_of(fd) == FAKE_EVENT || kind_of(fd) == FAKE_FILE);
	return 0;
}

/* --- Mappings */

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t size);
int __wrap_munmap(void *addr, size_t size);
int __real_madvise(void *addr, size_t size, int advice);
int __wrap_madvise(void *addr, size_t size, int advice);

static void set_pages(uint32_t first, size_t n, int state)
{
	for (size_t i = first; i < first + n; i++)
		pages[i] = state;
}

/* Pages from `first` on that are free, with one before and one behind. */
static bool is_free(uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n + 2; i++)
		if (pages[first + i] != PAGE_FREE)
			return false;
	return true;
}

/* Places are used in turn, as numbers of descriptors. */
static void *map_pages(uint32_t n)
{
	for (uint32_t i = 0; i < ARENA_PAGES; i += n + 1) {
		if (next_page + n + 2 > ARENA_PAGES)
			next_page = 0;
		if (is_free(next_page, n)) {
			uint8_t *bytes = arena + (next_page + 1) * (size_t)PAGE;

			set_pages(next_page + 1, n, PAGE_MAPPED);
			next_page += n + 1;
			n_mapped += n;
			ASAN_UNPOISON_MEMORY_REGION(bytes, n * (size_t)PAGE);
			return bytes;
		}
		next_page += n + 1;
	}
	errno = ENOMEM;
	return MAP_FAILED;
}

static bool in_arena(const void *addr)
{
	return arena && (const uint8_t *)addr >= arena &&
	       (const uint8_t *)addr < arena + ARENA_PAGES * (size_t)PAGE;
}

/* The first page of bytes that are all part of mappings. */
static uint32_t find_pages(const void *addr, size_t size)
{
	const size_t at = (size_t)((const uint8_t *)addr - arena);

	require(at % PAGE == 0 && size && size % PAGE == 0);
	require(at + size <= ARENA_PAGES * (size_t)PAGE);
	for (size_t i = at / PAGE; i < (at + size) / PAGE; i++)
		require(pages[i] != PAGE_FREE);
	return (uint32_t)(at / PAGE);
}

static void *forbid_access(void *addr, size_t size)
{
	set_pages(find_pages(addr, size), size / PAGE, PAGE_NO_ACCESS);
	ASAN_POISON_MEMORY_REGION(addr, size);
	return addr;
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (in_arena(addr)) {
		require(flags & MAP_FIXED && flags & MAP_ANONYMOUS && prot == PROT_NONE);
		return forbid_access(addr, size);
	}
	if (!is_fake(fd))
		return __real_mmap(addr, size, prot, flags, fd, offset);
	if (kind_of(fd) != FAKE_FILE) {
		errno = ENODEV;
		return MAP_FAILED;
	}
	/* Behind the file's end is nothing that could be read. */
	require(size && size % PAGE == 0 && offset % PAGE == 0);
	require((uint64_t)offset + size <= file_bytes);
	return map_pages((uint32_t)(size / PAGE));
}

int __wrap_munmap(void *addr, size_t size)
{
	if (!in_arena(addr))
		return __real_munmap(addr, size);
	set_pages(find_pages(addr, size), size / PAGE, PAGE_FREE);
	n_mapped -= (uint32_t)(size / PAGE);
	ASAN_POISON_MEMORY_REGION(addr, size);
	return 0;
}

int __wrap_madvise(void *addr, size_t size, int advice)
{
	if (!in_arena(addr))
		return __real_madvise(addr, size, advice);
	find_pages(addr, size);
	return 0;
}

/* --- Socket */

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

static bool give_fds(struct part *part, struct msghdr *msg)
{
	struct cmsghdr *cmsg = msg->msg_control;
	const uint32_t most =
		(uint32_t)((msg->msg_controllen - CMSG_LEN(0)) / sizeof(part->fds[0]));
	const uint32_t n = part->n_fds < most ? part->n_fds : most;

	for (uint32_t i = n; i < part->n_fds; i++)
		close_fd(part->fds[i]);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(part->fds[0]));
	memcpy(CMSG_DATA(cmsg), part->fds, n * sizeof(part->fds[0]));
	msg->msg_controllen = CMSG_SPACE(n * sizeof(part->fds[0]));
	return n == part->n_fds;
}

/* As a stream socket: at most one part, whose descriptors come with its first byte. */
static size_t take_bytes(struct part *part, struct msghdr *msg)
{
	const size_t left = part->n - part->taken, size = msg->msg_iov[0].iov_len;
	const size_t n = size < left ? size : left;

	if (part->n_fds && !part->taken)
		msg->msg_flags = give_fds(part, msg) ? 0 : MSG_CTRUNC;
	else
		msg->msg_controllen = 0;
	memcpy(msg->msg_iov[0].iov_base, part->bytes + part->taken, n);
	part->taken += (uint32_t)n;
	return n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct part *part = &parts[first_part % PARTS];
	size_t n;

	require(fd == socket_fd && flags & MSG_DONTWAIT && flags & MSG_CMSG_CLOEXEC);
	require(msg->msg_iovlen == 1 && msg->msg_iov[0].iov_len);
	msg->msg_flags = 0;
	if (!n_parts) {
		msg->msg_controllen = 0;
		errno = EAGAIN;
		return is_shut ? 0 : -1;
	}
	n = take_bytes(part, msg);
	if (part->taken == part->n) {
		first_part++;
		n_parts--;
	}
	return (ssize_t)n;
}

/* The functions of these tests have no mapped BAR, so no reply has a descriptor. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const uint8_t *bytes = msg->msg_iov[0].iov_base;
	size_t n = msg->msg_iov[0].iov_len;

	require(fd == socket_fd && n && flags & MSG_DONTWAIT && flags & MSG_NOSIGNAL);
	require(msg->msg_iovlen == 1 && !msg->msg_controllen);
	(void)*(const volatile uint8_t *)bytes;
	(void)((const volatile uint8_t *)bytes)[n - 1];
	if (!room) {
		errno = EAGAIN;
		return -1;
	}
	if (n > room)
		n = room;
	room -= (uint32_t)n;
	return (ssize_t)n;
}

/* --- The client */

void fake_client_open(uint64_t file_size)
{
	if (!arena) {
		arena = aligned_alloc(PAGE, ARENA_PAGES * (size_t)PAGE);
		require(arena);
		ASAN_POISON_MEMORY_REGION(arena, ARENA_PAGES * (size_t)PAGE);
	}
	require(!n_open && !n_mapped);
	file_bytes = file_size;
	next_fd = next_page = 0;
	socket_fd = -1;
}

int fake_client_connect(void)
{
	require(socket_fd < 0);
	socket_fd = open_fd(FAKE_SOCKET);
	first_part = n_parts = 0;
	is_shut = false;
	return socket_fd;
}

bool fake_client_connected(void)
{
	return socket_fd >= 0;
}

bool fake_client_send(const uint8_t *bytes, uint32_t n, const enum fake_kind *kinds,
		      uint32_t n_kinds)
{
	struct part *part = &parts[(first_part + n_parts) % PARTS];

	require(n && n <= PART_BYTES && n_kinds <= PART_FDS);
	if (socket_fd < 0 || n_parts == PARTS || is_shut)
		return false;
	part->n = n;
	part->taken = 0;
	part->n_fds = n_kinds;
	memcpy(part->bytes, bytes, n);
	for (uint32_t i = 0; i < n_kinds; i++)
		part->fds[i] = open_fd(kinds[i]);
	n_parts++;
	return true;
}

void fake_client_shut(void)
{
	is_shut = true;
}

void fake_client_room(uint32_t bytes)
{
	room = bytes;
}

uint32_t fake_client_fds(void)
{
	return n_open;
}

uint32_t fake_client_pages(void)
{
	return n_mapped;
}
