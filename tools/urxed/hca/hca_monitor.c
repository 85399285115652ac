/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hca/hca_monitor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/vfs.h>

#include "common/log.h"
#include "urxed/hca/hca_netdev.h"
#include "urxed/hca/sysfs_file.h"

/* --- Scans */

/*
 * Whether `sys` is the kernel's sysfs, not another urxed's tree; true also without any RDMA device.
 */
static bool is_kernel_tree(const char *sys)
{
	char path[PATH_MAX];
	struct statfs fs;
	bool is = true;
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/class/infiniband", sys) >= PATH_MAX)
		return true;
	dir = sysfs_open_dir(path);
	if (!dir)
		return true;
	if (!fstatfs(dirfd(dir), &fs))
		is = fs.f_type == SYSFS_MAGIC;
	closedir(dir);
	return is;
}

/* Returns the device that a scan lists first, so that its ports stay in the list if the host has
 * more ports than fit: the device of --hca, else the one in use. NULL: none. */
static const char *first_device(const struct hca_monitor *h)
{
	const struct hca_port *p = hca_monitor_chosen(h);

	if (h->wish.choice.mode == HCA_NAMED)
		return h->wish.choice.device;
	return p ? p->device : NULL;
}

/* Scans sysfs, and sets h->polls. The monitor also polls while the device that --hca names is
 * missing, because it may be the device of another urxed whose tree does not exist yet. */
static void scan(struct hca_monitor *h)
{
	const struct hca_choice *c = &h->wish.choice;
	const char *device = first_device(h);
	char first[VNIC_HCA_NAME];

	/* Copies the name, because it may be in the list that the scan overwrites. */
	if (device)
		strcpy(first, device);
	hca_scan(h->wish.sys, device ? first : NULL, &h->list);
	h->polls = h->list.n && c->mode != HCA_OFF && !is_kernel_tree(h->wish.sys);
	if (c->mode == HCA_NAMED)
		h->polls |= !hca_find_port(&h->list, c->device, c->port);
}

void hca_monitor_open(struct hca_monitor *h, const struct hca_choice *choice, const char *sys,
		      const char *device)
{
	*h = (struct hca_monitor){.wish = {.choice = *choice, .sys = sys, .device = device},
				  .chosen = -1,
				  .epoll_fd = -1,
				  .scan_at = UINT64_MAX};
	scan(h);
}

void hca_monitor_close(struct hca_monitor *h)
{
	netlink_close(&h->netlink);
}

static bool has_interface(const struct hca_port *p, const char *sys, const char *ifname)
{
	for (uint32_t i = 0; p->kind == HCA_ROCE && i < p->n_gids; i++)
		if (hca_netdev_is_above(sys, ifname, p->gids[i].ndev))
			return true;
	return false;
}

/* Would an XDP program on the interface take packets to the port? The program sees packets to its
 * own interface and to all interfaces above. It may also be attached above the port's interface. */
static bool is_reached_by(const struct hca_port *p, const char *sys, const char *ifname)
{
	for (uint32_t i = 0; i < p->n_gids; i++)
		if (hca_netdev_is_above(sys, p->gids[i].ndev, ifname))
			return true;
	return has_interface(p, sys, ifname);
}

static bool list_has_interface(const struct hca_list *list, const char *sys, const char *ifname,
			       bool xdp)
{
	bool found = false;

	for (uint32_t i = 0; i < list->n; i++) {
		const struct hca_port *p = &list->ports[i];

		if (xdp && hca_port_is_rdma_rxe(p) && is_reached_by(p, sys, ifname))
			return false;
		found |= has_interface(p, sys, ifname);
	}
	return found;
}

/* Scans anew, because an interface may have been renamed since the scan that filled h->list. */
bool hca_monitor_has_interface(const struct hca_monitor *h, const char *ifname, bool xdp)
{
	struct hca_list *list = h->wish.choice.mode == HCA_OFF ? NULL : malloc(sizeof(*list));
	bool found;

	if (!list)
		return false;
	(void)sysfs_take_shortage();
	hca_scan(h->wish.sys, first_device(h), list);
	found = list_has_interface(list, h->wish.sys, ifname, xdp);
	free(list);
	/* If the scan lacked descriptors or memory, the list may lack a port of rdma_rxe. */
	return !(sysfs_take_shortage() && xdp) && found;
}

