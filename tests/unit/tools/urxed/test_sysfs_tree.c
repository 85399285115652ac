/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/rundir.h"
#include "urxed/device_files.h"
#include "urxed/sysfs_tree.h"

#define CLASS "sys/class/infiniband/urxe0/"

static char top[] = "/tmp/test-sysfs-XXXXXX";
static struct host host;
static long processors;

/* Replaces libc's sysconf, to set the number of CPUs. */
long __sysconf(int name);
long sysconf(int name)
{
	return name == _SC_NPROCESSORS_CONF ? processors : __sysconf(name);
}

static bool no_memory; /* for the list of a directory */

/* Replaces libc's fdopendir, to let it fail. */
DIR *fdopendir(int fd)
{
	DIR *(*real)(int) = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");

	if (!no_memory)
		return real(fd);
	errno = ENOMEM;
	return NULL;
}

static void (*renamed)(const char *name); /* looks at the tree after each file; may be NULL */

/* Replaces libc's renameat, to look at the tree while it is written. */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (syscall(SYS_renameat2, from_dir, from, to_dir, to, 0))
		return -1;
	if (renamed)
		renamed(to);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	host_init(&host);
	return !mkdtemp(top) || host_add_generated(&host);
}

static int teardown(void **state)
{
	(void)state;
	sysfs_tree_remove(top);
	return rmdir(top);
}

static void read_text(const char *name, char text[PATH_MAX])
{
	char path[PATH_MAX];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, PATH_MAX - 1, f);
	text[n] = '\0';
	fclose(f);
}

static void expect_text(const char *name, const char *text)
{
	char found[PATH_MAX];

	read_text(name, found);
	assert_string_equal(found, text);
}

static struct timespec device_time(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s", top, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mtim;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* libibverbs knows a device by the time of its directory (same_sysfs_dev). */
static void time_of_the_device_names_it(void **state)
{
	struct timespec first, other;
	struct host now = host;

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	first = device_time("urxe0");
	sysfs_tree_remove(top);
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	assert_true(is_same_time(device_time("urxe0"), first));

	snprintf(now.device, sizeof(now.device), "other0");
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	other = device_time("other0");
	assert_false(is_same_time(other, first));
	now = host;
	now.mac[5]++;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	assert_false(is_same_time(device_time("urxe0"), first));
}

static struct timespec named; /* the time that names the device */

static void expect_named(const char *name)
{
	(void)name;
	assert_true(is_same_time(device_time("urxe0"), named));
}

static void set_named_at_gids(const char *name)
{
	if (strstr(name, "/gids/"))
		named = device_time("urxe0");
}

/* As an urxed of another version does. */
static void write_other_version(void)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" CLASS "fw_ver", top);
	assert_int_equal(chmod(path, 0644), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("other\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Programs list devices also while a daemon takes over the tree of one of another version. */
static void upgrade_leaves_the_time_of_the_device(void **state)
{
	struct host now = host;
	char version[PATH_MAX];

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	read_text(CLASS "fw_ver", version);
	named = device_time("urxe0");
	write_other_version();
	now.up = !now.up;
	renamed = expect_named;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	renamed = NULL;
	expect_text(CLASS "fw_ver", version);
}

static void version_of_an_earlier_tree_is_replaced(void **state)
{
	char path[PATH_MAX], version[PATH_MAX];

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	read_text(CLASS "fw_ver", version);
	named = device_time("urxe0");
	snprintf(path, sizeof(path), "%s/" CLASS "fw_ver", top);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT, 0644)), 0);
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	expect_text(CLASS "fw_ver", version);
	assert_true(is_same_time(device_time("urxe0"), named));
}

static void new_device_has_its_time_before_its_gids(void **state)
{
	struct host now = host;

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	now.mac[5]++;
	assert_int_equal(host_add_text(&now, "192.0.2.9/24", 0), 0);
	renamed = set_named_at_gids;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	renamed = NULL;
	assert_true(is_same_time(device_time("urxe0"), named));
}

