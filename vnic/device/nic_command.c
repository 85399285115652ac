/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The commands of the CMD register. The result 0 is success, 1 a refusal. */
#include <stddef.h>

#include "nic.h"
#include "shared.h"

/* The answer to GET_TXDATA_DESC_SIZE, bytes. Linux' driver copies so many bytes of a frame at most
 * to a member of 128 bytes; with a larger number its memcpy would warn (FORTIFY_SOURCE). */
#define TX_DATA_DESC_SIZE 128
#define RX_DATA_DESC_SIZE 128 /* the drivers' own default, bytes */

/* When a command is permitted: always; while the device may access the driver's memory; or only if
 * the NIC is active, too. */
enum need { ALWAYS, MEMORY, ACTIVE };

static uint32_t activate_device(struct vnic_device *dev)
{
	vnic_device_stop(dev);
	return !vnic_device_activate(dev);
}

/* Writes the statistics first, because a later GET_STATS finds no queues to report. */
static uint32_t quiesce_device(struct vnic_device *dev)
{
	vnic_device_write_stats(dev);
	vnic_device_stop(dev);
	return 0;
}

static uint32_t reset_device(struct vnic_device *dev)
{
	vnic_device_reset(dev);
	return 0;
}

static uint32_t update_rx_mode(struct vnic_device *dev)
{
	vnic_device_update_mode(dev);
	return 0;
}

static uint32_t update_mac_filters(struct vnic_device *dev)
{
	return !vnic_device_update_groups(dev);
}

static uint32_t update_vlan_filters(struct vnic_device *dev)
{
	vnic_device_update_vlans(dev);
	return 0;
}

static uint32_t update_feature(struct vnic_device *dev)
{
	return !vnic_device_update_features(dev);
}

/* Reads the driver's hash key and table again. Refuses while RSS is off, or if the table is
 * invalid, and then changes nothing. */
static uint32_t update_rss_table(struct vnic_device *dev)
{
	return !(dev->features & UPT1_F_RSS) || !vnic_device_update_features(dev);
}

/* Sets the fields that are hashed, and ignores unknown bits: the driver asks by GET_RSS_FIELDS
 * which fields it got. */
static uint32_t set_rss_fields(struct vnic_device *dev)
{
	dev->rss_fields = vnic_load(&dev->shared->rss_fields) & VMXNET3_RSS_FIELDS;
	return 0;
}

/*
 * Commands without effect here: moderation levels (a burst of the switch raises at most one
 * interrupt per vector), waking a sleeping guest, the sizes of receive buffers and the regions that
 * contain them (each descriptor has its size and address), and the queues' status, which is always
 * up to date in their descriptors.
 */
static uint32_t ignore_command(struct vnic_device *dev)
{
	(void)dev;
	return 0;
}

/*
 * The address of the driver's coalescing scheme, to read or to write; NULL: not in the driver's
 * memory.
 */
static struct vmxnet3_coalesce_scheme *find_scheme(struct vnic_device *dev)
{
	const struct vmxnet3_variable_conf *info = &dev->shared->command_info;
	uint64_t addr = vnic_load(&info->addr);

	if (vnic_load(&info->len) < sizeof(dev->coalesce) || addr % sizeof(uint32_t))
		return NULL;
	return vnic_region_memory(dev, addr, sizeof(dev->coalesce));
}

static bool scheme_valid(const struct vmxnet3_coalesce_scheme *requested)
{
	switch (requested->mode) {
	case VMXNET3_COALESCE_DISABLED:
	case VMXNET3_COALESCE_ADAPT: return true;
	case VMXNET3_COALESCE_STATIC:
		return requested->para[0] <= VMXNET3_COAL_STATIC_MAX_DEPTH &&
		       requested->para[1] <= VMXNET3_COAL_STATIC_MAX_DEPTH &&
		       requested->para[2] <= VMXNET3_COAL_STATIC_MAX_DEPTH;
	case VMXNET3_COALESCE_RBC:
		return requested->para[0] >= VMXNET3_COAL_RBC_MIN_RATE &&
		       requested->para[0] <= VMXNET3_COAL_RBC_MAX_RATE;
	default: return false;
	}
}

