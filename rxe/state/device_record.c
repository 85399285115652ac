/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device: attributes, tables of addresses and partitions, the source of keys, and counters. */
#include <string.h>

#include "congestion/cnp.h"
#include "objects/device.h"
#include "state/state_records.h"
#include "wire/header_fields.h"

/* Longest IP packet, bytes. Restoring allocates buffers for packets of the device's MTU. */
#define MTU_MAX 65535

static void dcqcn_fields(struct state_stream *s, struct urxe_dcqcn *p)
{
	state_u8s(s, &p->g_shift, &p->f);
	state_u32s(s, &p->alpha_ns, &p->increase_ns, &p->increase_size, &p->ai_bps, &p->hai_bps);
	state_u64(s, &p->min_bps);
}

void device_attr_record(struct state_stream *s, struct urxe_dev_attr *attr,
			struct urxe_dcqcn *dcqcn)
{
	bool has_dcqcn = attr->dcqcn;

	state_bytes(s, attr->mac, sizeof(attr->mac));
	state_u32_max(s, &attr->mtu, MTU_MAX);
	state_u32s(s, &attr->qpn_first, &attr->qpn_count, &attr->max_packets, &attr->reorder_ns,
		   &attr->probe_ns);
	state_bool(s, &attr->go_back_n);
	state_u8_max(s, &attr->congestion, URXE_CONGESTION_COUNT - 1);
	state_bool(s, &has_dcqcn);
	if (has_dcqcn)
		dcqcn_fields(s, dcqcn);
	if (s->restoring)
		attr->dcqcn = has_dcqcn ? dcqcn : NULL;
	state_u64(s, &attr->link_bps);
	state_u32(s, &attr->cnp_interval_ns);
	state_bool(s, &attr->omit_local_icrc);
}

/* The attributes as the owner gave them: the device has set a max_packets of 0 to its default. */
static struct urxe_dev_attr given_attr(const struct urxe_dev *dev)
{
	struct urxe_dev_attr attr = dev->attr;

	if (dev->window_bytes != UINT32_MAX)
		attr.max_packets = 0;
	return attr;
}

/* Restoring: fails unless the attributes on which the saved state depends equal the saved ones. */
static void check_attr(struct state_device *d, const struct urxe_dev_attr *saved)
{
	const struct urxe_dev_attr now = given_attr(d->dev);

	/* `congestion` determines the rates of the QPs, and the ECN bits of their headers. */
	if (memcmp(now.mac, saved->mac, sizeof(now.mac)) || now.max_packets != saved->max_packets ||
	    now.congestion != saved->congestion)
		state_fail(&d->stream, -EINVAL);
}

static void gid_fields(struct state_stream *s, struct gid_entry *entry)
{
	state_bool(s, &entry->valid);
	if (!entry->valid)
		return;
	state_bytes(s, entry->gid.raw, sizeof(entry->gid.raw));
	state_bool(s, &entry->v1);
	state_u16_max(s, &entry->vlan, VLAN_ID_MAX);
}

static void key_fields(struct state_stream *s, struct urxe_dev *dev)
{
	state_u64(s, &dev->key_seed);
	state_u32s(s, &dev->key_count, &dev->qpn_next);
	if (s->restoring)
		dev->qpn_next = dev->attr.qpn_count ? dev->qpn_next % dev->attr.qpn_count : 0;
}

static void path_mtu_field(struct state_stream *s, struct urxe_dev *dev)
{
	const uint32_t most = urxe_max_path_mtu(dev->attr.mtu);
	uint32_t path_mtu = dev->path_mtu;

	state_u32(s, &path_mtu);
	state_require(s, path_mtu >= 256 && path_mtu <= 4096 && !(path_mtu & (path_mtu - 1)));
	if (s->restoring && state_ok(s))
		dev->path_mtu = path_mtu < most ? path_mtu : most;
}

void device_record(struct state_device *d)
{
	struct state_stream *s = &d->stream;
	struct urxe_dev *dev = d->dev;
	struct urxe_dev_attr attr = given_attr(dev);
	struct urxe_dcqcn dcqcn = dev->dcqcn.params;

	state_begin(s, STATE_RECORD_DEVICE);
	device_attr_record(s, &attr, &dcqcn);
	if (s->restoring && state_ok(s))
		check_attr(d, &attr);
	path_mtu_field(s, dev);
	for (uint32_t i = 0; i < URXE_MAX_GIDS; i++)
		gid_fields(s, &dev->gids[i]);
	dev_count_gids(dev);
	for (uint32_t i = 0; i < URXE_MAX_PKEYS; i++)
		state_u16(s, &dev->pkeys[i]);
	key_fields(s, dev);
	state_time(s, &dev->cnp.since);
	state_u32_max(s, &dev->cnp.spent, CNP_MAX_PER_INTERVAL);
	counters_record(s, &dev->counters);
	state_end(s);
}
