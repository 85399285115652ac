/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DPDK's af_xdp driver attaches its program to the interface, not to the process: the program stays
 * when the process is killed. The driver cannot start while a program is attached. When its start
 * fails, it detaches any program, even that of a running process. So a port starts the driver only
 * if the interface has no program.
 */
#include "xdp/xdp_program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "error_text.h"

/* The function in roce.bpf.c. */
#define PROGRAM_NAME "urxe_roce"

/* Most maps of urxe's programs. The program of an earlier release has only the map of sockets. */
#define MAPS 2

#define CHUNK 4096u /* bytes of one AF_XDP frame */

struct interface {
	const char *text; /* the port specification */
	unsigned int ifindex;
	uint32_t id; /* of the attached program; set by query_program() */
	uint8_t mode;
	char *error;
	uint32_t error_size;
};

/* The word of ip-link(8) for the way in which the program is attached. */
static const char *mode_word(uint8_t mode)
{
	if (mode == XDP_ATTACHED_SKB)
		return "xdpgeneric";
	return mode == XDP_ATTACHED_HW ? "xdpoffload" : "xdp";
}

static int query_program(struct interface *iface)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int err = bpf_xdp_query((int)iface->ifindex, 0, &query);

	iface->id = query.prog_id;
	iface->mode = query.attach_mode;
	return err;
}

/* Sets the error text for an interface with a program that is not urxe's, and returns -EBUSY. */
static int refuse_program(const struct interface *iface)
{
	char name[IF_NAMESIZE] = "";

	if_indextoname(iface->ifindex, name);
	return error_text_set(
		iface->error, iface->error_size, -EBUSY,
		"%s: the interface has another XDP program (id %u) and supports only one; "
		"to detach that: ip link set dev %s %s off",
		iface->text, iface->id, name, mode_word(iface->mode));
}

/* --- Whether the map of sockets is empty */

/* Returns an AF_XDP socket, or -1. The kernel accepts it into the map only with memory for frames
 * and receive rings. */
static int make_socket(void *memory)
{
	const struct xdp_umem_reg umem = {
		.addr = (uintptr_t)memory, .len = CHUNK, .chunk_size = CHUNK};
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), entries = 1;

	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) &&
	    !setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof(entries)) &&
	    !setsockopt(fd, SOL_XDP, XDP_RX_RING, &entries, sizeof(entries)))
		return fd;
	close(fd);
	return -1;
}

/* Whether no entry has a socket: an entry that has one accepts no other. The caller's close of
 * `socket` also removes it from the map. */
static bool accepts_socket(int map, uint32_t entries, int socket)
{
	uint32_t i;

	for (i = 0; i < entries; i++)
		if (bpf_map_update_elem(map, &i, &socket, BPF_NOEXIST))
			return false;
	return true;
}

/* Whether the map has no socket. The kernel lets no process read an XSKMAP, so this function tries
 * to add a socket to each entry. Sockets of killed processes are no longer in the map. */
static bool is_empty(int map, uint32_t entries)
{
	void *memory =
		mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool empty = false;
	int fd;

	if (memory == MAP_FAILED)
		return false;
	fd = make_socket(memory);
	if (fd >= 0) {
		empty = accepts_socket(map, entries, fd);
		close(fd);
	}
	munmap(memory, CHUNK);
	return empty;
}

/* --- The program */

/* Opens the map with this id; *map gets its properties. -1: the map has another type, or cannot be
 * opened. */
static int open_map_of_type(uint32_t id, enum bpf_map_type type, struct bpf_map_info *map)
{
	uint32_t length = sizeof(*map);
	int fd = bpf_map_get_fd_by_id(id);

	if (fd < 0)
		return -1;
	*map = (struct bpf_map_info){0};
	if (!bpf_obj_get_info_by_fd(fd, map, &length) && map->type == type)
		return fd;
	close(fd);
	return -1;
}

/* Opens the program's map of a type. -1: it has none, or is not urxe's. */
static int open_map(int program, enum bpf_map_type type, struct bpf_map_info *map)
{
	uint32_t ids[MAPS], length = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = MAPS, .map_ids = (uintptr_t)ids};
	int fd = -1;

	if (bpf_obj_get_info_by_fd(program, &info, &length) || info.nr_map_ids > MAPS ||
	    strcmp(info.name, PROGRAM_NAME))
		return -1;
	for (uint32_t i = 0; i < info.nr_map_ids && fd < 0; i++)
		fd = open_map_of_type(ids[i], type, map);
	return fd;
}