void hca_monitor_set_uplink(struct hca_monitor *h, uint32_t i, const char *ifname, bool xdp)
{
	if (i >= HCA_UPLINKS)
		return;
	snprintf(h->wish.uplinks[i], HOST_NDEV_LEN, "%s", ifname);
	h->wish.xdp[i] = xdp;
	if (i >= h->wish.n_uplinks)
		h->wish.n_uplinks = i + 1;
}

/* --- The choice */

const struct hca_port *hca_monitor_chosen(const struct hca_monitor *h)
{
	return h->chosen < 0 ? NULL : &h->list.ports[h->chosen];
}

void hca_monitor_fill(const struct hca_monitor *h, struct vnic_attach_hca *out)
{
	const struct hca_port *p = hca_monitor_chosen(h);

	*out = (struct vnic_attach_hca){.generation = h->generation};
	if (!p)
		return;
	memcpy(out->name, p->device, sizeof(out->name));
	out->port = p->number;
	out->down = p->state != HCA_ACTIVE;
}

void hca_monitor_fill_table(const struct hca_monitor *h, struct hca_table *out)
{
	const struct hca_port *p = hca_monitor_chosen(h);

	*out = (struct hca_table){0};
	if (!p)
		return;
	memcpy(out->guid, p->guid, sizeof(out->guid));
	memcpy(out->pkeys, p->pkeys, sizeof(out->pkeys));
	out->mtu = p->mtu;
	out->n_gids = p->n_gids;
	out->may_lack_gids = p->n_gids == HCA_GIDS;
	for (uint32_t i = 0; i < p->n_gids; i++) {
		const struct hca_gid *gid = &p->gids[i];

		out->gids[i] = (struct hca_table_gid){
			.ifindex = gid->ifindex, .index = gid->index, .v2 = gid->v2};
		memcpy(out->gids[i].ip, gid->ip, sizeof(gid->ip));
	}
}

struct port_rate hca_monitor_rate(const struct hca_monitor *h)
{
	const struct hca_port *p = hca_monitor_chosen(h);

	return p ? p->rate : (struct port_rate){0};
}

static void log_port(const struct hca_monitor *h, int i)
{
	const struct hca_port *p = &h->list.ports[i];

	if (i == h->chosen)
		log_line("HCA %s port %u backs %s", p->device, p->number, h->wish.device);
	else
		log_line("HCA %s port %u is not used: %s", p->device, p->number,
			 h->verdicts[i].reason);
}

/* Returns the last scan's verdict on a port; NULL: the port is new, or no scan has chosen yet. */
static const struct hca_verdict *find_verdict(const struct hca_monitor *h, const struct hca_port *p)
{
	const struct hca_port *q = hca_find_port(&h->list, p->device, p->number);

	return q && h->started ? &h->verdicts[q - h->list.ports] : NULL;
}

static void log_changes(const struct hca_monitor *h, const struct hca_monitor *before)
{
	const struct hca_port *lost = before->started ? hca_monitor_chosen(before) : NULL;

	if (lost && !hca_find_port(&h->list, lost->device, lost->number))
		log_line("HCA %s port %u has gone", lost->device, lost->number);
	for (int i = 0; i < (int)h->list.n; i++) {
		const struct hca_verdict *was = find_verdict(before, &h->list.ports[i]);

		if (!was || strcmp(was->reason, h->verdicts[i].reason) != 0)
			log_port(h, i);
	}
}

/* Compares also the inode, because a new device may have an old one's name. In another urxed's tree
 * (`polls`) the inode says nothing. */
static bool is_same_device(const struct hca_port *a, const struct hca_port *b, bool polls)
{
	if (!a || !b)
		return a == b;
	return !strcmp(a->device, b->device) && a->number == b->number &&
	       (polls || a->inode == b->inode);
}

static void select_port(struct hca_monitor *h, const struct hca_monitor *before)
{
	struct vnic_attach_hca current;

	hca_monitor_fill(before, &current);
	h->chosen = hca_select(&h->list, &h->wish, current.name[0] ? &current : NULL, h->verdicts);
}

