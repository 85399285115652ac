/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes af_packet:eth0 into net_af_packet_urxe2,iface=eth0,framesz=... The parser checks
 * privileges, interfaces and files itself, since DPDK's messages name neither the option nor a
 * remedy.
 */
#include "dpdk/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error_text.h"
#include "unix_path.h"

/* An Ethernet header and one 802.1Q tag. */
#define ETHER_OVERHEAD (14 + 4)

/*
 * Offset of the network header in a slot: netoff of tpacket_rcv in the kernel's
 * net/packet/af_packet.c. The frame begins 14 bytes before it, so this is an upper limit of the
 * bytes before the frame.
 */
#define SLOT_OVERHEAD (TPACKET_ALIGN(TPACKET2_HDRLEN + 16))

/* Largest slot of an af_packet ring: an mbuf must hold a slot, and has a 16-bit size. A power of
 * two. */
#define SLOT_MAX 32768u

/*
 * Size of a ring, for the frames that come while the daemon waits for a processor. The driver locks
 * its rings in memory; without the privilege to lock more, both rings fit the usual RLIMIT_MEMLOCK
 * of 8 MiB.
 */
#define RING_FRAMES      2048u
#define RING_BYTES       (16u << 20)
#define RING_BYTES_LEAST (4u << 20)
#define RINGS_LOCKED     (16u * RING_BYTES) /* of all ports */

/* A frame, its headroom and the buffer's header share one page: net/xdp/xdp_umem.c. */
#define AF_XDP_MTU_MAX 3000u
#define XDP_PROG       ",xdp_prog="
#define BUSY_BUDGET    ",busy_budget="

struct request {
	struct dpdk_spec *spec;
	const char *text;
	char name[256];      /* of an interface or a file */
	const char *options; /* "" or ",key=value..." */
	char *error;
	uint32_t error_size;
};

#define NEEDS "needs root, or CAP_NET_RAW and CAP_NET_ADMIN"

/* Sets the error text, and gives err, which is negative. The functions below that return int return
 * 0 or such a value. */
#define FAIL(request, err, format, ...)                                             \
	error_text_set((request)->error, (request)->error_size, err, "%s: " format, \
		       (request)->text, ##__VA_ARGS__)

static int set_devargs(struct request *req, int printed)
{
	if (printed < 0 || (size_t)printed >= sizeof(req->spec->devargs))
		return FAIL(req, -ENAMETOOLONG, "too long");
	return 0;
}

#define DEVARGS(request, ...)                                                                     \
	set_devargs(request, snprintf((request)->spec->devargs, sizeof((request)->spec->devargs), \
				      __VA_ARGS__))

static int set_iface(struct request *req)
{
	if (!req->name[0])
		return FAIL(req, -EINVAL, "the interface name is missing");
	if (strlen(req->name) >= IF_NAMESIZE || strpbrk(req->name, "/[]{} \t"))
		return FAIL(req, -EINVAL, "'%s' is not a valid interface name", req->name);
	memcpy(req->spec->iface, req->name, strlen(req->name) + 1);
	return 0;
}

/* Checks that the process may configure the interface. DPDK's drivers set its address and flags.
 * Setting the present flags again shows whether the process has the privilege. */
static int check_configurable(struct request *req, int fd, struct ifreq *ifr)
{
	if (ioctl(fd, SIOCGIFFLAGS, ifr))
		return FAIL(req, -errno, "cannot read the flags of %s: %m", req->spec->iface);
	if (!ioctl(fd, SIOCSIFFLAGS, ifr))
		return 0;
	if (errno == EPERM)
		return FAIL(req, -EPERM, NEEDS);
	return FAIL(req, -errno, "cannot set the flags of %s: %m", req->spec->iface);
}

static int query_iface(struct request *req, int fd)
{
	struct dpdk_spec *spec = req->spec;
	struct ifreq ifr = {0};

	memcpy(ifr.ifr_name, spec->iface, sizeof(spec->iface));
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		return FAIL(req, -errno, "cannot read the address of %s: %m", spec->iface);
	if (ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return FAIL(req, -EINVAL, "%s is not an Ethernet interface", spec->iface);
	if (ioctl(fd, SIOCGIFMTU, &ifr))
		return FAIL(req, -errno, "cannot read the MTU of %s: %m", spec->iface);
	spec->iface_mtu = ifr.ifr_mtu;
	return check_configurable(req, fd, &ifr);
}

/* Checks that the interface exists, and that the process may configure and capture on it. */
static int find_iface(struct request *req)
{
	int fd, err;

	err = set_iface(req);
	if (err)
		return err;
	req->spec->ifindex = if_nametoindex(req->spec->iface);
	if (!req->spec->ifindex)
		return FAIL(req, -ENODEV, "this network namespace has no interface %s",
			    req->spec->iface);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EPERM)
		return FAIL(req, -EPERM, NEEDS);
	if (fd < 0)
		return FAIL(req, -errno, "cannot open a packet socket: %m");
	err = query_iface(req, fd);
	close(fd);
	return err;
}

static int no_options(struct request *req)
{
	if (req->options[0])
		return FAIL(req, -EINVAL, "takes no options, not '%s'", req->options);
	return 0;
}

/* Whether the process may lock large rings in memory; raises the limit if need be. */
static bool may_lock_rings(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim))
		return false;
	if (lim.rlim_cur >= RINGS_LOCKED)
		return true;
	lim.rlim_cur = RINGS_LOCKED;
	if (lim.rlim_max < RINGS_LOCKED)
		lim.rlim_max = RINGS_LOCKED;
	return !setrlimit(RLIMIT_MEMLOCK, &lim);
}