/* Stores the driver's scheme, for GET_COALESCE only: the switch's bursts space the interrupts
 * already. 1: the scheme is invalid, or not in the driver's memory. */
static uint32_t set_coalesce(struct vnic_device *dev)
{
	const struct vmxnet3_coalesce_scheme *shared = find_scheme(dev);
	struct vmxnet3_coalesce_scheme requested;

	if (!shared)
		return 1;
	requested.mode = vnic_load(&shared->mode);
	for (uint32_t i = 0; i < 3; i++)
		requested.para[i] = vnic_load(&shared->para[i]);
	if (!scheme_valid(&requested))
		return 1;
	dev->coalesce = requested;
	return 0;
}

static uint32_t get_coalesce(struct vnic_device *dev)
{
	struct vmxnet3_coalesce_scheme *shared = find_scheme(dev);

	if (!shared)
		return 1;
	vnic_store(&shared->mode, dev->coalesce.mode);
	for (uint32_t i = 0; i < 3; i++)
		vnic_store(&shared->para[i], dev->coalesce.para[i]);
	vnic_dirty_mark(dev->attr.log, shared, sizeof(*shared));
	return 0;
}

static uint32_t get_stats(struct vnic_device *dev)
{
	vnic_device_write_stats(dev);
	return 0;
}

static uint32_t get_link(struct vnic_device *dev)
{
	return dev->link ? VMXNET3_LINK_UP(dev->link) : 0;
}

static uint32_t get_perm_mac_lo(struct vnic_device *dev)
{
	return vnic_mac_low(dev->attr.mac);
}

static uint32_t get_perm_mac_hi(struct vnic_device *dev)
{
	return vnic_mac_high(dev->attr.mac);
}

static uint32_t get_rss_fields(struct vnic_device *dev)
{
	return dev->rss_fields;
}

static uint32_t get_capabilities(struct vnic_device *dev)
{
	return dev->capabilities;
}

/* The sizes of data descriptors: for sent frames in the lower half and, from revision 9 on, for
 * received frames in the upper half. */
static uint32_t get_data_desc_sizes(struct vnic_device *dev)
{
	return TX_DATA_DESC_SIZE |
	       (dev->revision >= VMXNET3_REV_9 ? (uint32_t)RX_DATA_DESC_SIZE << 16 : 0);
}

struct command {
	uint32_t (*run)(struct vnic_device *dev);
	enum need need;
	uint32_t revision; /* the first revision with this command; 0 = all revisions */
	uint32_t answer;   /* the result if `run` is NULL; not 0 */
};

#define SET(name) [VMXNET3_CMD_##name - VMXNET3_CMD_FIRST_SET]
#define GET(name) [VMXNET3_CMD_##name - VMXNET3_CMD_FIRST_GET]

static const struct command sets[] = {
	SET(ACTIVATE_DEV) = {activate_device, MEMORY},
	SET(QUIESCE_DEV) = {quiesce_device, ALWAYS},
	SET(RESET_DEV) = {reset_device, ALWAYS},
	SET(UPDATE_RX_MODE) = {update_rx_mode, ACTIVE},
	SET(UPDATE_MAC_FILTERS) = {update_mac_filters, ACTIVE},
	SET(UPDATE_VLAN_FILTERS) = {update_vlan_filters, ACTIVE},
	SET(UPDATE_RSSIDT) = {update_rss_table, ACTIVE},
	SET(UPDATE_IML) = {ignore_command, ACTIVE},
	SET(UPDATE_PMCFG) = {ignore_command, ALWAYS},
	SET(UPDATE_FEATURE) = {update_feature, ACTIVE},
	SET(SET_COALESCE) = {set_coalesce, ACTIVE, VMXNET3_REV_3},
	SET(REGISTER_MEMREGS) = {ignore_command, ACTIVE, VMXNET3_REV_4},
	SET(SET_RSS_FIELDS) = {set_rss_fields, ACTIVE, VMXNET3_REV_4},
	SET(SET_RING_BUFFER_SIZE) = {ignore_command, ACTIVE, VMXNET3_REV_7},
};