/* Is the port in use given up only because no uplink sends by its interface? */
static bool misses_uplink(const struct hca_monitor *h, const struct hca_monitor *before)
{
	const struct hca_port *p, *was = hca_monitor_chosen(before);

	if (!was || is_same_device(hca_monitor_chosen(h), was, h->polls))
		return false;
	p = hca_find_port(&h->list, was->device, was->number);
	return p && is_same_device(p, was, h->polls) && p->n_gids &&
	       h->verdicts[p - h->list.ports].uplink < 0;
}

static void report_choice(struct hca_monitor *h, const struct hca_monitor *before)
{
	const struct hca_port *now = hca_monitor_chosen(h), *was = hca_monitor_chosen(before);

	if (!is_same_device(now, was, h->polls))
		h->generation++;
	else if (now && now->state != was->state)
		log_line("HCA %s port %u is %s", now->device, now->number,
			 hca_state_name(now->state));
	log_changes(h, before);
	h->started = true;
}

static void open_netlink(struct hca_monitor *h)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = h};
	int rc;

	if (h->netlink.events || h->epoll_fd < 0 || !h->list.n || h->wish.choice.mode == HCA_OFF)
		return;
	rc = netlink_open(&h->netlink, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
	if (!rc && epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, netlink_fd(&h->netlink), &ev)) {
		rc = -errno;
		netlink_close(&h->netlink);
	}
	if (rc)
		log_line("cannot receive state changes of HCA ports: %s", strerror(-rc));
}

void hca_monitor_start(struct hca_monitor *h)
{
	const struct hca_monitor none = {.chosen = -1};
	const struct hca_choice *c = &h->wish.choice;

	select_port(h, &none);
	report_choice(h, &none);
	if (c->mode == HCA_NAMED && !hca_find_port(&h->list, c->device, c->port))
		log_line("HCA %s does not exist yet", c->device);
}

/* --- Changes */

void hca_monitor_watch(struct hca_monitor *h, int epoll_fd, uint64_t now)
{
	h->epoll_fd = epoll_fd;
	open_netlink(h);
	if (h->polls)
		h->scan_at = now + HCA_POLL_NS;
}

void hca_monitor_report(struct hca_monitor *h, uint64_t now)
{
	if (h->netlink.events)
		(void)netlink_events(&h->netlink, NULL, NULL);
	if (h->settling || h->scan_at > now + HCA_SCAN_NS)
		h->scan_at = now + HCA_SCAN_NS;
	h->settling = false;
}

static void plan_next_scan(struct hca_monitor *h, uint64_t now)
{
	if (h->polls) {
		h->settling = true;
		h->scan_at = now + HCA_POLL_NS;
	} else {
		h->scan_at = h->settling ? UINT64_MAX : now + HCA_SETTLE_NS;
		h->settling = !h->settling;
	}
}

static bool has_changed(const struct hca_monitor *h, const struct hca_monitor *before)
{
	const struct hca_port *now = hca_monitor_chosen(h), *was = hca_monitor_chosen(before);

	return h->generation != before->generation ||
	       (now && was && memcmp(now, was, sizeof(*now)) != 0);
}

/*
 * Scans and chooses. Returns false if the scan is ignored: because descriptors or memory were
 * lacking, or because it is the first scan in which no uplink sends by the interface of the port in
 * use. In the second case an interface may have been renamed since the daemon read the names of the
 * uplinks' interfaces; the tree of another urxed shows the new name later than the kernel.
 */
static bool scan_and_choose(struct hca_monitor *h, const struct hca_monitor *before)
{
	(void)sysfs_take_shortage();
	scan(h);
	select_port(h, before);
	if (sysfs_take_shortage()) {
		*h = *before;
		return false;
	}
	if (!before->doubted && misses_uplink(h, before)) {
		*h = *before;
		h->doubted = true;
		return false;
	}
	h->doubted = false;
	open_netlink(h);
	report_choice(h, before);
	return true;
}

bool hca_monitor_update(struct hca_monitor *h, uint64_t now)
{
	struct hca_monitor *before;
	bool changed;

	if (now < h->scan_at)
		return false;
	before = malloc(sizeof(*before));
	if (!before) {
		h->scan_at = now + HCA_SETTLE_NS;
		return false;
	}
	*before = *h;
	if (scan_and_choose(h, before))
		plan_next_scan(h, now);
	else
		h->scan_at = now + HCA_SETTLE_NS;
	changed = has_changed(h, before);
	free(before);
	return changed;
}
