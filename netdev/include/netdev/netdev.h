/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports: devices that receive and send whole Ethernet frames without FCS. The daemon's uplinks, the
 * benchmark's stations, captures and tests use them.
 *
 * One thread at a time uses a port. A port can sit on another one: an impairing port loses, delays
 * or corrupts the frames of the port below. Functions that return int return 0 or a negative errno
 * value. All times are in nanoseconds, of one clock per port: CLOCK_MONOTONIC, or a test's.
 */
#ifndef URXE_NETDEV_NETDEV_H
#define URXE_NETDEV_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

/* Multicast MACs that a port can be told (netdev_add_group). */
#define NETDEV_GROUPS 30
/* Most MACs of netdev_add_mac. */
#define NETDEV_MACS 4

struct netdev;
struct sockaddr_un;
struct stat;

/* A received frame, or a frame to send. */
struct netdev_frame {
	const uint8_t *data;
	uint32_t len; /* bytes at data */
	/* Bytes on the wire: more than len if a capture's snap length cut the frame. In a frame to
	 * send, 0 stands for len. */
	uint32_t wire_len;
	uint64_t time; /* when the frame was captured or is due; 0 = the port has no clock */
};

/*
 * Receives up to n frames, whose memory is valid until the next call of any function but netdev_tx
 * with this port. `now` is the current time, for ports that delay frames.
 */
uint32_t netdev_rx(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n);
/* Copies and sends up to n frames; returns how many the port accepted, in order. */
uint32_t netdev_tx(struct netdev *port, uint64_t now, const struct netdev_frame *frames,
		   uint32_t n);
/* When netdev_rx must be called again without a wake-up, for delayed frames; UINT64_MAX = never. */
uint64_t netdev_next_deadline(struct netdev *port);
/*
 * A descriptor to poll(2) for received frames, the same for the port's life; -1 = none: poll the
 * port each netdev_poll_interval_ns instead. Sleep on it only after a netdev_rx without frames, and
 * only until netdev_next_deadline. Call this function only to sleep: from the call on, an empty
 * netdev_rx may cost a system call that resets the descriptor.
 */
int netdev_wait_fd(struct netdev *port);
/*
 * How long to wait before the next netdev_rx on a port without a descriptor that has had no frame
 * for `quiet` ns: 10 us to 1 ms, and up to 50 ms after a second without frames. The first frame
 * after a silence may wait that long. RoCE's usual timeout of 67 ms covers that; senders with
 * shorter timeouts need enough retries.
 */
uint64_t netdev_poll_interval_ns(uint64_t quiet);
/* The MAC address of the port's own end. False: it has none. */
bool netdev_mac(const struct netdev *port, uint8_t mac[6]);
/* The largest payload of a frame in bytes, both ways: the smaller of the caller's request and the
 * device's MTU; UINT32_MAX = any. */
uint32_t netdev_mtu(const struct netdev *port);
/*
 * on: the port receives, and wakes up for, frames to all addresses and of all EtherTypes, as a
 * bridge needs. Off: the port's usual filter again. Either call undoes netdev_exclude_qpns and
 * netdev_admit_qpns. Returns 0 or a negative errno value. -EOPNOTSUPP, with `on` only: an af_packet
 * or af_xdp port lacks the socket for such frames, because the kernel refused the socket when the
 * port was opened; nothing changes. After another error with `on` the port has its usual filter,
 * except for parts that cannot be set either, of which DPDK's log tells. After an error with off,
 * too, all parts but the failed ones have been set; the others stay until the next call.
 */
int netdev_set_promiscuous(struct netdev *port, bool on);
/*
 * From now on the port also receives frames with the 802.1Q tag `vlan` (1 to 4094). Returns
 * 0 also for ports that do not filter tags, such as those on an interface of the kernel: they
 * receive all tags that the interface's NIC lets through.
 */
