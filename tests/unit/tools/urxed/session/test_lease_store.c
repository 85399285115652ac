/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptor_limit.h"
#include "urxed/session/lease_store.h"
#include "urxed/session/process_info.h"

#define A    (3 * LEASE_QPNS)
#define B    (7 * LEASE_QPNS)
#define C    (9 * LEASE_QPNS)
#define USER 1000

static char dir[32];
static char name[64];
static struct lease_store *r;

/* --- In place of the kernel */

/* As Linux before 6.9, a pidfd has no inode of its own. */
static bool old_kernel;
/* The errno value with which /proc hides other processes (hidepid); 0 = it does not. */
static int hides_processes;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

int __wrap_open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (flags & O_CREAT) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (!hides_processes || strncmp(path, "/proc/", 6) != 0 || !strstr(path, "/stat"))
		return __real_open64(path, flags, mode);
	errno = hides_processes;
	return -1;
}

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	int rc = __real_fstatfs64(fd, fs);

	if (old_kernel)
		fs->f_type = 0;
	return rc;
}

static int setup(void **state)
{
	(void)state;
	old_kernel = false;
	hides_processes = 0;
	strcpy(dir, "/tmp/test-record-XXXXXX");
	r = malloc(sizeof(*r));
	if (!r || !mkdtemp(dir))
		return -1;
	snprintf(name, sizeof(name), "%s/" LEASE_STORE_NAME, dir);
	return lease_store_open(r, dir);
}

static int teardown(void **state)
{
	(void)state;
	lease_store_end_claims(r, 0, NULL, NULL);
	close(r->fd);
	free(r);
	unlink(name);
	return rmdir(dir);
}

/* Closes the store as a killed daemon does, and opens it as the next one. */
static void open_again(void)
{
	close(r->fd);
	assert_int_equal(lease_store_open(r, dir), 0);
}

/* A process that does nothing until it is killed. */
static pid_t start_process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (!pid)
		pause();
	return pid;
}

static void end_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void first_daemon_has_no_claims(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
}

static void a_survivor_claims_with_its_token(void **state)
{
	uint64_t a, b;

	(void)state;
	a = lease_store_add(r, A, getpid(), USER, 0);
	b = lease_store_add(r, B, getpid(), USER, 0);
	assert_int_not_equal(a, 0);
	assert_int_not_equal(a, b);
	assert_int_equal(lease_store_prune_claims(r), 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 2);
	/* A QPN has 24 bits. */
	assert_int_equal(lease_store_claim(r, A | 1u << 24, a, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, A, a, getpid(), USER), 0);
	assert_int_equal(lease_store_prune_claims(r), 1);
	assert_int_equal(lease_store_claim(r, B, b, getpid(), USER), 0);
	assert_int_equal(lease_store_prune_claims(r), 0);
}

static void one_token_claims_all_blocks_of_a_process(void **state)
{
	uint64_t token;

	(void)state;
	token = lease_store_add(r, A, getpid(), USER, 0);
	assert_int_equal(lease_store_add(r, B, getpid(), USER, token), token);
	assert_int_equal(lease_store_claimable_qpn(r, token, getpid()), 0);
	open_again();
	assert_int_equal(lease_store_claimable_qpn(r, token, getpid()), A);
	assert_int_equal(lease_store_claimable_qpn(r, token, getppid()), 0);
	assert_int_equal(lease_store_claimable_qpn(r, token + 1, getpid()), 0);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER), 0);
	assert_int_equal(lease_store_claimable_qpn(r, token, getpid()), B);
	assert_int_equal(lease_store_claim(r, B, token, getpid(), USER), 0);
	assert_int_equal(lease_store_claimable_qpn(r, token, getpid()), 0);
}

static void put_remote(uint32_t place, uint32_t process)
{
	const struct remote_qp_record record = {.key = {.gid = {0xfe, 0x80, [15] = 1}, .qpn = 1},
						.local = process << LEASE_SHIFT,
						.process = process,
						.order = place};

	lease_store_put_remote(r, place, &record);
}

