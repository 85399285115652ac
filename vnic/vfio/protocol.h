/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the vfio-user protocol, version 0.0 (QEMU's docs/interop/vfio-user.rst). Flags and
 * indices that the protocol shares with the kernel's VFIO are those of linux/vfio.h. Integers are
 * in host byte order.
 */
#ifndef URXE_VNIC_VFIO_PROTOCOL_H
#define URXE_VNIC_VFIO_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

enum vfio_user_command {
	VFIO_USER_VERSION = 1,
	VFIO_USER_DMA_MAP,
	VFIO_USER_DMA_UNMAP,
	VFIO_USER_DEVICE_GET_INFO,
	VFIO_USER_DEVICE_GET_REGION_INFO,
	VFIO_USER_DEVICE_GET_REGION_IO_FDS,
	VFIO_USER_DEVICE_GET_IRQ_INFO,
	VFIO_USER_DEVICE_SET_IRQS,
	VFIO_USER_REGION_READ,
	VFIO_USER_REGION_WRITE,
	VFIO_USER_DMA_READ,  /* from the server to the client */
	VFIO_USER_DMA_WRITE, /* likewise */
	VFIO_USER_DEVICE_RESET,
	VFIO_USER_REGION_WRITE_MULTI = 15,
	VFIO_USER_DEVICE_FEATURE,
	VFIO_USER_MIG_DATA_READ,
	VFIO_USER_MIG_DATA_WRITE,
	VFIO_USER_COMMANDS,
};

struct vfio_user_header {
	uint16_t id;
	uint16_t command;
	uint32_t size; /* bytes, with the header */
	uint32_t flags;
	uint32_t error; /* errno value of a reply with VFIO_USER_ERROR */
};

#define VFIO_USER_TYPE       0xfu /* in flags: 0 = command, 1 = reply */
#define VFIO_USER_IS_COMMAND 0u
#define VFIO_USER_IS_REPLY   1u
#define VFIO_USER_NO_REPLY   0x10u
#define VFIO_USER_ERROR      0x20u

/* The bodies of messages, behind the header. */

struct vfio_user_version {
	uint16_t major, minor;
	/* JSON text with its NUL follows; a command may lack the text. */
};

struct vfio_user_dma_map {
	uint32_t argsz, flags;
	uint64_t offset; /* in the descriptor's file */
	uint64_t addr, size;
};

struct vfio_user_dma_unmap {
	uint32_t argsz, flags;
	uint64_t addr, size;
};

struct vfio_user_device_info {
	uint32_t argsz, flags;
	uint32_t regions, irqs;
};

struct vfio_user_region_info {
	uint32_t argsz, flags;
	uint32_t index, cap_offset;
	uint64_t size, offset;
};

struct vfio_user_irq_info {
	uint32_t argsz, flags;
	uint32_t index, count;
};

struct vfio_user_irq_set {
	uint32_t argsz, flags;
	uint32_t index, start, count;
	/* `count` bytes follow if flags has VFIO_IRQ_SET_DATA_BOOL. */
};

struct vfio_user_access {
	uint64_t offset;
	uint32_t region, count;
	/* `count` bytes follow in the command of a write and in the reply of a read. */
};

/* The body of REGION_WRITE_MULTI is a 64-bit number, then that many of these. */
struct vfio_user_small_write {
	struct vfio_user_access access;
	uint8_t data[8];
};

#define VFIO_USER_SMALL_WRITES 200u /* most writes of one message */

/* DEVICE_FEATURE; the feature's data follow. */
struct vfio_user_feature {
	uint32_t
		argsz; /* longest body that the client takes as a reply; in the reply: its length */
	uint32_t flags;
};

#define VFIO_USER_FEATURE_NUMBER 0xffffu /* in flags */
#define VFIO_USER_FEATURE_GET    (1u << 16)
#define VFIO_USER_FEATURE_SET    (1u << 17)
#define VFIO_USER_FEATURE_PROBE  (1u << 18)

struct vfio_user_device_state {
	uint32_t state;
	uint32_t data_fd; /* unused */
};

struct vfio_user_log_control {
	uint64_t page_size;
	uint32_t n_ranges, reserved;
	/* n_ranges structs vfio_user_log_range follow. */
};

struct vfio_user_log_range {
	uint64_t iova, length;
};

struct vfio_user_log_report {
	uint64_t iova, length, page_size;
	/* In the reply a bitmap of 64-bit words follows. */
};

/* MIG_DATA_READ, MIG_DATA_WRITE. */
struct vfio_user_migration_data {
	uint32_t argsz, size;
	/* `size` bytes follow in the command of a write and in the reply of a read. */
};

static_assert(sizeof(struct vfio_user_feature) == 8, "");
static_assert(sizeof(struct vfio_user_device_state) == 8, "");
static_assert(sizeof(struct vfio_user_log_control) == 16, "");
static_assert(sizeof(struct vfio_user_log_report) == 24, "");
static_assert(sizeof(struct vfio_user_header) == 16, "");
static_assert(sizeof(struct vfio_user_dma_map) == 32, "");
static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "");
static_assert(sizeof(struct vfio_user_device_info) == 16, "");
static_assert(sizeof(struct vfio_user_region_info) == 32, "");
static_assert(sizeof(struct vfio_user_irq_info) == 16, "");
static_assert(sizeof(struct vfio_user_irq_set) == 20, "");
static_assert(sizeof(struct vfio_user_access) == 16, "");
static_assert(sizeof(struct vfio_user_small_write) == 24, "");

/*
 * The server refuses longer messages; bytes, with the header. A command of VFIO_USER_SMALL_WRITES
 * writes has 4824 bytes, one with VFIO_USER_DATA_MAX bytes of data a little more than 4096.
 */
#define VFIO_USER_MESSAGE_MAX 8192u
/* Bytes of data, as of a region, of a bitmap or of a migration, in one message. */
#define VFIO_USER_DATA_MAX (VFIO_USER_MESSAGE_MAX / 2)
/* Descriptors of one message: QEMU sends up to 16. */
#define VFIO_USER_FDS 16u

#endif