int netdev_add_vlan(struct netdev *port, uint16_t vlan);
/*
 * From now on the port receives no RoCE packets to queue pairs of these n blocks of QPNs, each
 * named by its upper 12 bits (netdev/packet_port.h): other sockets receive them from the same
 * interface. -ENOTSUP: the port is of neither af_packet: nor af_xdp: with urxe's XDP program, sits
 * on another port, or is promiscuous; -E2BIG: too many blocks.
 */
int netdev_exclude_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n);
/*
 * From now on the port receives RoCE packets to QP1 and to queue pairs of these blocks only. A call
 * undoes an earlier netdev_exclude_qpns, and the other way round. Errors as of netdev_exclude_qpns,
 * and -ENOMEM: the blocks exceed net.core.optmem_max. After an error the port may still have its
 * old filter.
 */
int netdev_admit_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n);
/* Whether netdev_exclude_qpns and netdev_admit_qpns work now. */
bool netdev_can_exclude_qpns(struct netdev *port);
/*
 * From now on the port also receives frames to this unicast MAC of the host, beside those to its
 * own MAC. A device that cannot filter by several MACs then receives all frames. Returns 0 also for
 * ports that do not filter. -ENOSPC: NETDEV_MACS have been added; else the driver's error.
 */
int netdev_add_mac(struct netdev *port, const uint8_t mac[6]);
/*
 * From now on the port also receives frames to this multicast MAC. Only a DPDK device whose driver
 * has a list of such MACs (rte_eth_dev_set_mc_addr_list) needs that. Returns 0 also for all other
 * ports, which receive all multicast frames anyway. -ENOSPC: NETDEV_GROUPS have been added; else
 * the driver's error.
 */
int netdev_add_group(struct netdev *port, const uint8_t mac[6]);
/*
 * From now on the port also receives frames to all multicast MACs. A device may refuse, for example
 * a VF that its host does not trust: a negative errno value. Returns 0 also if netdev_dpdk_open has
 * tried that already, even if the device refused it then.
 */
int netdev_set_allmulticast(struct netdev *port);
/*
 * Whether the port can reach its peer: the device's link is up, the virtual machine is connected,
 * or the kernel has not removed the tap's interface. True for ports that do not know. A tap port
 * notices the removal in netdev_rx: poll(2) on netdev_wait_fd then wakes the caller, and does so
 * again until netdev_close.
 */
bool netdev_is_up(struct netdev *port);
/*
 * Call it when the kernel's interface below the port may have a link again: an af_packet port then
 * sends the frames that it kept meanwhile in the next netdev_rx, which is due at once
 * (netdev_next_deadline). Without the call it tries each 10 s.
 */
void netdev_link_returned(struct netdev *port);
/* Page size of the packet buffers' memory in bytes, which shows huge pages; 0 = no buffers. */
uint64_t netdev_page_size(const struct netdev *port);

/* X(identifier, printed name, meaning) */
#define NETDEV_COUNTER_LIST(X)                                                            \
	X(RX_FRAMES, "rx_frames", "received frames")                                      \
	X(RX_BYTES, "rx_bytes", "bytes of received frames")                               \
	X(RX_OWN, "rx_own", "dropped: the host's own outgoing frames")                    \
	X(RX_BAD, "rx_bad", "dropped: frames in too many segments, or empty")             \
	X(RX_TOO_LONG, "rx_too_long", "dropped: received frames longer than the MTU")     \
	X(RX_NOT_PEER, "rx_not_peer", "dropped: frames of a sender that is not the peer") \
	X(RX_MISSED, "rx_missed", "frames that the device dropped")                       \
	X(RX_QP1_MISSED, "rx_qp1_missed", "packets to QP1 that its full ring dropped")    \
	X(TX_FRAMES, "tx_frames", "sent frames")                                          \
	X(TX_BYTES, "tx_bytes", "bytes of sent frames")                                   \
	X(TX_TOO_LONG, "tx_too_long",                                                     \
	  "dropped: frames to send longer than the MTU, or than a machine's buffers")     \
	X(TX_REFUSED, "tx_refused", "frames that the device did not accept")              \
	X(TX_ERRORS, "tx_errors", "frames that the device accepted and lost")             \
	X(TX_NO_PEER, "tx_no_peer", "dropped: frames to send without a peer")             \
	X(PEERS, "peers", "peers that connected")                                         \
	X(PEERS_REFUSED, "peers_refused", "refused peers: another one was connected")     \
	X(PEERS_BROKEN, "peers_broken", "peers disconnected after malformed data")        \
	X(RESTARTS, "restarts", "starts of another peer process after the end of an earlier one")

