/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frame ports: things that take and give whole Ethernet frames without FCS.
 *
 * A port has one user at a time. Ports stack: a fault port sits on another port
 * and spoils what passes. Functions that return int give 0 or a negative errno
 * value.
 */
#ifndef URXE_NETDEV_NETDEV_H
#define URXE_NETDEV_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;

/* A received frame, or one to send. */
struct netdev_frame {
	const uint8_t *data;
	uint32_t len; /* bytes at data */
	/* Bytes on the wire: more than len where a capture was cut (snap length). A sender may
	 * leave it 0, which means len. */
	uint32_t wire_len;
	uint64_t time; /* ns; when it was captured or falls due, 0 where the port has no clock */
};

/*
 * Up to n received frames, valid until the next call on the port. `now` is the
 * time in nanoseconds that a port with delays goes by.
 */
uint32_t netdev_rx(struct netdev *port, uint64_t now, struct netdev_frame *frames, uint32_t n);
/* Sends up to n frames; returns how many were taken, in order. They are copied. */
uint32_t netdev_tx(struct netdev *port, uint64_t now, const struct netdev_frame *frames,
		   uint32_t n);
/* When netdev_rx has something of its own accord (delayed frames); UINT64_MAX = never. */
uint64_t netdev_next_deadline(struct netdev *port);
/*
 * A descriptor to poll(2) for received frames; -1 = none, ask again after netdev_idle_ns. It stays
 * the same for the port's life. Before you sleep on it, until netdev_next_deadline at most,
 * netdev_rx must have given nothing, and its `now` has to be a time that goes on. Take it only if
 * you mean to sleep on it: from then on an empty netdev_rx may cost a system call to quiet it.
 */
int netdev_wait_fd(struct netdev *port);
/*
 * How long to leave a port without a descriptor alone on which nothing has come or gone for
 * `quiet` ns: at least 10 us, at most 1 ms within a second, and at most 50 ms after that. So long
 * the first frame after a silence may lie unseen: RoCE's usual timeout of 67 ms bears that, shorter
 * ones send again, and what they and their retries add up to has to be more.
 */
uint64_t netdev_idle_ns(uint64_t quiet);
/* The address that frames for this port are sent to. False: it has none of its own. */
bool netdev_mac(const struct netdev *port, uint8_t mac[6]);
/* The largest payload of a frame both ways: what was asked for or what the device takes, if less;
 * UINT32_MAX = any. */
uint32_t netdev_mtu(const struct netdev *port);
/*
 * Receives frames to other stations too, of all EtherTypes, and wakes up for them: for a bridge.
 * 0, also for a port that never did anything else.
 */
int netdev_hear_all(struct netdev *port);
/*
 * Receives frames with an 802.1Q tag of this ID (1 to 4094) too, where the device would keep them
 * back. 0, also for a port that keeps none back, or that has no say in it, as one on an interface
 * of the kernel's.
 */
int netdev_hear_vlan(struct netdev *port, uint16_t vlan);
/* Bytes of a page of the memory that its packet buffers lie in, which tells huge pages from
 * ordinary ones; 0: it has none. */
uint64_t netdev_page_size(const struct netdev *port);

/* X(identifier, printed name, meaning) */
#define NETDEV_COUNTER_LIST(X)                                                      \
	X(RX_FRAMES, "rx_frames", "frames received")                                \
	X(RX_BYTES, "rx_bytes", "bytes of them")                                    \
	X(RX_OWN, "rx_own", "the host's own outgoing frames, dropped")              \
	X(RX_BAD, "rx_bad", "frames in too many pieces, or of no length, dropped")  \
	X(RX_TOO_LONG, "rx_too_long", "frames longer than the MTU allows, dropped") \
	X(RX_STRANGER, "rx_stranger", "frames from another than the peer, dropped") \
	X(RX_MISSED, "rx_missed", "frames that the device dropped")                 \
	X(TX_FRAMES, "tx_frames", "frames sent")                                    \
	X(TX_BYTES, "tx_bytes", "bytes of them")                                    \
	X(TX_TOO_LONG, "tx_too_long", "frames longer than the MTU allows, dropped") \
	X(TX_REFUSED, "tx_refused", "frames that the device did not take")          \
	X(TX_ERRORS, "tx_errors", "frames that the device lost")                    \
	X(TX_NO_PEER, "tx_no_peer", "frames while there was no peer, dropped")      \
	X(PEERS, "peers", "peers that came")                                        \
	X(PEERS_REFUSED, "peers_refused", "peers turned away, since one was there") \
	X(PEERS_BROKEN, "peers_broken", "peers cut off, since what came was no frames")

#define NETDEV_COUNTER_ENUM(id, name, text) NETDEV_##id,
enum netdev_counter { NETDEV_COUNTER_LIST(NETDEV_COUNTER_ENUM) NETDEV_COUNTER_COUNT };
const char *netdev_counter_name(enum netdev_counter counter);
/* Asks the device too, which may cost system calls. Zeros from ports that do not count. */
void netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);

void netdev_close(struct netdev *port);

/*
 * --- In memory: two ports, back to back, `depth` frames each way; more are refused. The ends may
 * have different users, and are closed one by one.
 */
#define NETDEV_MEM_DEPTH_MAX (1u << 20)
int netdev_mem_pair(uint32_t depth, struct netdev *ends[2]);

