/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_gids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "urxed/hca/hca_netdev.h"
#include "urxed/hca/sysfs_file.h"

/* Limit of the entries that are read: rdma_rxe has 1024, hardware 16 to 256. */
#define ENTRIES_MAX 1024

/* Eight groups of four hexadecimal digits: "fe80:0000:0000:0000:5054:00ff:fe12:3456". */
#define GID_TEXT 40

static bool parse_gid(const char *text, uint8_t gid[16])
{
	unsigned int word[8];
	int end = 0;

	if (sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x%n", &word[0], &word[1], &word[2],
		   &word[3], &word[4], &word[5], &word[6], &word[7], &end) != 8 ||
	    text[end])
		return false;
	for (int i = 0; i < 8; i++) {
		gid[2 * i] = (uint8_t)(word[i] >> 8);
		gid[2 * i + 1] = (uint8_t)word[i];
	}
	return true;
}

static bool is_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, sizeof(zero));
}

/* Parses the kernel's name of a GID type. False: another text. */
static bool parse_type(const char *text, bool *v2)
{
	*v2 = !strcmp(text, "RoCE v2");
	return *v2 || !strcmp(text, "IB/RoCE v1");
}

/* Returns false if the entry is empty or malformed. */
static bool read_entry(const char *sys, const char *dir, uint32_t i, const char *gid_text,
		       struct hca_gid *gid)
{
	char type[HCA_TEXT];

	if (!parse_gid(gid_text, gid->ip) || is_zero(gid->ip) ||
	    sysfs_read_text(type, sizeof(type), "%s/gid_attrs/types/%u", dir, i) ||
	    !parse_type(type, &gid->v2) ||
	    sysfs_read_text(gid->ndev, sizeof(gid->ndev), "%s/gid_attrs/ndevs/%u", dir, i) ||
	    !gid->ndev[0] || strchr(gid->ndev, '/'))
		return false;
	gid->index = (uint16_t)i;
	gid->vlan = hca_netdev_vlan(sys, gid->ndev);
	gid->ifindex = sysfs_read_number("%s/class/net/%s/ifindex", sys, gid->ndev);
	return true;
}

static void add_entry(struct hca_port *p, const struct hca_gid *gid)
{
	if (!p->n_gids)
		memcpy(p->ndev, gid->ndev, sizeof(p->ndev));
	p->v1 |= !gid->v2;
	p->v2 |= gid->v2;
	p->gids[p->n_gids++] = *gid;
}

void hca_gids_read(const char *sys, const char *dir, struct hca_port *p)
{
	char text[GID_TEXT];
	int rc = 0;

	for (uint32_t i = 0; i < ENTRIES_MAX && p->n_gids < HCA_GIDS && rc != -ENOENT; i++) {
		struct hca_gid gid;

		memset(&gid, 0, sizeof(gid)); /* padding, too: callers use memcmp on entries */
		rc = sysfs_read_text(text, sizeof(text), "%s/gids/%u", dir, i);
		if (!rc && read_entry(sys, dir, i, text, &gid))
			add_entry(p, &gid);
	}
}