static void remote_qps_of_survivors_are_restored(void **state)
{
	struct remote_qp_record record;
	pid_t pid = start_process();

	(void)state;
	assert_int_equal(lease_store_get_remote(r, 0, &record), -ENODATA);
	lease_store_add(r, A, getpid(), USER, 0);
	lease_store_add(r, B, pid, USER, 0);
	put_remote(2, lease_block(A));
	put_remote(3, lease_block(B));
	put_remote(4, lease_block(A));
	put_remote(4, 0);
	put_remote(5, LEASE_BLOCKS + 1);
	end_process(pid);
	open_again();
	assert_int_equal(lease_store_get_remote(r, 0, &record), -ENOENT);
	assert_int_equal(lease_store_get_remote(r, 2, &record), 0);
	assert_int_equal(record.key.gid[15], 1);
	assert_int_equal(record.key.qpn, 1);
	assert_int_equal(record.local, A);
	assert_int_equal(record.process, lease_block(A));
	assert_int_equal(record.order, 2);
	for (uint32_t place = 3; place < 6; place++)
		assert_int_equal(lease_store_get_remote(r, place, &record), -ENOENT);
	assert_int_equal(lease_store_get_remote(r, 6, &record), -ENODATA);
	/* The next process with this block does not get the remote QP either. */
	lease_store_add(r, B, getpid(), USER, 0);
	open_again();
	assert_int_equal(lease_store_get_remote(r, 3, &record), -ENOENT);
}

static void any_other_claim_is_refused(void **state)
{
	uint64_t token;

	(void)state;
	token = lease_store_add(r, A, getpid(), USER, 0);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER),
			 -EPERM); /* already leased */
	open_again();
	assert_int_equal(lease_store_claim(r, A, token + 1, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, A, 0, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, A, token, getppid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, A + 1, token, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, B, token, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, B, 0, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, UINT32_MAX, token, getpid(), USER), -EPERM);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER), 0);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER),
			 -EPERM); /* already claimed */
}

static void ended_process_has_no_claim(void **state)
{
	pid_t pid = start_process();

	(void)state;
	lease_store_add(r, A, pid, USER, 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 1);
	assert_int_equal(r->last, A / LEASE_QPNS);
	end_process(pid);
	assert_int_equal(lease_store_prune_claims(r), 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_int_equal(r->last, A / LEASE_QPNS);

	pid = start_process();
	lease_store_add(r, A, pid, USER, 0);
	end_process(pid);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_int_equal(r->last, A / LEASE_QPNS);
}

static void *wait_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

/* /proc shows the process as a zombie while another of its threads runs. */
static void process_lives_after_its_first_thread_ended(void **state)
{
	char path[32], text[512] = "";
	pthread_t thread;
	pid_t pid = fork();
	uint64_t token;
	int fd;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (!strstr(text, ") Z ")) {
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0);
		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
	}
	token = lease_store_add(r, A, pid, USER, 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 1);
	assert_int_equal(lease_store_claim(r, A, token, pid, USER), 0);
	end_process(pid);
}

static void zombie_counts_as_ended(void **state)
{
	siginfo_t info;
	pid_t pid = start_process();

	(void)state;
	lease_store_add(r, A, pid, USER, 0);
	open_again();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Its users have no right to trace the processes of others, and neither has the daemon. */
static void process_that_proc_hides_lives(void **state)
{
	static const int errors[] = {ENOENT, EPERM};
	uint64_t token;
	pid_t pid;

	(void)state;
	old_kernel = true;
	for (int i = 0; i < 4; i++) {
		pid = start_process();
		/* Hidden before the lease, or from then on. */
		hides_processes = i < 2 ? errors[i] : 0;
		token = lease_store_add(r, A, pid, USER, 0);
		hides_processes = errors[i % 2];
		open_again();
		assert_int_equal(lease_store_prune_claims(r), 1);
		assert_int_equal(lease_store_claim(r, A, token, pid, USER), 0);
		open_again();
		end_process(pid);
		assert_int_equal(lease_store_prune_claims(r), 0);
	}
}

/* Another process may have got the same PID. */
static void start_time_distinguishes_reused_pids(void **state)
{
	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	r->entries[A / LEASE_QPNS].start++;
	lease_store_remove(r, B);
	/* The store writes an entry only when it changes, so the test writes the entries itself. */
	assert_int_not_equal(
		lseek(r->fd, -(off_t)(sizeof(r->entries) + sizeof(r->addresses)), SEEK_END), -1);
	assert_int_equal(write(r->fd, r->entries, sizeof(r->entries)), sizeof(r->entries));
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
}

static void removed_and_unclaimed_blocks_are_free(void **state)
{
	uint64_t token;

	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	token = lease_store_add(r, B, getpid(), USER, 0);
	lease_store_remove(r, A);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 1);
	lease_store_end_claims(r, 0, NULL, NULL);
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_int_equal(lease_store_claim(r, B, token, getpid(), USER), -EPERM);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
}