static uint32_t ring_frames(uint32_t slot)
{
	uint32_t frames = (may_lock_rings() ? RING_BYTES : RING_BYTES_LEAST) / slot;

	return frames < RING_FRAMES ? frames : RING_FRAMES;
}

/*
 * Makes the arguments of an af_packet port. The driver uses the ring as one array of slots, so the
 * slot size must divide the block size: both are powers of two. By default the driver bypasses the
 * queueing discipline: a full device queue would drop frames silently, and captures on this host
 * would miss them. Hence qdisc_bypass=0.
 *
 * The device's name has the interface's index, because another interface may get the interface's
 * name while the device is open.
 */
static int parse_af_packet(struct request *req)
{
	uint32_t page = sysconf(_SC_PAGESIZE), slot = 2048;
	int err;

	err = no_options(req) ?: find_iface(req);
	if (err)
		return err;
	while (slot < req->spec->iface_mtu + ETHER_OVERHEAD + SLOT_OVERHEAD && slot < SLOT_MAX)
		slot *= 2;
	if (req->spec->iface_mtu > slot - ETHER_OVERHEAD - SLOT_OVERHEAD)
		req->spec->iface_mtu = slot - ETHER_OVERHEAD - SLOT_OVERHEAD;
	req->spec->buffer = slot;
	req->spec->ring = ring_frames(slot);
	return DEVARGS(req,
		       "net_af_packet_urxe%u,iface=%s,qpairs=1,framesz=%u,blocksz=%u,framecnt=%u,"
		       "qdisc_bypass=0",
		       req->spec->ifindex, req->name, slot, slot > page ? slot : page,
		       req->spec->ring);
}

/* The number of receive queues; 1 if the driver does not report it. */
static uint32_t count_rx_queues(const char iface[IF_NAMESIZE])
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr = {.ifr_data = (void *)&channels};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 1;
	memcpy(ifr.ifr_name, iface, IF_NAMESIZE);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		channels = (struct ethtool_channels){.rx_count = 1};
	close(fd);
	return channels.rx_count + channels.combined_count;
}

/*
 * Refuses a specification without ,xdp_prog=FILE: libxdp's default program redirects all frames of
 * the queue. Refuses an interface with several receive queues, unless ,start_queue=N names one: the
 * port has one socket on one queue, and RoCE on another queue would reach the kernel, which drops
 * it. Adds busy_budget=1, unless the user sets it: with 0 the driver waits up to 1 s for a frame
 * if the NIC's driver lacks buffers (XDP_RING_NEED_WAKEUP).
 */