static ino_t inode_of(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void expect_none(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(access(path, F_OK), -1);
}

static void make_link(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(symlink("/dev/null", path), 0);
}

/* Programs of an earlier daemon read its tree until, and while, the next daemon takes it over. */
static void tree_of_an_earlier_daemon_stays(void **state)
{
	struct host now = host;
	ino_t directory, gid, guid;

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	directory = inode_of(CLASS);
	gid = inode_of(CLASS "ports/1/gids/0");
	guid = inode_of(CLASS "node_guid");
	make_link("sys/class/infiniband/kernel0");
	make_link("sys/class/infiniband/other0");
	make_link("sys/.unfinished"); /* of a killed daemon */
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	assert_int_equal(inode_of(CLASS), directory);
	assert_int_equal(inode_of(CLASS "ports/1/gids/0"), gid);
	assert_int_equal(inode_of(CLASS "node_guid"), guid);
	assert_int_equal(inode_of("sys/class/infiniband/kernel0"), inode_of("../../dev/null"));

	snprintf(now.device, sizeof(now.device), "other0");
	snprintf(now.ndev, sizeof(now.ndev), "eth0");
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	expect_none(CLASS);
	expect_none("sys/class/infiniband/other0/device/net/lo");
	expect_text("sys/class/infiniband/other0/node_type", "1: CA\n");
}

static int count_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void lack_of_memory_leaves_no_descriptor_open(void **state)
{
	const int n = count_open_fds();

	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	no_memory = true;
	(void)sysfs_tree_create(top, &host, 0);
	no_memory = false;
	assert_int_equal(count_open_fds(), n);
}

static void local_cpus_of_2_and_33_cpus(void **state)
{
	(void)state;
	processors = 2;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	expect_text(CLASS "device/local_cpus", "00000003\n");
	expect_text(CLASS "device/local_cpulist", "0-1\n");
	processors = 33;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	expect_text(CLASS "device/local_cpus", "00000001,ffffffff\n");
	expect_text(CLASS "device/local_cpulist", "0-32\n");
}

/* Linux supports at most 8,192 CPUs (CONFIG_NR_CPUS). */
static void local_cpus_of_8192_cpus(void **state)
{
	static char words[8192 / 32 * 9 + 1];
	size_t i;

	(void)state;
	for (i = 0; i < 8192 / 32; i++)
		strcat(words, i ? ",ffffffff" : "ffffffff");
	strcat(words, "\n");
	processors = 8192;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	expect_text(CLASS "device/local_cpus", words);
	expect_text(CLASS "device/local_cpulist", "0-8191\n");
}

static void too_long_attribute_is_an_error(void **state)
{
	char path[PATH_MAX];

	(void)state;
	processors = 1000000;
	assert_int_equal(sysfs_tree_create(top, &host, 0), -EOVERFLOW);
	snprintf(path, sizeof(path), "%s/sys", top);
	assert_int_equal(access(path, F_OK), -1);
}

static void pkey_table_is_written(void **state)
{
	(void)state;
	processors = 1;
	assert_int_equal(host_add_pkey(&host, "0xffff"), 0);
	assert_int_equal(host_add_pkey(&host, "0x1"), 0);
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	expect_text(CLASS "ports/1/pkeys/0", "0xffff\n");
	expect_text(CLASS "ports/1/pkeys/1", "0x0001\n");
	expect_text(CLASS "ports/1/pkeys/15", "0x0000\n");
}

static void invalid_pkeys_are_refused(void **state)
{
	static const char *const bad[] = {"",       "0x",   "ffff",    "0xfffg", "0x10001", "0x0",
					  "0x8000", "0x 1", "0x-8001", "-0x1",   "0xffff ", "8001"};
	struct host h = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(host_add_pkey(&h, bad[i]), -EINVAL);
	assert_int_equal(h.n_pkeys, 0);
	for (int i = 0; i < VNIC_ATTACH_PKEYS; i++)
		assert_int_equal(host_add_pkey(&h, "0x8001"), 0);
	assert_int_equal(host_add_pkey(&h, "0x8001"), -ENOSPC);
}

static void address_in_a_vlan_is_parsed_and_shown(void **state)
{
	static const char *const bad[] = {
		"192.0.2.1/24@",  "192.0.2.1/24@0",  "192.0.2.1/24@4095", "192.0.2.1/24@-1",
		"192.0.2.1/24@x", "192.0.2.1/24@1x", "192.0.2.1/24 @100", "192.0.2.1@100"};
	struct host h;

	(void)state;
	processors = 1;
	host_init(&h);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(host_add_text(&h, bad[i], 0), -EINVAL);
	assert_int_equal(host_add_text(&h, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&h, "2001:db8::1/64@4094", 0), 0);
	assert_int_equal(sysfs_tree_create(top, &h, 0), 0);
	expect_text(CLASS "ports/1/gid_attrs/ndevs/0", "lo\n");
	expect_text(CLASS "ports/1/gid_attrs/ndevs/1", "lo\n");
	expect_text(CLASS "ports/1/gid_attrs/ndevs/17", "lo\n");
	expect_text(CLASS "ports/1/gid_attrs/types/1", "RoCE v2\n");
	expect_text(CLASS "ports/1/gid_attrs/types/17", "IB/RoCE v1\n");
}

static void expect_directory(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
}

/* Addresses and the link change; files without changes keep their inode. */
static void update_writes_changed_files_only(void **state)
{
	struct host now;
	struct stat was, is;
	char path[PATH_MAX];

	(void)state;
	processors = 1;
	host_init(&now);
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&now, "192.0.2.2/24", 0), 0);
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	expect_text(CLASS "ports/1/state", "4: ACTIVE\n");
	expect_text(CLASS "ports/1/rate", "10 Gb/sec (4X SDR)\n");
	snprintf(path, sizeof(path), "%s/" CLASS "ports/1/gids/1", top);
	assert_int_equal(stat(path, &was), 0);

	now.up = false;
	now.rate = port_rate_of_link(1000);
	now.addresses[0].valid = false;
	assert_int_equal(host_add_text(&now, "198.51.100.1/24@9", 0), 0);
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	expect_text(CLASS "ports/1/state", "1: DOWN\n");
	expect_text(CLASS "ports/1/phys_state", "3: Disabled\n");
	expect_text(CLASS "ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
	expect_text(CLASS "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:c633:6401\n");
	expect_text(CLASS "ports/1/gids/16", "0000:0000:0000:0000:0000:ffff:c633:6401\n");
	expect_text(CLASS "ports/1/gid_attrs/ndevs/0", "lo\n");
	assert_int_equal(stat(path, &is), 0);
	assert_int_equal(is.st_ino, was.st_ino);

	now.addresses[0].valid = false;
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	expect_text(CLASS "ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	expect_none(CLASS "ports/1/gid_attrs/types/0");
	expect_none(CLASS "ports/1/gid_attrs/ndevs/16");
	expect_none("sys/.unfinished");
}

/* The interface of the first uplink is renamed; an address of another interface stays there. */
static void update_writes_the_new_name_of_the_interface(void **state)
{
	struct host now;

	(void)state;
	processors = 1;
	host_init(&now);
	strcpy(now.ndev, "eth0");
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&now, "192.0.2.2/24", 0), 0);
	strcpy(now.addresses[1].ndev, "eth1");
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	expect_text(CLASS "ports/1/gid_attrs/ndevs/0", "eth0\n");
	expect_directory(CLASS "device/net/eth0");

	strcpy(now.ndev, "lan0");
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	expect_text(CLASS "ports/1/gid_attrs/ndevs/0", "lan0\n");
	expect_text(CLASS "ports/1/gid_attrs/ndevs/16", "lan0\n");
	expect_text(CLASS "ports/1/gid_attrs/ndevs/1", "eth1\n");
	expect_directory(CLASS "device/net/lan0");
	expect_none(CLASS "device/net/eth0");
}