#define NETDEV_COUNTER_ENUM(id, name, text) NETDEV_##id,
enum netdev_counter { NETDEV_COUNTER_LIST(NETDEV_COUNTER_ENUM) NETDEV_COUNTER_COUNT };
/* Reads the device's counters, too, by system calls. All 0 for ports that do not count. */
void netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);

/* Closes and frees the port. NULL is ignored. */
void netdev_close(struct netdev *port);

/* --- Capture files: pcap and pcapng with the Ethernet link type */
/* A reader: netdev_rx returns one frame a call; netdev_tx refuses. `error` gets a sentence. */
int netdev_pcap_open(const char *path, struct netdev **port, char *error, uint32_t error_size);
/*
 * Reader: 0 before and 1 at the end of the file; after the last whole frame -EBADMSG if the file is
 * truncated or malformed, -EIO if reading failed. Writer: writes out libpcap's buffer, without
 * fsync(2); 0, or -EIO if writing failed.
 */
int netdev_pcap_status(const struct netdev *port);
/* The error of netdev_pcap_status in words, "" for none; valid until the port is closed. */
const char *netdev_pcap_error(const struct netdev *port);
/* A writer of pcap with nanosecond times: netdev_tx appends, at `now` if a frame's time is 0;
 * netdev_rx returns nothing. `error` gets a sentence. */
int netdev_pcap_create(const char *path, struct netdev **port, char *error, uint32_t error_size);

/*
 * --- Impairment: a port that drops, duplicates, delays, reorders and corrupts the frames that are
 * sent through it, and received ones on request. Each call sends the frames that are due at its
 * `now` through the port below; netdev_rx with n = 0 does only that. The same seed and the same
 * calls give the same impairments. Each direction has room for 4096 frames: while it is full,
 * netdev_tx refuses frames, and received frames stay in the port below.
 */
#define NETDEV_IMPAIR_NS_MAX (UINT64_C(1) << 62)
struct netdev_impairment {
	uint64_t seed;
	/* Probabilities, 0 to 1. */
	double drop;
	double duplicate;
	double reorder;      /* of a further delay, 1 to reorder_ns */
	double corrupt;      /* of one inverted bit, anywhere in the frame */
	uint64_t reorder_ns; /* up to NETDEV_IMPAIR_NS_MAX */
	uint64_t delay_ns;   /* of each frame; up to NETDEV_IMPAIR_NS_MAX */
};

/* X(member, meaning) */
#define NETDEV_IMPAIR_COUNTER_LIST(X)                         \
	X(passed, "frames passed on, duplicates included")    \
	X(dropped, "dropped frames")                          \
	X(duplicated, "duplicated frames")                    \
	X(reordered, "frames delayed for longer than others") \
	X(corrupted, "frames with an inverted bit")

#define NETDEV_IMPAIR_COUNTER(member, text) uint64_t member;
struct netdev_impair_counters {
	NETDEV_IMPAIR_COUNTER_LIST(NETDEV_IMPAIR_COUNTER)
};

/* Opens a port that impairs the frames of `below`. Closing the new port closes `below`, too. rx
 * NULL: received frames are not impaired. -EINVAL: a value is out of range; -ENOMEM. */
int netdev_impair_open(struct netdev *below, const struct netdev_impairment *tx,
		       const struct netdev_impairment *rx, struct netdev **port);
void netdev_impair_counters(const struct netdev *port, struct netdev_impair_counters *tx,
			    struct netdev_impair_counters *rx);

