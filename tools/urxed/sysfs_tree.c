/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/sysfs_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rundir.h"
#include "urxed/hca/hca_table.h"

#define CLASS   VNIC_SYSFS_NAME "/class/infiniband"
#define PORT    "ports/1"
#define UVERBS  VNIC_SYSFS_NAME "/class/infiniband_verbs"
#define DEV     "dev"
#define RDMA_CM VNIC_SYSFS_NAME "/class/misc/rdma_cm"
/* Each file is written under this name and then renamed, so that programs see only whole files. */
#define UNFINISHED VNIC_SYSFS_NAME "/.unfinished"

#define NAME_MAX_LEN 128  /* bytes of a path below the device directory */
#define PATH_ROOM    256  /* bytes of a path below the run directory */
#define TEXT_MAX_LEN 4096 /* the kernel's limit: a page */

/* librxe matches devices by the beginning of this modalias, not by the device name. */
#define MODALIAS "rdma_device:Nrxe0"

/* The tree that the functions below write. After an error, which err keeps, they do nothing. */
struct tree {
	const char *run_dir;
	int dir;
	int err;
	const char *device; /* the name of the device */
	const char *node;   /* the name of its character device */
};

static struct tree open_tree(const char *run_dir, const struct host *host)
{
	struct tree t = {
		.run_dir = run_dir, .device = host->device, .node = host_uverbs_name(host)};

	t.dir = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t.dir < 0)
		t.err = -errno;
	return t;
}

static void close_tree(const struct tree *t)
{
	if (t->dir >= 0)
		close(t->dir);
}

static void make_dirs(struct tree *t, const char *file)
{
	char dir[PATH_ROOM];
	const char *slash;

	for (slash = strchr(file, '/'); slash && !t->err; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - file), file);
		if (mkdirat(t->dir, dir, 0755) && errno != EEXIST)
			t->err = -errno;
	}
}

/*
 * Writes a new file with the given mode, whatever the umask is, and renames it over the old file.
 */
static void write_file(struct tree *t, const char *file, mode_t mode, const char *text, size_t len)
{
	ssize_t n;
	int fd;

	make_dirs(t, file);
	if (t->err)
		return;
	fd = openat(t->dir, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0) {
		t->err = -errno;
		return;
	}
	n = fchmod(fd, mode) ? -1 : write(fd, text, len);
	if (n < 0)
		t->err = -errno;
	else if (n < (ssize_t)len)
		t->err = -ENOSPC; /* the file system is full */
	close(fd);
	if (!t->err && renameat(t->dir, UNFINISHED, t->dir, file))
		t->err = -errno;
	if (t->err)
		unlinkat(t->dir, UNFINISHED, 0);
}

/* Whether the file has that text already, for instance from an earlier daemon. */
static bool has_text(const struct tree *t, const char *file, const char *text, size_t len)
{
	char found[TEXT_MAX_LEN + 1];
	int fd = openat(t->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof(found));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)len && !memcmp(found, text, len);
}

static void write_attr(struct tree *t, const char *file, const char *text)
{
	char line[TEXT_MAX_LEN];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	if (n >= (int)sizeof(line))
		t->err = t->err ? t->err : -EOVERFLOW;
	else if (!has_text(t, file, line, (size_t)n))
		write_file(t, file, 0444, line, (size_t)n);
}

/* As write_attr, for a file below the device's directory. */
__attribute__((format(printf, 3, 4))) static void write_ibdev(struct tree *t, const char *file,
							      const char *fmt, ...)
{
	char text[TEXT_MAX_LEN], path[PATH_ROOM];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap); /* write_attr refuses a text that was cut */
	va_end(ap);
	snprintf(path, sizeof(path), CLASS "/%s/%s", t->device, file);
	write_attr(t, path, text);
}

/* As write_attr, for a file below the directory of the character device. */
static void write_uverbs_attr(struct tree *t, const char *file, const char *text)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), UVERBS "/%s/%s", t->node, file);
	write_attr(t, path, text);
}

static void remove_ibdev(struct tree *t, const char *file)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), CLASS "/%s/%s", t->device, file);
	unlinkat(t->dir, path, 0);
}