/* The HCA's port, as in struct hca_table. Its second GID is of an interface that the host lacks. */
static void set_hca(struct host *h)
{
	strcpy(h->hca.name, "mlx5_0");
	h->hca.port = 2;
	h->hca_table = (struct hca_table){.guid = {2, 0, 0, 0xff, 0xfe, 0, 0, 1},
					  .mtu = 1024,
					  .pkeys = {0xffff, 0, 0x8001},
					  .n_gids = 3,
					  .gids = {{.index = 4, .v2 = true, .ifindex = 5},
						   {.index = 6, .v2 = true, .ifindex = 6},
						   {.index = 300, .ifindex = 5}}};
	for (int i = 0; i < 3; i++)
		memcpy(h->hca_table.gids[i].ip, h->addresses[1].ip, 16);
}

/* liburxe.so replaces the HCA by the device in answers of the kernel's rdma_cm. */
static void counterparts_of_the_hca_are_written(void **state)
{
	struct host now;

	(void)state;
	processors = 1;
	host_init(&now);
	memset(now.mac, 1, sizeof(now.mac));
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&now, "192.0.2.2/24", 0), 0);
	assert_int_equal(host_add_pkey(&now, "0x8001"), 0);
	assert_int_equal(host_add_pkey(&now, "0xffff"), 0);
	now.addresses[1].ifindex = 5;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	expect_text("sys/hca", "\n");
	set_hca(&now);
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	expect_text("sys/hca", "mlx5_0\n"
			       "port 020000fffe000001 2 030101fffd010101 mlx5_0\n"
			       "pkey 0 1\n"
			       "pkey 2 0\n"
			       "gid 4 1 00000000000000000000ffffc0000202\n"
			       "gid 6 -1 00000000000000000000ffffc0000202\n"
			       "gid 300 17 00000000000000000000ffffc0000202\n");
	now.hca.down = 1;
	now.addresses[1].valid = false;
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	expect_text("sys/hca", "\n"
			       "port 020000fffe000001 2 030101fffd010101 mlx5_0\n"
			       "pkey 0 1\n"
			       "pkey 2 0\n"
			       "gid 4 -1 00000000000000000000ffffc0000202\n"
			       "gid 6 -1 00000000000000000000ffffc0000202\n"
			       "gid 300 -1 00000000000000000000ffffc0000202\n");
}