/*
 * --- QEMU's own network back ends, -netdev stream and dgram, on UNIX sockets of mode 0600: a
 * virtual machine's NIC without privileges.
 *
 * spec             the port's part; QEMU's part
 * qemu:PATH            listens; -netdev stream,addr.type=unix,addr.path=PATH,server=off
 * qemu:PATH,connect    connects, once a second until QEMU listens (server=on), and again after
 *                      QEMU's end
 * qemu:PATH,dgram      receives at PATH; -netdev dgram,remote.type=unix,remote.path=PATH with a
 *                      local path, which the port learns from the first frame or from ,remote=PATH
 *
 * All take ,mtu=N with N from 576 on. `mtu`: the largest N, at most 9000, and the MTU without that
 * option; 0 stands for 9000 and for 1500. `error` gets one sentence.
 *
 * A port has one peer at a time. Without a peer, frames to send are dropped and counted. The next
 * peer takes the place of one that ended; QEMU 7.2 itself does not connect a second time.
 */
int netdev_qemu_open(const char *spec, uint32_t mtu, struct netdev **port, char *error,
		     uint32_t error_size);
/*
 * How all qemu: ports connect and remove sockets from now on, for a process without the right to do
 * so itself; NULL: by system calls.
 */
struct netdev_qemu_files {
	/* Returns a non-blocking stream socket or a negative errno value. */
	int (*connect)(const struct sockaddr_un *address);
	/* Removes the file at the address if it is still the socket's file, `file`. */
	void (*remove)(const struct sockaddr_un *address, const struct stat *file);
};
void netdev_qemu_set_files(const struct netdev_qemu_files *files);

/* --- Ports of DPDK's ethdev library, in a library of their own: the only one that includes DPDK */
/*
 * Starts DPDK's environment (EAL) for the hash tables of the switch and for telemetry, if no port
 * has started it; without huge pages it has 64 MB of memory then. Open ports first, since the EAL
 * starts once. `error` gets one sentence.
 */
int netdev_dpdk_start(char *error, uint32_t error_size);
/*
 * spec: af_packet:IFACE, af_xdp:IFACE,xdp_prog=FILE, tap:NAME, pcap:FILE (replays a file),
 * vhost:PATH[,connect] (vhost-user), or dpdk:ARGS for any other device of the EAL (a vdev string or
 * a PCI address). The first call starts the EAL, for PCI only if its port is a PCI device: open PCI
 * devices first. `mtu`: the largest MTU that the caller uses, 0 = the device's own. `error` gets
 * one sentence.
 *
 * netdev_mac is the MAC of the kernel's interface. A tap port differs: it is connected to that
 * interface as by a cable, and has a MAC of its own, the interface's with the last bit inverted.
 *
 * af_packet ports receive RoCEv1, UDP port 4791, ARP, RARP and IPv6 neighbour discovery until
 * netdev_set_promiscuous: the host's own traffic must not fill their ring. While promiscuous,
 * af_packet and af_xdp ports receive other frames to other MACs than the interface's by a further
 * socket, which completes checksums that the kernel left to a NIC, and cuts packets that the kernel
 * or the NIC joined. A VLAN tag that the kernel or the NIC took out of a received frame is inserted
 * again, as 802.1Q.
 *
 * af_xdp ports use one queue of the interface. Frames that the XDP program does not redirect remain
 * the kernel's; the port receives copies of ARP, RARP and neighbour discovery by a packet socket.
 *
 * netdev_wait_fd: af_packet and af_xdp have an epoll set of their sockets, tap a descriptor.
 * vhost, and devices of dpdk: with a receive interrupt, have an epoll set and deadlines: the port
 * enables the interrupt after 4 ms without frames, polls a PCI device until the interrupt has come
 * for a frame once, and polls each second for frames without an interrupt. Others have none.
 */
int netdev_dpdk_open(const char *spec, uint32_t mtu, struct netdev **port, char *error,
		     uint32_t error_size);

#endif