static void write_guid(struct tree *t, const char *file, const struct host *host)
{
	uint8_t g[8];

	host_node_guid(host, g);
	write_ibdev(t, file, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4],
		    g[5], g[6], g[7]);
}

/*
 * Returns the interface for the ndevs attribute of a GID. The interface must exist:
 * ibv_query_gid_table() reads the interface's index, and fails for the whole table if one entry has
 * no interface.
 */
static const char *ndev_of(const struct host *host, const struct host_address *a)
{
	return a->ndev[0] ? a->ndev : host->ndev;
}

/* Removes the attributes of an empty entry of the GID table, because reading them in the kernel's
 * sysfs fails, too. */
static void remove_gid_attrs(struct tree *t, uint32_t i)
{
	char file[NAME_MAX_LEN];

	snprintf(file, sizeof(file), PORT "/gid_attrs/types/%u", i);
	remove_ibdev(t, file);
	snprintf(file, sizeof(file), PORT "/gid_attrs/ndevs/%u", i);
	remove_ibdev(t, file);
}

static void write_gid(struct tree *t, uint32_t i, const struct host *host)
{
	static const struct host_address none;
	const struct host_address *a = host_address_by_gid(host, i);
	const uint8_t *g = a ? a->ip : none.ip;
	char file[NAME_MAX_LEN];

	snprintf(file, sizeof(file), PORT "/gids/%u", i);
	write_ibdev(t, file,
		    "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0],
		    g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12],
		    g[13], g[14], g[15]);
	if (!a) {
		remove_gid_attrs(t, i);
		return;
	}
	snprintf(file, sizeof(file), PORT "/gid_attrs/types/%u", i);
	write_ibdev(t, file, "%s", i < HOST_ADDRESSES ? "RoCE v2" : "IB/RoCE v1");
	snprintf(file, sizeof(file), PORT "/gid_attrs/ndevs/%u", i);
	write_ibdev(t, file, "%s", ndev_of(host, a));
}

/* Writes what may change with the link. Linux' sysfs lacks active_mtu: programs query the MTU of
 * the device. Another urxed reads the file (hca_scan.h). */
static void write_link(struct tree *t, const struct host *host)
{
	char rate[PORT_RATE_TEXT];

	port_rate_print(host_rate(host), rate);
	write_ibdev(t, PORT "/state", host->up ? "4: ACTIVE" : "1: DOWN");
	write_ibdev(t, PORT "/phys_state", host->up ? "5: LinkUp" : "3: Disabled");
	write_ibdev(t, PORT "/active_mtu", "%u", host_path_mtu(host));
	write_ibdev(t, PORT "/rate", "%s", rate);
}

static void write_port(struct tree *t, const struct host *host)
{
	write_link(t, host);
	write_ibdev(t, PORT "/link_layer", "Ethernet");
	write_ibdev(t, PORT "/lid", "0x0");
	write_ibdev(t, PORT "/lid_mask_count", "0");
	write_ibdev(t, PORT "/sm_lid", "0x0");
	write_ibdev(t, PORT "/sm_sl", "0");
	write_ibdev(t, PORT "/cap_mask", "0x00010000"); /* IsCommunicationManagementSupported */
}

static void write_pkeys(struct tree *t, const struct host *host)
{
	char file[NAME_MAX_LEN];
	uint32_t i;

	for (i = 0; i < VNIC_ATTACH_PKEYS; i++) {
		snprintf(file, sizeof(file), PORT "/pkeys/%u", i);
		write_ibdev(t, file, "0x%04x", host->pkeys[i]);
	}
}

/* Writes all CPUs as local: the device is on no bus and no NUMA node. */
static void write_cpus(struct tree *t)
{
	long n = sysconf(_SC_NPROCESSORS_CONF), word;
	char text[TEXT_MAX_LEN]; /* if filled to the end, write_attr fails with EOVERFLOW */
	int at = 0;

	for (word = (n - 1) / 32; word >= 0 && at < (int)sizeof(text); word--) {
		unsigned bits = n - word * 32 >= 32 ? ~0u : (1u << (n - word * 32)) - 1;

		at += snprintf(text + at, sizeof(text) - (size_t)at, "%08x%s", bits,
			       word ? "," : "");
	}
	write_ibdev(t, "device/local_cpus", "%s", text);
	write_ibdev(t, "device/local_cpulist", n > 1 ? "0-%ld" : "%ld", n - 1);
}