/* --- Capture files, pcap and pcapng, Ethernet link type. */
/* Reads: rx gives the frames, one a call; tx refuses. On error `why` gets a sentence. */
int netdev_pcap_open(const char *path, struct netdev **port, char *why, uint32_t why_size);
/*
 * Reader: 1 at the end of the file, 0 before it; after the last whole frame -EBADMSG where the file
 * is cut short or broken, -EIO where it cannot be read. Writer: 0, or -EIO if not all is on disk.
 */
int netdev_pcap_status(const struct netdev *port);
/* What netdev_pcap_status found wrong, "" for nothing; valid until the port is closed. */
const char *netdev_pcap_error(const struct netdev *port);
/* Writes a pcap with nanosecond times: tx appends, with `now` where a frame has no time of its own;
 * rx gives nothing. */
int netdev_pcap_create(const char *path, struct netdev **port, char *why, uint32_t why_size);

/*
 * --- Faults, applied to frames sent through it, and to received ones where asked for;
 * probabilities in 0..1. Each call passes the frames sent that are due at its `now` on to the port
 * below; netdev_rx with n = 0 does only that. The same seed and the same calls give the same
 * faults. More than 4095 held frames: senders are refused, and received frames wait in the port
 * below.
 */
#define NETDEV_FAULT_NS_MAX (UINT64_C(1) << 62)
struct netdev_fault {
	uint64_t seed;
	double drop;
	double duplicate;
	double reorder; /* a reordered frame is held for up to reorder_ns more */
	double corrupt; /* one random bit is flipped */
	uint64_t reorder_ns;
	uint64_t delay_ns; /* of every frame */
};

/* X(member, meaning) */
#define NETDEV_FAULT_COUNTER_LIST(X)                           \
	X(passed, "frames that went on, duplicates with them") \
	X(dropped, "frames lost")                              \
	X(duplicated, "frames that went on twice")             \
	X(reordered, "frames held longer than others")         \
	X(corrupted, "frames with a bit flipped")

#define NETDEV_FAULT_COUNTER(member, text) uint64_t member;
struct netdev_fault_counters {
	NETDEV_FAULT_COUNTER_LIST(NETDEV_FAULT_COUNTER)
};

/* Takes `below` over: closing the fault port closes it. rx NULL: what comes in is left alone. */
int netdev_fault_open(struct netdev *below, const struct netdev_fault *tx,
		      const struct netdev_fault *rx, struct netdev **port);
void netdev_fault_counters(const struct netdev *port, struct netdev_fault_counters *tx,
			   struct netdev_fault_counters *rx);

/*
 * --- QEMU's own network back ends, on UNIX sockets of mode 0600: a virtual machine's NIC without
 * any privilege. mtu: the most the caller uses, 0 = 1500.
 *
 * spec:
 * qemu:PATH                 listens; QEMU has -netdev
 * stream,addr.type=unix,addr.path=PATH,server=off qemu:PATH,connect         connects to where QEMU
 * listens (server=on), again and again until it is there, and when it was qemu:PATH,dgram receives
 * at PATH; QEMU has -netdev dgram,remote.type=unix,remote.path=PATH and a local path of its own,
 * which is learned, or said by ,remote= Each takes ,mtu=N too. On error `why` gets one sentence.
 *
 * There is one peer at a time. While there is none, frames to it are dropped and counted. Who comes
 * after it is served in its place; QEMU 7.2 itself does not connect a second time.
 */
int netdev_qemu_open(const char *spec, uint32_t mtu, struct netdev **port, char *why,
		     uint32_t why_size);
/* The same on a stream socket that is connected already, which the port takes over. */
int netdev_qemu_attach(int fd, uint32_t mtu, struct netdev **port);

/* --- DPDK ethdev ports. Own library; the only one that knows DPDK. */
/*
 * Starts the EAL where no port has, with little memory: for DPDK's tables and its
 * telemetry. Ports come first. On error `why` gets one sentence.
 */
int netdev_dpdk_start(char *why, uint32_t why_size);
/*
 * spec: af_packet:IFACE, af_xdp:IFACE,xdp_prog=FILE, tap:NAME, pcap:FILE (replays a file), or
 * dpdk:ARGS for anything EAL knows (a vdev string or a PCI address). The EAL is started at the
 * first call; PCI devices come first, since an EAL started for the others does not look for them.
 * mtu: the most the caller uses, 0 = the device's own. On error `why` gets one sentence.
 *
 * netdev_mac is the interface's own address. tap, which is the other end of the cable to an
 * interface of this host, has that address with the last bit flipped.
 *
 * af_packet ports are given what comes in of RoCEv1, UDP port 4791, ARP and IPv6 neighbour
 * discovery alone, until netdev_hear_all, so that the host's own traffic takes no place in their
 * ring. A VLAN tag that the kernel or the NIC took out of a received frame is put back in its
 * place, as 802.1Q.
 *
 * af_xdp opens one queue of the interface. What the program does not redirect stays the kernel's;
 * of that, ARP and neighbour discovery come here as well, by a packet socket.
 *
 * netdev_wait_fd: af_packet has the socket of its rings, af_xdp an epoll set; tap has a
 * descriptor of its own. vhost, and devices of dpdk that have a receive interrupt, have an epoll
 * set, and deadlines (netdev_next_deadline): the interrupt is on only once nothing has come or gone
 * for 4 ms, a PCI device has to be looked at until it has come for a frame, and each second is
 * looked for what it has not told. The others have none.
 */
int netdev_dpdk_open(const char *spec, uint32_t mtu, struct netdev **port, char *why,
		     uint32_t why_size);

#endif