/* The number of a process that did not claim belongs to the next process with the block. */
static void a_new_lease_replaces_the_process_that_did_not_claim(void **state)
{
	pid_t next = start_process();

	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	open_again();
	lease_store_end_claims(r, 0, NULL, NULL);
	assert_true(lease_store_lives_without_claim(r, lease_block(A)));
	lease_store_add(r, A, next, USER, 0);
	end_process(next);
	lease_store_remove(r, A);
	assert_false(lease_store_lives_without_claim(r, lease_block(A)));
}

/* Nothing tells the daemon whether the process lives. */
static void living_process_keeps_its_block_while_descriptors_lack(void **state)
{
	const uint64_t token = lease_store_add(r, A, getpid(), USER, 0);
	struct rlimit limit;

	(void)state;
	open_again();
	limit = descriptor_limit_reach();
	assert_int_equal(lease_store_prune_claims(r), 1);
	assert_true(lease_store_is_alive(r, A));
	descriptor_limit_restore(&limit);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER), 0);
}

static void block_leased_while_descriptors_lack_can_be_claimed(void **state)
{
	const pid_t ends = start_process();
	struct rlimit limit = descriptor_limit_reach();
	const uint64_t token = lease_store_add(r, A, getpid(), USER, 0);

	(void)state;
	lease_store_add(r, B, ends, USER, 0);
	descriptor_limit_restore(&limit);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 2);
	end_process(ends);
	assert_int_equal(lease_store_prune_claims(r), 1);
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER), 0);
}

/* The next daemon goes on where this one was, also if the last blocks are not leased any more. */
static void the_rotation_goes_on_in_the_next_daemon(void **state)
{
	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	lease_store_add(r, C, getpid(), USER, 0);
	lease_store_add(r, B, getpid(), USER, 0);
	lease_store_remove(r, B);
	lease_store_remove(r, C);
	open_again();
	assert_int_equal(r->last, lease_block(B));
	assert_int_equal(r->past[lease_block(B)].user, 1 + USER);
	assert_int_not_equal(r->past[lease_block(B)].ended_at, 0);
	assert_int_equal(r->past[lease_block(A)].ended_at, 0);
}

/* When it ended is unknown. */
static void a_process_that_ended_without_a_daemon_ends_at_the_start_of_the_next(void **state)
{
	const pid_t pid = start_process();

	(void)state;
	lease_store_add(r, A, pid, USER, 0);
	end_process(pid);
	open_again();
	assert_int_equal(r->past[lease_block(A)].user, 1 + USER);
	assert_int_not_equal(r->past[lease_block(A)].ended_at, 0);
}

static void file_stays_while_ended_leases_matter(void **state)
{
	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	lease_store_remove(r, A);
	assert_false(lease_store_close(r, dir, true));
	assert_int_equal(access(name, F_OK), 0);
	assert_int_equal(lease_store_open(r, dir), 0);
	assert_int_equal(r->past[lease_block(A)].user, 1 + USER);
	lease_store_close(r, dir, false);
	assert_int_equal(access(name, F_OK), -1);
	assert_int_equal(lease_store_open(r, dir), 0);
}

static bool is_frozen(void *ctx, pid_t pid)
{
	return *(const pid_t *)ctx == pid;
}

static void frozen_process_claims_late(void **state)
{
	pid_t frozen = start_process(), ends = start_process();
	uint64_t token = lease_store_add(r, A, frozen, USER, 0);

	(void)state;
	lease_store_add(r, B, getpid(), USER, 0);
	lease_store_add(r, C, ends, USER, 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 3);
	lease_store_end_claims(r, 0, is_frozen, &frozen);
	assert_int_equal(lease_store_prune_claims(r), 0);
	assert_true(r->claimable[lease_block(A)]);
	assert_false(r->claimable[lease_block(B)]);
	assert_int_equal(lease_store_claim(r, A, token, frozen, USER), 0);
	/* The next daemon waits for the process again. A frozen process that ends has no claim. */
	end_process(ends);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 1);
	lease_store_end_claims(r, 0, is_frozen, &frozen);
	end_process(frozen);
	lease_store_end_claims(r, 0, is_frozen, &frozen);
	assert_int_equal(r->n_claimable, 0);
}

