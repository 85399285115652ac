/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A directory that stands for sysfs, with RDMA devices and network interfaces that tests make. */
#ifndef URXE_TEST_FAKE_SYSFS_H
#define URXE_TEST_FAKE_SYSFS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rundir.h"

static char top[32], sys[64];

static inline int make_sysfs(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test-hca-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(sys, sizeof(sys), "%s/sys", top);
	return mkdir(sys, 0755);
}

static inline int remove_sysfs(void **state)
{
	(void)state;
	rundir_remove(top, "sys");
	rundir_remove(top, "proc");
	return rmdir(top);
}

static inline void make_parents(const char *path)
{
	char dir[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		assert_true(!mkdir(dir, 0755) || errno == EEXIST);
	}
}

static inline void put_bytes(const char *file, const void *bytes, size_t n)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/class/%s", sys, file);
	make_parents(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* A file below class/, as the kernel writes it: with a newline. */
__attribute__((format(printf, 2, 3))) static inline void put(const char *file, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	strcat(text, "\n");
	put_bytes(file, text, strlen(text));
}

static inline void drop(const char *file)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "class/%s", file);
	assert_int_equal(rundir_remove(sys, path), 0);
}

static inline void put_link(const char *file, const char *target)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/%s", sys, file);
	make_parents(path);
	assert_int_equal(symlink(target, path), 0);
}

__attribute__((format(printf, 1, 2))) static inline const char *name(const char *fmt, ...)
{
	static char names[4][256];
	static unsigned int turn;
	char *text = names[turn++ % 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(names[0]), fmt, ap);
	va_end(ap);
	return text;
}

static inline void make_netdev(const char *ifname, const char *mac, int mtu)
{
	put(name("net/%s/address", ifname), "%s", mac);
	put(name("net/%s/type", ifname), "1");
	put(name("net/%s/mtu", ifname), "%d", mtu);
}

static inline void make_device(const char *device, const char *node_type)
{
	put(name("infiniband/%s/node_type", device), "%s", node_type);
	put(name("infiniband/%s/node_guid", device), "5054:00ff:fe12:3456");
	put(name("infiniband/%s/fw_ver", device), "20.31.1014");
	put(name("infiniband_verbs/uverbs-%s/ibdev", device), "%s", device);
}

static inline void make_port(const char *device, int port, const char *layer, const char *state)
{
	put(name("infiniband/%s/ports/%d/link_layer", device, port), "%s", layer);
	put(name("infiniband/%s/ports/%d/state", device, port), "%s", state);
	put(name("infiniband/%s/ports/%d/rate", device, port), "25 Gb/sec (1X EDR)");
}

static inline void make_gid(const char *device, int port, int i, const char *gid, const char *type,
			    const char *ndev)
{
	put(name("infiniband/%s/ports/%d/gids/%d", device, port, i), "%s", gid);
	if (!type)
		return;
	put(name("infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, i), "%s", type);
	put(name("infiniband/%s/ports/%d/gid_attrs/ndevs/%d", device, port, i), "%s", ndev);
}

#define GID_LOCAL "fe80:0000:0000:0000:5054:00ff:fe12:3456"
#define GID_V4    "0000:0000:0000:0000:0000:ffff:c000:0201" /* 192.0.2.1 */
#define GID_NONE  "0000:0000:0000:0000:0000:0000:0000:0000"

/* A device with one RoCE port that is up, on an interface of the same MTU as most Ethernets. */
static inline void make_roce(const char *device, const char *ifname)
{
	make_netdev(ifname, "52:54:00:12:34:56", 1500);
	make_device(device, "1: CA");
	make_port(device, 1, "Ethernet", "4: ACTIVE");
	make_gid(device, 1, 0, GID_LOCAL, "IB/RoCE v1", ifname);
	make_gid(device, 1, 1, GID_LOCAL, "RoCE v2", ifname);
	make_gid(device, 1, 2, GID_NONE, NULL, NULL);
	make_gid(device, 1, 3, GID_V4, "RoCE v2", ifname);
}

#endif