/* Detaches the program unless another one has replaced it; returns 0 or a negative errno value. */
static int detach_from(unsigned int ifindex, uint8_t mode, int program)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = program);

	return bpf_xdp_detach((int)ifindex, mode == XDP_ATTACHED_SKB ? XDP_FLAGS_SKB_MODE : 0,
			      &opts);
}

static int detach_program(const struct interface *iface, int program)
{
	int err = detach_from(iface->ifindex, iface->mode, program);

	if (!err)
		return 0;
	return error_text_set(iface->error, iface->error_size, err,
			      "%s: cannot detach the XDP program that a killed process left: %s",
			      iface->text, strerror(-err));
}

static int clear_program(const struct interface *iface, int program)
{
	struct bpf_map_info info;
	int map, rc;

	map = open_map(program, BPF_MAP_TYPE_XSKMAP, &info);
	if (map < 0)
		return refuse_program(iface);
	if (is_empty(map, info.max_entries))
		rc = detach_program(iface, program);
	else
		rc = error_text_set(
			iface->error, iface->error_size, -EBUSY,
			"%s: another process receives RoCE by the interface's XDP program (id %u)",
			iface->text, iface->id);
	close(map);
	return rc;
}

int xdp_program_clear(const char *text, unsigned int ifindex, char *error, uint32_t error_size)
{
	struct interface iface = {text, ifindex, .error = error, .error_size = error_size};
	int err, program;

	err = query_program(&iface);
	if (err)
		return error_text_set(error, error_size, err,
				      "%s: cannot query the interface's XDP program: %s", text,
				      strerror(-err));
	if (iface.mode == XDP_ATTACHED_NONE)
		return 0;
	program = bpf_prog_get_fd_by_id(iface.id);
	if (program < 0)
		return refuse_program(&iface);
	err = clear_program(&iface, program);
	close(program);
	return err;
}

static int open_program(unsigned int ifindex)
{
	uint32_t id;

	return bpf_xdp_query_id((int)ifindex, 0, &id) || !id ? -1 : bpf_prog_get_fd_by_id(id);
}

/* --- The kernel's hook of a veth interface */

static bool is_veth(unsigned int ifindex)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool veth;

	if (fd < 0)
		return false;
	veth = if_indextoname(ifindex, ifr.ifr_name) && !ioctl(fd, SIOCETHTOOL, &ifr) &&
	       !strcmp(info.driver, "veth");
	close(fd);
	return veth;
}

/* Makes the object use, as its map `name`, the map of this type that the loaded `program` has.
 * False: the object or the program has no such map, or libbpf refuses. */
static bool share_map(struct bpf_object *object, const char *name, int program,
		      enum bpf_map_type type)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	struct bpf_map_info info;
	int fd = map ? open_map(program, type, &info) : -1;
	bool shared;

	if (fd < 0)
		return false;
	shared = !bpf_map__reuse_fd(map, fd);
	close(fd);
	return shared;
}

/*
 * Loads the program again, with the same maps, as a program that takes packets of several buffers:
 * since Linux 6.9 the kernel then needs no contiguous memory for a GSO packet. -1: libbpf or the
 * kernel refuses, as before Linux 5.18, or the program is not urxe's.
 */
static int load_for_buffers(const char *file, int program)
{
	struct bpf_object *object = bpf_object__open_file(file, NULL);
	struct bpf_program *copy = object ? bpf_object__next_program(object, NULL) : NULL;
	int fd = -1;

	if (copy && share_map(object, "xsks_map", program, BPF_MAP_TYPE_XSKMAP) &&
	    share_map(object, "passed_qpns", program, BPF_MAP_TYPE_ARRAY) &&
	    !bpf_program__set_flags(copy, BPF_F_XDP_HAS_FRAGS) && !bpf_object__load(object))
		fd = fcntl(bpf_program__fd(copy), F_DUPFD_CLOEXEC, 0);
	bpf_object__close(object);
	return fd;
}

/*
 * Detaches `old` from the driver's hook, and attaches `copy` to the kernel's. If that fails,
 * attaches `old` again and returns the error. The kernel allows a program at only one of the hooks:
 * meanwhile the interface has none, and another process may attach its own.
 */