/*
 * Removes what an earlier daemon with other names has left in the directory `dir`: all directories
 * but `own`, and a link of the name `own`. Links of other names are the kernel's devices.
 */
static void remove_others(const struct tree *t, const char *dir, const char *own)
{
	int fd = openat(t->dir, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char path[PATH_ROOM + NAME_MAX];
	struct stat st;

	while (entries && (entry = readdir(entries))) {
		if (entry->d_name[0] == '.' ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode) ||
		    S_ISDIR(st.st_mode) == !strcmp(entry->d_name, own))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		rundir_remove(t->run_dir, path);
	}
	if (entries)
		closedir(entries);
	else if (fd >= 0)
		close(fd);
}

static void write_net_dir(struct tree *t, const struct host *host)
{
	char dir[PATH_ROOM];

	snprintf(dir, sizeof(dir), CLASS "/%s/device/net", t->device);
	remove_others(t, dir, host->ndev);
	snprintf(dir, sizeof(dir), CLASS "/%s/device/net/%s/", t->device, host->ndev);
	make_dirs(t, dir);
}

/*
 * Writes the version to device/fw_ver, and makes fw_ver a link to it. So a daemon of another
 * version later renames only a file in device/. A rename in the device's directory itself would
 * change that directory's modification time (set_time).
 */
static void write_version(struct tree *t)
{
	char path[PATH_ROOM], target;

	write_ibdev(t, "device/fw_ver", "%s", URXE_VERSION);
	snprintf(path, sizeof(path), CLASS "/%s/fw_ver", t->device);
	if (t->err || readlinkat(t->dir, path, &target, sizeof(target)) >= 0)
		return;
	if (symlinkat("device/fw_ver", t->dir, UNFINISHED) ||
	    renameat(t->dir, UNFINISHED, t->dir, path))
		t->err = -errno;
}

static void write_device(struct tree *t, const struct host *host)
{
	write_ibdev(t, "node_type", "1: CA");
	write_guid(t, "node_guid", host);
	write_guid(t, "sys_image_guid", host);
	write_ibdev(t, "node_desc", "urxe");
	write_version(t);
	write_ibdev(t, "device/modalias", MODALIAS);
	write_ibdev(t, "device/numa_node", "-1");
	write_cpus(t);
	write_net_dir(t, host);
}

/*
 * The ABI versions are those of rdma/ib_user_verbs.h and rdma/rdma_user_rxe.h. The device numbers
 * cannot collide with the kernel's: its uverbs0 is 231:192, and none of its uverbs devices gets a
 * minor number as high as 1216.
 */
static void write_uverbs(struct tree *t)
{
	char file[NAME_MAX_LEN];

	write_attr(t, UVERBS "/abi_version", "6");
	write_uverbs_attr(t, "ibdev", t->device);
	write_uverbs_attr(t, "abi_version", "2");
	write_uverbs_attr(t, "dev", strcmp(t->node, VNIC_UVERBS_NAME) ? "231:1217" : "231:1216");
	write_uverbs_attr(t, "device/modalias", MODALIAS);
	/* liburxe.so answers open(); this file is for access(2), with the kernel's mode. */
	snprintf(file, sizeof(file), DEV "/infiniband/%s", t->node);
	write_file(t, file, 0666, "", 0);
}

/* ABI version of rdma/rdma_user_cm.h; the minor number is arbitrary, as in the kernel. */
static void write_rdma_cm(struct tree *t)
{
	write_attr(t, RDMA_CM "/abi_version", "4");
	write_attr(t, RDMA_CM "/dev", "10:122");
	write_file(t, DEV "/infiniband/rdma_cm", 0666, "", 0);
}

/*
 * Writes VNIC_HCA_FILE. Its first line is empty while the port is down: liburxe.so then asks urxed
 * first for an rdma_cm ID with an address, and gives the ID to the kernel only if urxed does not
 * know the address. The other lines always describe the port, because the kernel keeps the rdma_cm
 * IDs that it has there.
 */
