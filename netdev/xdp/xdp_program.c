/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DPDK's driver fastens its program to the interface and not to itself: it stays when the process
 * is killed. The next start would fail, and the driver takes off what is there when it fails, also
 * if that is a living process's. So it starts only where there is none.
 */
#include "xdp/xdp_program.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "error_text.h"

/* Of xdp/roce.bpf.c. */
#define PROGRAM_NAME "urxe_roce"

#define CHUNK 4096u

struct interface {
	const char *text; /* what was asked for */
	unsigned int ifindex;
	uint32_t id; /* of its program */
	uint8_t mode;
	char *why;
	uint32_t why_size;
};

/* Which word of ip-link(8) stands for the program. */
static const char *mode_word(uint8_t mode)
{
	if (mode == XDP_ATTACHED_SKB)
		return "xdpgeneric";
	return mode == XDP_ATTACHED_HW ? "xdpoffload" : "xdp";
}

/* Of which nobody can say here whether it is needed. */
static int refuse(const struct interface *iface)
{
	char name[IF_NAMESIZE] = "";

	if_indextoname(iface->ifindex, name);
	return netdev_why(iface->why, iface->why_size, -EBUSY,
			  "%s: the interface has another XDP program (id %u), and can have one; if "
			  "nobody needs it: ip link set dev %s %s off",
			  iface->text, iface->id, name, mode_word(iface->mode));
}

/* --- Whether a map has sockets */

/* The kernel takes a socket into a map when it has memory for frames and rings to receive by. */
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

/* Each place takes a socket only if it has none. It leaves them all when it is closed. */
static bool takes_socket(int map, uint32_t places, int socket)
{
	uint32_t i;

	for (i = 0; i < places; i++)
		if (bpf_map_update_elem(map, &i, &socket, BPF_NOEXIST))
			return false;
	return true;
}

/*
 * What a map of this kind holds cannot be read. A killed process's socket has left it: the kernel
 * sees to that.
 */
static bool is_empty(int map, uint32_t places)
{
	void *memory =
		mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool empty = false;
	int fd;

	if (memory == MAP_FAILED)
		return false;
	fd = make_socket(memory);
	if (fd >= 0) {
		empty = takes_socket(map, places, fd);
		close(fd);
	}
	munmap(memory, CHUNK);
	return empty;
}

/* --- The program */

/* It has one map, that of sockets. */
static int open_map(int program, uint32_t *places)
{
	uint32_t id, length = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = 1, .map_ids = (uintptr_t)&id};
	struct bpf_map_info map = {0};
	int fd;

	if (bpf_obj_get_info_by_fd(program, &info, &length) || info.nr_map_ids != 1 ||
	    strcmp(info.name, PROGRAM_NAME))
		return -1;
	fd = bpf_map_get_fd_by_id(id);
	length = sizeof(map);
	if (fd < 0)
		return -1;
	*places = 0;
	if (!bpf_obj_get_info_by_fd(fd, &map, &length) && map.type == BPF_MAP_TYPE_XSKMAP)
		*places = map.max_entries;
	if (*places)
		return fd;
	close(fd);
	return -1;
}

/* Off with it, if it is still that. */
static int take_off(const struct interface *iface, int program)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = program);
	int err = bpf_xdp_detach((int)iface->ifindex, 0, &opts);

	if (!err)
		return 0;
	return netdev_why(iface->why, iface->why_size, err,
			  "%s: cannot take off the XDP program that a killed process left: %s",
			  iface->text, strerror(-err));
}

static int clear(const struct interface *iface, int program)
{
	uint32_t places;
	int map, rc;

	map = open_map(program, &places);
	if (map < 0)
		return refuse(iface);
	if (is_empty(map, places))
		rc = take_off(iface, program);
	else
		rc = netdev_why(
			iface->why, iface->why_size, -EBUSY,
			"%s: another process gets RoCE by the interface's XDP program (id %u)",
			iface->text, iface->id);
	close(map);
	return rc;
}

int xdp_program_clear(const char *text, unsigned int ifindex, char *why, uint32_t why_size)
{
	struct interface iface = {text, ifindex, .why = why, .why_size = why_size};
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int err, program;

	err = bpf_xdp_query((int)ifindex, 0, &query);
	if (err)
		return netdev_why(why, why_size, err,
				  "%s: cannot ask for the interface's XDP program: %s", text,
				  strerror(-err));
	if (query.attach_mode == XDP_ATTACHED_NONE)
		return 0;
	iface.id = query.prog_id;
	iface.mode = query.attach_mode;
	program = bpf_prog_get_fd_by_id(iface.id);
	if (program < 0)
		return refuse(&iface);
	err = clear(&iface, program);
	close(program);
	return err;
}