static int move_program(unsigned int ifindex, int old, int copy)
{
	const uint32_t flags = XDP_FLAGS_UPDATE_IF_NOEXIST;
	int err = detach_from(ifindex, XDP_ATTACHED_DRV, old);

	if (err)
		return err;
	err = bpf_xdp_attach((int)ifindex, copy, XDP_FLAGS_SKB_MODE | flags, NULL);
	if (err)
		bpf_xdp_attach((int)ifindex, old, flags, NULL);
	return err;
}

static bool is_attached(struct interface *iface, int program)
{
	struct bpf_prog_info info = {0};
	uint32_t length = sizeof(info);

	return !query_program(iface) && !bpf_obj_get_info_by_fd(program, &info, &length) &&
	       info.id == iface->id;
}

/* Called after a move that failed with `err`. 0: the program is attached as before the move.
 * Otherwise the error for the user: the interface has no program, or another process's. */
static int check_program(struct interface *iface, int program, int err)
{
	if (is_attached(iface, program))
		return 0;
	if (iface->mode != XDP_ATTACHED_NONE)
		return refuse_program(iface);
	return error_text_set(iface->error, iface->error_size, err,
			      "%s: cannot attach the XDP program: %s", iface->text, strerror(-err));
}

int xdp_program_leave_veth(const char *text, unsigned int ifindex, const char *file, int *program,
			   char *error, uint32_t error_size)
{
	struct interface iface = {text, ifindex, .error = error, .error_size = error_size};
	int old = is_veth(ifindex) ? open_program(ifindex) : -1, err;

	*program = -1;
	if (old < 0)
		return 0;
	*program = load_for_buffers(file, old);
	err = *program < 0 ? 0 : move_program(ifindex, old, *program);
	if (err) {
		close(*program);
		*program = -1;
		err = check_program(&iface, old, err);
	}
	close(old);
	return err;
}

void xdp_program_detach(unsigned int ifindex, int program)
{
	if (program < 0)
		return;
	detach_from(ifindex, XDP_ATTACHED_SKB, program);
	close(program);
}

/* --- Queue pairs whose packets pass to the kernel */

struct xdp_passed *xdp_program_map_passed(unsigned int ifindex)
{
	int program = open_program(ifindex), map;
	struct bpf_map_info info;
	void *passed = MAP_FAILED;

	if (program < 0)
		return NULL;
	map = open_map(program, BPF_MAP_TYPE_ARRAY, &info);
	close(program);
	if (map < 0)
		return NULL;
	if (info.value_size == sizeof(struct xdp_passed))
		passed = mmap(NULL, info.value_size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	close(map);
	return passed == MAP_FAILED ? NULL : passed;
}

/* The XDP program reads each word by one load, so each word changes at once. */
void xdp_program_pass_blocks(struct xdp_passed *passed, const uint16_t *blocks, uint32_t n)
{
	uint64_t new[XDP_BLOCK_WORDS] = {0};

	for (uint32_t i = 0; i < n; i++)
		new[blocks[i] / 64 % XDP_BLOCK_WORDS] |= UINT64_C(1) << blocks[i] % 64;
	for (uint32_t i = 0; i < XDP_BLOCK_WORDS; i++)
		__atomic_store_n(&passed->blocks[i], new[i], __ATOMIC_RELAXED);
}

void xdp_program_pass_qp1(struct xdp_passed *passed, bool pass)
{
	__atomic_store_n(&passed->qp1, pass, __ATOMIC_RELAXED);
}

static uint64_t mac_number(const uint8_t mac[6])
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < 6; i++)
		number = number << 8 | mac[i];
	return number;
}

/* The first word makes the program compare MACs, so it is set last, and cleared first. */
void xdp_program_pass_other_macs(struct xdp_passed *passed, const uint8_t (*own)[6], uint32_t n)
{
	if (!n)
		__atomic_store_n(&passed->own_macs[0], 0, __ATOMIC_RELEASE);
	for (uint32_t i = XDP_OWN_MACS; i-- > 0;)
		__atomic_store_n(&passed->own_macs[i], i < n ? mac_number(own[i]) : 0,
				 __ATOMIC_RELEASE);
}

void xdp_program_unmap_passed(struct xdp_passed *passed)
{
	if (passed)
		munmap(passed, sizeof(*passed));
}