static const struct command gets[] = {
	GET(GET_QUEUE_STATUS) = {ignore_command, ALWAYS},
	GET(GET_STATS) = {get_stats, MEMORY},
	GET(GET_LINK) = {get_link, ALWAYS},
	GET(GET_PERM_MAC_LO) = {get_perm_mac_lo, ALWAYS},
	GET(GET_PERM_MAC_HI) = {get_perm_mac_hi, ALWAYS},
	GET(GET_DID_LO) = {NULL, ALWAYS, .answer = VMXNET3_PCI_DEVICE_ID},
	GET(GET_DID_HI) = {NULL, ALWAYS, .answer = VMXNET3_PCI_REVISION},
	GET(GET_DEV_EXTRA_INFO) = {ignore_command, ALWAYS},
	GET(GET_CONF_INTR) = {NULL, ALWAYS, .answer = VMXNET3_IT_MSIX | VMXNET3_IMM_AUTO << 2},
	GET(GET_ADAPTIVE_RING_INFO) = {NULL, ALWAYS, .answer = VMXNET3_DISABLE_ADAPTIVE_RING},
	GET(GET_TXDATA_DESC_SIZE) = {get_data_desc_sizes, ALWAYS, VMXNET3_REV_3},
	GET(GET_COALESCE) = {get_coalesce, ACTIVE, VMXNET3_REV_3},
	GET(GET_RSS_FIELDS) = {get_rss_fields, ALWAYS, VMXNET3_REV_4},
	/* Offers the numbers of queues of earlier revisions. With more, the layout of the
	 * interrupts' configuration would change. */
	GET(GET_MAX_QUEUES_CONF) = {NULL, ALWAYS, VMXNET3_REV_6,
				    .answer = VMXNET3_MAX_QUEUES(VMXNET3_MAX_TX_QUEUES,
								 VMXNET3_MAX_RX_QUEUES)},
	GET(GET_DCR0_REG) = {get_capabilities, ALWAYS, VMXNET3_REV_7},
	/* 0: the device has no rings of time stamps. */
	GET(GET_TSRING_DESC_SIZE) = {ignore_command, ALWAYS, VMXNET3_REV_9},
	/* Drivers that know LRO is missing aggregate received frames themselves. */
	GET(GET_DISABLED_OFFLOADS) = {NULL, ALWAYS, VMXNET3_REV_9, .answer = VMXNET3_OFFLOAD_LRO},
};

static const struct command *find_command(uint32_t cmd)
{
	uint32_t set = cmd - (uint32_t)VMXNET3_CMD_FIRST_SET;
	uint32_t get = cmd - (uint32_t)VMXNET3_CMD_FIRST_GET;

	if (set < sizeof(sets) / sizeof(sets[0]))
		return &sets[set];
	return get < sizeof(gets) / sizeof(gets[0]) ? &gets[get] : NULL;
}

uint32_t vnic_device_command(struct vnic_device *dev, uint32_t cmd)
{
	const struct command *command = find_command(cmd);

	/* An unknown command fails, as on a device that is older than its driver. */
	if (!command || !(command->run || command->answer) || dev->revision < command->revision)
		return 1;
	if (command->need != ALWAYS && dev->no_master)
		return 1;
	if (command->need == ACTIVE && dev->state != VNIC_DEVICE_ACTIVE)
		return 1;
	return command->run ? command->run(dev) : command->answer;
}