static bool is_closed(const struct host *now)
{
	char text[PATH_MAX];

	assert_int_equal(sysfs_tree_update(top, now), 0);
	read_text("sys/hca", text);
	assert_non_null(strstr(text, "\ngid 4 1 00000000000000000000ffffc0000202\n"));
	return strstr(text, "\nclosed\n");
}

/* New connections of the kernel's rdma_cm could need what the device lacks. Earlier ones need the
 * tables. */
static void device_that_lacks_something_is_closed(void **state)
{
	struct host now, before;

	(void)state;
	processors = 1;
	host_init(&now);
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_text(&now, "192.0.2.2/24", 0), 0);
	assert_int_equal(host_add_pkey(&now, "0xffff"), 0);
	set_hca(&now);
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	assert_true(is_closed(&now)); /* without P_Key 0x8001 */
	assert_int_equal(host_add_pkey(&now, "0x8001"), 0);
	assert_false(is_closed(&now));
	before = now;
	now.mtu = 1024;
	assert_true(is_closed(&now));
	now.mtu = before.mtu;
	now.hca_table.may_lack_gids = true;
	assert_true(is_closed(&now));
}

/* As when sysfs cannot be read. */
static void unknown_hca_has_no_counterparts(void **state)
{
	struct host now, unknown;

	(void)state;
	processors = 1;
	host_init(&now);
	set_hca(&now);
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	unknown = now;
	memset(unknown.hca_table.guid, 0, sizeof(unknown.hca_table.guid));
	assert_int_equal(sysfs_tree_update(top, &unknown), 0);
	expect_text("sys/hca", "mlx5_0\n");
	unknown = now;
	memset(unknown.hca_table.pkeys, 0, sizeof(unknown.hca_table.pkeys));
	assert_int_equal(sysfs_tree_update(top, &unknown), 0);
	expect_text("sys/hca", "mlx5_0\n");
}

/* If a GID cannot be written, the file about the HCA does not name its index yet. */
static void gids_are_written_before_the_counterparts(void **state)
{
	struct host now;
	char path[PATH_MAX], text[PATH_MAX];

	(void)state;
	processors = 1;
	host_init(&now);
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(host_add_pkey(&now, "0xffff"), 0);
	set_hca(&now);
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	read_text("sys/hca", text);
	snprintf(path, sizeof(path), "%s/" CLASS "ports/1/gids/1", top);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(host_add_text(&now, "192.0.2.2/24", 0), 0);
	set_hca(&now);
	assert_int_not_equal(sysfs_tree_update(top, &now), 0);
	expect_text("sys/hca", text);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(sysfs_tree_update(top, &now), 0);
	read_text("sys/hca", text);
	assert_non_null(strstr(text, "\ngid 4 1 00000000000000000000ffffc0000202\n"));
}