static int parse_af_xdp(struct request *req)
{
	const char *program = strstr(req->options, XDP_PROG);
	uint32_t queues;
	int err;

	if (!program)
		return FAIL(req, -EINVAL,
			    "would receive all traffic of the interface, such as ssh: name a "
			    "program that redirects only RoCE with ,xdp_prog=FILE");
	err = find_iface(req);
	if (err)
		return err;
	if (req->spec->iface_mtu > AF_XDP_MTU_MAX)
		return FAIL(req, -EINVAL, "%s has MTU %u, and af_xdp supports at most %u",
			    req->name, req->spec->iface_mtu, AF_XDP_MTU_MAX);
	queues = count_rx_queues(req->spec->iface);
	if (queues > 1 && !strstr(req->options, ",start_queue="))
		return FAIL(
			req, -EINVAL,
			"%s has %u receive queues, and RoCE may come on any: use one queue "
			"(ethtool -L %s combined 1), or steer UDP port 4791 to one queue and name "
			"it with ,start_queue=N",
			req->name, queues, req->name);
	req->spec->busy_polling = strstr(req->options, BUSY_BUDGET) != NULL;
	program += strlen(XDP_PROG);
	snprintf(req->spec->xdp_program, sizeof(req->spec->xdp_program), "%.*s",
		 (int)strcspn(program, ","), program);
	return DEVARGS(req, "net_af_xdp_%s,iface=%s%s%s", req->name, req->name,
		       req->spec->busy_polling ? "" : BUSY_BUDGET "1", req->options);
}

/* Checks that the process may create the tap, by creating it; the interface disappears with the
 * descriptor. */
static int check_tap(struct request *req)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd, rc = 0;

	memcpy(ifr.ifr_name, req->spec->iface, sizeof(req->spec->iface));
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return FAIL(req, -errno, "cannot open /dev/net/tun: %m");
	if (ioctl(fd, TUNSETIFF, &ifr))
		rc = errno == EPERM ? FAIL(req, -EPERM, "needs root, or CAP_NET_ADMIN")
				    : FAIL(req, -errno, "cannot create it: %m");
	close(fd);
	return rc;
}

static int parse_tap(struct request *req)
{
	int err;

	err = set_iface(req) ?: no_options(req);
	if (err)
		return err;
	if (if_nametoindex(req->name))
		return FAIL(req, -EEXIST, "the interface %s exists already; af_packet:%s uses it",
			    req->name, req->name);
	err = check_tap(req);
	if (err)
		return err;
	return DEVARGS(req, "net_tap_%s,iface=%s", req->name, req->name);
}

static int parse_pcap(struct request *req)
{
	static unsigned int count;
	int err;

	err = no_options(req);
	if (err)
		return err;
	if (!req->name[0])
		return FAIL(req, -EINVAL, "the file name is missing");
	if (access(req->name, R_OK))
		return FAIL(req, -errno, "cannot read %s: %m", req->name);
	return DEVARGS(req, "net_pcap_urxe%u,rx_pcap=%s", count++, req->name);
}

/* Checks that the directory is writable: DPDK's own message would only ask to remove a file. */
static int check_directory(struct request *req, const char *path)
{
	char copy[sizeof(req->name)];
	const char *directory;

	snprintf(copy, sizeof(copy), "%s", path);
	directory = dirname(copy);
	if (access(directory, W_OK | X_OK))
		return FAIL(req, -errno, "cannot create a socket in %s: %m", directory);
	return 0;
}

/* Parses the path and the option `connect` of a vhost: port. Without the option, removes the socket
 * of a process that has died, and checks that the socket can be created. */
static int parse_vhost_socket(struct request *req, struct sockaddr_un *path, bool *connects)
{
	char reason[128] = "the path is too long for a socket";
	int err;

	*connects = !strcmp(req->options, ",connect");
	if (req->options[0] && !*connects)
		return FAIL(req, -EINVAL, "takes no option but connect, not '%s'",
			    req->options + 1);
	err = unix_path_set(path, req->name, strlen(req->name));
	if (err == -EINVAL)
		return FAIL(req, err, "the path of a socket is missing");
	if (!err && !*connects)
		err = unix_path_clear(path, SOCK_STREAM, reason, sizeof(reason));
	if (err)
		return FAIL(req, err, "cannot open its socket: %s", reason);
	return *connects ? 0 : check_directory(req, path->sun_path);
}