static void write_hca(struct tree *t, const struct host *host)
{
	char text[VNIC_HCA_TEXT];
	int n = snprintf(text, sizeof(text), "%s\n", host->hca.down ? "" : host->hca.name);

	hca_table_print(host, text + n);
	n = (int)strlen(text);
	if (!has_text(t, VNIC_HCA_FILE, text, (size_t)n))
		write_file(t, VNIC_HCA_FILE, 0444, text, (size_t)n);
}

/* Makes dev/, and limits access to dev/ before files exist in it: other users could write to the
 * files, whose mode is 0666, and fill the file system. */
static void make_dev(struct tree *t, gid_t group)
{
	make_dirs(t, DEV "/");
	if (!t->err && ((group && fchownat(t->dir, DEV, (uid_t)-1, group, 0)) ||
			fchmodat(t->dir, DEV, group ? 0710 : 0700, 0)))
		t->err = -errno;
}

/*
 * Keeps the tree of an earlier daemon, because programs continue to use the tree with this daemon.
 * Removes from it only what belongs to a device, a node or an interface of another name.
 */
static void take_over_tree(const struct tree *t)
{
	char path[PATH_ROOM];

	unlinkat(t->dir, UNFINISHED, 0);
	remove_others(t, CLASS, t->device);
	remove_others(t, UVERBS, t->node);
	snprintf(path, sizeof(path), DEV "/infiniband/%s",
		 strcmp(t->node, VNIC_UVERBS_NAME) ? VNIC_UVERBS_NAME : VNIC_UVERBS_OTHER);
	unlinkat(t->dir, path, 0);
}

/*
 * Sets the modification time of the device's directory to a value derived from the node GUID and
 * the device name, so that a program recognises the device of the next daemon. If the time differs,
 * libibverbs takes the device for a new one, and librdmacm then closes its context of the old
 * device. libibverbs cannot see the device before this call, because write_uverbs comes later.
 */
static void set_time(struct tree *t, const struct host *host)
{
	uint8_t guid[8];
	uint32_t hash = 0;
	struct timespec times[2];
	char path[PATH_ROOM];

	host_node_guid(host, guid);
	for (size_t i = 0; i < sizeof(guid); i++)
		hash = hash * 31 + guid[i];
	for (const char *name = t->device; *name; name++)
		hash = hash * 31 + (uint8_t)*name;
	/* Some file systems store only 31 bits of seconds, and no fraction. */
	times[0] = times[1] = (struct timespec){.tv_sec = hash >> 1};
	snprintf(path, sizeof(path), CLASS "/%s", t->device);
	if (!t->err && utimensat(t->dir, path, times, 0))
		t->err = -errno;
}

int sysfs_tree_create(const char *run_dir, const struct host *host, gid_t group)
{
	struct tree t = open_tree(run_dir, host);
	uint32_t i;

	if (t.err)
		return t.err;
	take_over_tree(&t);
	write_port(&t, host);
	write_device(&t, host);
	set_time(&t, host); /* all entries of the directory exist: new ones would change its time */
	write_pkeys(&t, host);
	for (i = 0; i < VNIC_ATTACH_GIDS; i++)
		write_gid(&t, i, host);
	make_dev(&t, group);
	write_uverbs(&t);
	write_rdma_cm(&t);
	write_hca(&t, host);
	close_tree(&t);
	if (t.err)
		sysfs_tree_remove(run_dir);
	return t.err;
}

int sysfs_tree_update(const char *run_dir, const struct host *host)
{
	struct tree t = open_tree(run_dir, host);

	if (t.err)
		return t.err;
	write_link(&t, host);
	write_net_dir(&t, host);
	for (uint32_t i = 0; i < VNIC_ATTACH_GIDS; i++)
		write_gid(&t, i, host);
	write_hca(&t, host); /* last, because it names entries of the other files */
	close_tree(&t);
	return t.err;
}

void sysfs_tree_remove(const char *run_dir)
{
	rundir_remove(run_dir, VNIC_SYSFS_NAME);
	rundir_remove(run_dir, DEV);
}