/* The longest table has room. */
static void counterparts_of_the_longest_table_are_written(void **state)
{
	static const char last[] = "gid 1023 -1 00000000000000000000000000000000\n";
	struct host now;
	char text[PATH_MAX];

	(void)state;
	processors = 1;
	host_init(&now);
	for (uint16_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		now.pkeys[i] = 0xfff0 + i;
	now.n_pkeys = VNIC_ATTACH_PKEYS;
	set_hca(&now);
	memset(now.hca.name, 'x', VNIC_HCA_NAME - 1);
	memcpy(now.hca_table.pkeys, now.pkeys, sizeof(now.pkeys));
	now.hca.port = 255;
	now.hca_table.n_gids = VNIC_HCA_GIDS;
	for (int i = 0; i < VNIC_HCA_GIDS; i++)
		now.hca_table.gids[i].index = 1023;
	assert_int_equal(sysfs_tree_create(top, &now, 0), 0);
	read_text("sys/hca", text);
	assert_string_equal(text + strlen(text) - strlen(last), last);
}

/* As on a full file system: the name of unfinished files is taken. */
static void failed_update_is_repeated(void **state)
{
	struct device_files files;
	struct host now;
	char path[PATH_MAX];

	(void)state;
	processors = 1;
	host_init(&now);
	assert_int_equal(host_add_text(&now, "192.0.2.1/24", 0), 0);
	assert_int_equal(device_files_create(&files, top, &now, 0), 0);
	assert_int_equal(device_files_tick(&files, &now, 0), UINT64_MAX);
	snprintf(path, sizeof(path), "%s/sys/.unfinished", top);
	assert_int_equal(mkdir(path, 0700), 0);
	now.addresses[0].valid = false;
	device_files_update(&files, &now, 0);
	assert_int_equal(device_files_tick(&files, &now, 0), NS_PER_SEC);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(device_files_tick(&files, &now, NS_PER_SEC - 1), NS_PER_SEC);
	expect_text(CLASS "ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:c000:0201\n");
	assert_int_equal(device_files_tick(&files, &now, NS_PER_SEC), UINT64_MAX);
	expect_text(CLASS "ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
}

static void lock_directory(char error[RUNDIR_ERROR], int *lock)
{
	*lock = rundir_lock(top, false, error);
	assert_true(*lock >= 0);
}

/* Another daemon has locked a new directory of the same name. */
static void files_of_another_daemon_stay(void **state)
{
	char error[RUNDIR_ERROR], path[PATH_MAX];
	struct device_files files;
	struct host now = host;
	int lock;

	(void)state;
	processors = 1;
	lock_directory(error, &lock);
	assert_int_equal(device_files_create(&files, top, &now, 0), 0);
	snprintf(path, sizeof(path), "%s/urxed.lock", top);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT, 0600)), 0);
	now.addresses[0].valid = false;
	device_files_update(&files, &now, 0);
	expect_text(CLASS "ports/1/gid_attrs/types/0", "RoCE v2\n");
	assert_int_equal(device_files_tick(&files, &now, 0), UINT64_MAX);
	assert_int_equal(unlink(path), 0);
	rundir_release(top, lock, false);
}

/* Programs of all users check the device with access(2) before they open it. */
static void device_files_are_writable_by_all(void **state)
{
	mode_t old = umask(077);
	char path[PATH_MAX];
	struct stat st;

	(void)state;
	processors = 1;
	assert_int_equal(sysfs_tree_create(top, &host, 0), 0);
	umask(old);
	snprintf(path, sizeof(path), "%s/dev/infiniband/" VNIC_UVERBS_NAME, top);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0666);
	/* Others may not write to it. */
	snprintf(path, sizeof(path), "%s/dev", top);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(sysfs_tree_create(top, &host, getegid()), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | (getegid() ? 0710 : 0700));
	expect_text(CLASS "device/local_cpulist", "0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_of_the_device_names_it),
		cmocka_unit_test(upgrade_leaves_the_time_of_the_device),
		cmocka_unit_test(version_of_an_earlier_tree_is_replaced),
		cmocka_unit_test(new_device_has_its_time_before_its_gids),
		cmocka_unit_test(tree_of_an_earlier_daemon_stays),
		cmocka_unit_test(lack_of_memory_leaves_no_descriptor_open),
		cmocka_unit_test(local_cpus_of_2_and_33_cpus),
		cmocka_unit_test(local_cpus_of_8192_cpus),
		cmocka_unit_test(too_long_attribute_is_an_error),
		cmocka_unit_test(pkey_table_is_written),
		cmocka_unit_test(invalid_pkeys_are_refused),
		cmocka_unit_test(address_in_a_vlan_is_parsed_and_shown),
		cmocka_unit_test(update_writes_changed_files_only),
		cmocka_unit_test(update_writes_the_new_name_of_the_interface),
		cmocka_unit_test(counterparts_of_the_hca_are_written),
		cmocka_unit_test(device_that_lacks_something_is_closed),
		cmocka_unit_test(unknown_hca_has_no_counterparts),
		cmocka_unit_test(gids_are_written_before_the_counterparts),
		cmocka_unit_test(counterparts_of_the_longest_table_are_written),
		cmocka_unit_test(failed_update_is_repeated),
		cmocka_unit_test(files_of_another_daemon_stay),
		cmocka_unit_test(device_files_are_writable_by_all),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