static void file_stays_while_it_has_a_lease(void **state)
{
	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	assert_true(lease_store_close(r, dir, false));
	/* Sessions that close after the store must not remove their leases from the file. */
	lease_store_remove(r, A);
	assert_int_equal(access(name, F_OK), 0);
	assert_int_equal(lease_store_open(r, dir), 0);
	assert_int_equal(lease_store_prune_claims(r), 1);
	lease_store_remove(r, A);
	lease_store_close(r, dir, false);
	assert_int_equal(access(name, F_OK), -1);
	assert_int_equal(lease_store_open(r, dir), 0);
}

/* Truncated or overwritten anywhere, the file counts as empty, or its entries are checked. */
static void damaged_file_counts_as_empty(void **state)
{
	struct stat st;

	(void)state;
	lease_store_add(r, A, getpid(), USER, 0);
	assert_int_equal(fstat(r->fd, &st), 0);
	assert_int_equal(ftruncate(r->fd, st.st_size - 1), 0);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
	lease_store_add(r, A, getpid(), USER, 0);
	assert_int_equal(pwrite(r->fd, "X", 1, 3), 1);
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
	memset(r->entries, 0xff, sizeof(r->entries));
	assert_int_equal(pwrite(r->fd, r->entries, sizeof(r->entries),
				st.st_size - (off_t)sizeof(r->entries)),
			 sizeof(r->entries));
	open_again();
	assert_int_equal(lease_store_prune_claims(r), 0);
}

/* Leases survive an upgrade from a daemon whose file does not tell who had a block last. */
static void a_file_of_format_4_is_read(void **state)
{
	const off_t header = 16 + PROCESS_BOOT;
	uint8_t *file;
	uint64_t token;
	struct stat st;

	(void)state;
	lease_store_add(r, B, getpid(), USER, 0);
	token = lease_store_add(r, A, getpid(), USER, 0);
	lease_store_put_remote(r, 7, &(struct remote_qp_record){.process = lease_block(A)});
	assert_int_equal(fstat(r->fd, &st), 0);
	file = malloc((size_t)st.st_size);
	assert_non_null(file);
	assert_int_equal(pread(r->fd, file, (size_t)st.st_size, 0), st.st_size);
	file[strlen("urxed leases ")] = '4';
	st.st_size -= (off_t)sizeof(r->past);
	memmove(file + header, file + header + sizeof(r->past), (size_t)(st.st_size - header));
	assert_int_equal(ftruncate(r->fd, st.st_size), 0);
	assert_int_equal(pwrite(r->fd, file, (size_t)st.st_size, 0), st.st_size);
	free(file);
	for (int daemons = 0; daemons < 2; daemons++) {
		struct remote_qp_record record;

		open_again();
		assert_int_equal(lease_store_prune_claims(r), 2);
		assert_int_equal(r->past[lease_block(A)].user, 0);
		assert_int_equal(lease_store_get_remote(r, 7, &record), 0);
		assert_int_equal(lease_store_get_remote(r, 8, &record), -ENODATA);
	}
	assert_int_equal(r->last, lease_block(B));
	assert_int_equal(lease_store_claim(r, A, token, getpid(), USER), 0);
	assert_int_equal(r->past[lease_block(A)].user, 1 + USER);
}

static void symbolic_link_is_not_followed(void **state)
{
	(void)state;
	lease_store_close(r, dir, false);
	assert_int_equal(symlink("/dev/null", name), 0);
	assert_int_equal(lease_store_open(r, dir), -ELOOP);
	unlink(name);
	assert_int_equal(lease_store_open(r, dir), 0);
}