/* Sets the arguments of the vhost device. Each device needs a name of its own. With tso=0, the
 * default, a guest with virtio's modern interface segments TCP itself. */
static int set_vhost_devargs(struct request *req, const char *path, bool connects)
{
	static unsigned int count;

	snprintf(req->spec->socket, sizeof(req->spec->socket), "%s", path);
	return DEVARGS(req, "net_vhost%u,iface=%s,queues=1,client=%d", count++, path, connects);
}

static int parse_vhost(struct request *req)
{
	struct sockaddr_un path;
	bool connects;

	return parse_vhost_socket(req, &path, &connects)
		       ?: set_vhost_devargs(req, path.sun_path, connects);
}

/* Whether the name is a PCI address: [domain:]bus:device.function. */
static bool is_pci_address(const char *name)
{
	unsigned int domain, bus, device, function;
	int end = 0;

	if (sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 ||
	    sscanf(name, "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3)
		return !name[end];
	return false;
}

static int parse_other(struct request *req)
{
	if (!req->name[0])
		return FAIL(req, -EINVAL, "the device name is missing");
	req->spec->pci = is_pci_address(req->name) || !strncmp(req->name, "pci:", 4);
	return DEVARGS(req, "%s%s", req->name, req->options);
}

static const struct {
	const char *prefix;
	enum dpdk_kind kind;
	int (*parse)(struct request *req);
} kinds[] = {
	{"af_packet:", DPDK_AF_PACKET, parse_af_packet},
	{"af_xdp:", DPDK_AF_XDP, parse_af_xdp},
	{"tap:", DPDK_TAP, parse_tap},
	{"pcap:", DPDK_PCAP, parse_pcap},
	{"vhost:", DPDK_VHOST, parse_vhost},
	{"dpdk:", DPDK_OTHER, parse_other},
};

/* Splits what follows the type into name and options. The first comma starts the options, so a name
 * cannot contain one. */
static int split_spec(struct request *req, const char *rest)
{
	size_t length = strcspn(rest, ",");

	if (length >= sizeof(req->name))
		return FAIL(req, -ENAMETOOLONG, "too long");
	memcpy(req->name, rest, length);
	req->name[length] = '\0';
	req->options = rest + length;
	return 0;
}

int dpdk_spec_parse(const char *text, struct dpdk_spec *spec, char *error, uint32_t error_size)
{
	struct request req = {.spec = spec, .text = text, .error = error, .error_size = error_size};

	*spec = (struct dpdk_spec){0};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].prefix);

		if (strncmp(text, kinds[i].prefix, length))
			continue;
		spec->kind = kinds[i].kind;
		return split_spec(&req, text + length) ?: kinds[i].parse(&req);
	}
	return FAIL(&req, -EINVAL,
		    "unknown kind of port; known ones: af_packet:, af_xdp:, tap:, pcap:, qemu:, "
		    "vhost:, dpdk:");
}

int netdev_vhost_parse(const char *text, struct netdev_vhost_spec *spec, char *error,
		       uint32_t error_size)
{
	struct dpdk_spec scratch = {0};
	struct request req = {
		.spec = &scratch, .text = text, .error = error, .error_size = error_size};
	struct sockaddr_un path = {0};
	int err;

	if (strncmp(text, "vhost:", 6))
		return FAIL(&req, -EINVAL, "does not start with vhost:");
	err = split_spec(&req, text + 6) ?: parse_vhost_socket(&req, &path, &spec->connects);
	_Static_assert(sizeof(path.sun_path) <= sizeof(spec->path), "the longest path of a socket");
	memcpy(spec->path, path.sun_path, sizeof(path.sun_path));
	return err;
}

int dpdk_spec_vhost(const struct netdev_vhost_spec *vhost, struct dpdk_spec *spec, char *error,
		    uint32_t error_size)
{
	struct request req = {
		.spec = spec, .text = vhost->path, .error = error, .error_size = error_size};

	*spec = (struct dpdk_spec){.kind = DPDK_VHOST};
	return set_vhost_devargs(&req, vhost->path, vhost->connects);
}