static void addresses_keep_their_indices(void **state)
{
	struct host before, after;

	(void)state;
	host_init(&before);
	assert_int_equal(host_add_text(&before, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&before, "192.0.2.2/24@7", 0), 0);
	assert_int_equal(host_add_text(&before, "192.0.2.3/24", 0), 0);
	lease_store_put_addresses(r, &before);
	open_again();
	host_init(&after);
	lease_store_reserve_addresses(r, &after);
	assert_null(host_address_by_gid(&after, 0));
	assert_int_equal(host_add_text(&after, "192.0.2.3/24", 0), 0);
	assert_int_equal(host_add_text(&after, "192.0.2.2/24@7", 0), 0);
	assert_int_equal(host_add_text(&after, "192.0.2.9/24", 0), 0);
	assert_null(host_address_by_gid(&after, 0));
	assert_int_equal(host_address_by_gid(&after, 1)->ip[15], 2);
	assert_int_equal(host_address_by_gid(&after, 2)->ip[15], 3);
	assert_int_equal(host_address_by_gid(&after, 3)->ip[15], 9);
	/* A missing address keeps its reservation until another address gets the index. */
	lease_store_put_addresses(r, &after);
	open_again();
	host_init(&after);
	lease_store_reserve_addresses(r, &after);
	assert_int_equal(host_add_text(&after, "192.0.2.8/24", 0), 0);
	assert_int_equal(host_add_text(&after, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_address_by_gid(&after, 0)->ip[15], 1);
}

static struct host_address v4(uint8_t n)
{
	struct host_address a = {.prefix_len = IP_V4_BITS + 24};

	ip_from_v4(a.ip, (const uint8_t[]){192, 0, 2, n});
	return a;
}

/* All indices are recorded; the addresses 3 and 2 have gone, in this order. */
static void a_new_address_takes_the_index_that_was_freed_first(void **state)
{
	struct host_address list[HOST_ADDRESSES];
	struct host before, after;
	uint32_t n;

	(void)state;
	host_init(&before);
	for (n = 0; n < HOST_ADDRESSES; n++)
		list[n] = v4((uint8_t)n);
	assert_int_equal(host_set_kernel_addresses(&before, list, n), 0);
	list[3] = list[--n];
	host_set_kernel_addresses(&before, list, n);
	list[2] = list[--n];
	host_set_kernel_addresses(&before, list, n);
	/* The age lasts longer than one daemon. */
	for (int daemons = 0; daemons < 2; daemons++) {
		lease_store_put_addresses(r, &before);
		open_again();
		host_init(&after);
		lease_store_reserve_addresses(r, &after);
		before = after;
		host_set_kernel_addresses(&before, list, n);
	}
	assert_int_equal(host_add_text(&after, "192.0.2.101/24", 0), 0);
	assert_int_equal(host_add_text(&after, "192.0.2.102/24", 0), 0);
	assert_int_equal(host_address_by_gid(&after, 3)->ip[15], 101);
	assert_int_equal(host_address_by_gid(&after, 2)->ip[15], 102);
}

/* The kernel writes what fits, and gives the reason only for the rest. */
static void a_file_that_cannot_grow_is_refused_with_the_reason(void **state)
{
	struct rlimit old, small;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(r->fd, &st), 0);
	lease_store_close(r, dir, false);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = (rlim_t)st.st_size - 1, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	errno = 0;
	assert_int_equal(lease_store_open(r, dir), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(lease_store_open(r, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_daemon_has_no_claims, setup, teardown),
		cmocka_unit_test_setup_teardown(a_survivor_claims_with_its_token, setup, teardown),
		cmocka_unit_test_setup_teardown(the_rotation_goes_on_in_the_next_daemon, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_process_that_ended_without_a_daemon_ends_at_the_start_of_the_next, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_file_of_format_4_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(file_stays_while_ended_leases_matter, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_token_claims_all_blocks_of_a_process, setup,
						teardown),
		cmocka_unit_test_setup_teardown(remote_qps_of_survivors_are_restored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(any_other_claim_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(ended_process_has_no_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(process_lives_after_its_first_thread_ended, setup,
						teardown),
		cmocka_unit_test_setup_teardown(zombie_counts_as_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(process_that_proc_hides_lives, setup, teardown),
		cmocka_unit_test_setup_teardown(start_time_distinguishes_reused_pids, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			living_process_keeps_its_block_while_descriptors_lack, setup, teardown),
		cmocka_unit_test_setup_teardown(block_leased_while_descriptors_lack_can_be_claimed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(frozen_process_claims_late, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_lease_replaces_the_process_that_did_not_claim,
						setup, teardown),
		cmocka_unit_test_setup_teardown(removed_and_unclaimed_blocks_are_free, setup,
						teardown),
		cmocka_unit_test_setup_teardown(file_stays_while_it_has_a_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_file_counts_as_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(symbolic_link_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_keep_their_indices, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_address_takes_the_index_that_was_freed_first,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_grow_is_refused_with_the_reason,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
