/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clang-format off */
/*
 * The attach protocol between a process and urxed: messages on a SOCK_SEQPACKET UNIX socket.
 *
 * Client and daemon run on one machine and speak one version, so integers are in host byte order.
 * One message is one packet; descriptors travel as SCM_RIGHTS. The client sends a request and waits
 * for the reply of the same type; only QPN_SET has none. Requests with a reply never overlap on a
 * socket. The daemon closes the socket after a malformed message.
 *
 *   HELLO      client: its version, and the lease and token that it got in an earlier connection,
 *              if any: to an earlier daemon, or to this one, if the client closed that connection
 *              or lacks an answer. The device process of a virtual machine also sends the machine's
 *              MAC. A process that restores saved queue pairs demands the block that had their
 *              QPNs.
 *              daemon: identity, lease and addresses; descriptors: enum vnic_attach_fd. A daemon
 *              that has begun to serve waits up to 3 s for claims of leases, and answers other
 *              clients afterwards.
 *              In all versions, HELLO begins with type and version, and its answer with type and
 *              status; the status is -EPROTO if the client speaks another version.
 *   MEMORY     client: the size of the driver's memory, which follows from the MTU in HELLO's
 *              answer. Once, before REG.
 *              daemon: a memfd of that size, sealed against a change of its size.
 *   REG        access to a register that has an effect or returns an answer (CMD, VRRS, ...).
 *   RESOLVE    client: a destination address. daemon: the next hop, by routes, ARP and ND.
 *   REGISTER, UNREGISTER
 *              client: its queue pair is connected to a remote one, or the connection has ended.
 *              The daemon forwards RC and UC packets to registered remote queue pairs only. Each
 *              REGISTER needs an UNREGISTER; the end of the client's connection unregisters the
 *              rest.
 *   INBOX      client: it wants an inbox (inbox.h), or has one from an earlier daemon. Once.
 *              daemon: the descriptors of a new inbox; or a socket to a checking process. The
 *              client sends that process the same message with the descriptors of its inbox, and
 *              the process answers with the status.
 *   LEASE      client: it wants another block of QPNs, or demands one by its first QPN. daemon:
 *              the block. A claim of the first block in HELLO claims all blocks.
 *   INTRODUCE  client: a QPN of this host, and the MAC of the device that has the queue pair.
 *              daemon: the descriptors of the inbox of the process that has the QPN, if its device
 *              has the MAC, and both processes belong to one user in one user namespace.
 *   QPN_ADD    client: one of its queue pairs has this QPN. While the device has an HCA, the client
 *              adds each of its queue pairs: those with a QPN of the HCA, and those with a QPN of
 *              its lease. Without an HCA it adds those whose QPN an HCA chose earlier, here or
 *              before a restore. The daemon delivers frames to that QPN to the client,
 *              and lets the client send from the QPN, as for QPNs of its lease. The end of the
 *              client's connection removes all. A client of a later daemon adds its QPNs again: the
 *              daemon reserves them for the client as long as the client may claim its lease.
 *   QPN_SET    client: the flags of a QPN that it has added have changed. No answer, so a client
 *              may send it while another of its threads waits for an answer. The daemon applies
 *              it before any later request, and then adds 1 to VNIC_REG_QPNS_HANDLED,
 *              also if it failed.
 *   QPN_REMOVE client: a queue pair with this QPN is gone. If the client has added the QPN again
 *              meanwhile, for the HCA's next queue pair, the QPN stays the client's.
 *   QPN_QUERY  client: GID and QPN of a peer. daemon: 0 if a process of this host and of the
 *              client's user has added the QPN with VNIC_QPN_REACHABLE, else -ENOENT. After 0 both
 *              sides exchange frames by the switch or by inboxes, and not by the HCA.
 *   UPLINK     client, status 0: it wants packet sockets of its own on the uplink, or new ones
 *              after the uplink_generation in NOTICE_PORT has changed. daemon: the sockets, whose
 *              filters pass nothing yet (netdev/packet_port.h). From now on packets from the
 *              uplink to the client's QPNs come by these sockets only.
 *              client, status < 0: it cannot use the last sockets, or has closed them because
 *              the uplink_generation in NOTICE_PORT is 0. daemon: -ECANCELED.
 *              Packets from the uplink come by the switch again.
 *
 * Messages that the daemon sends without a request have a socket of their own, so that the client
 * cannot mistake them for answers. They have no reply (enum vnic_notice_type):
 *
 *   NOTICE_PORT        struct vnic_attach_notice: the complete new state of the port; the newest
 *                      one counts.
 *   NOTICE_INBOX       struct vnic_attach_introduction, with the descriptors of an inbox: the
 *                      daemon has seen frames of this process to the process that has the inbox.
 *   NOTICE_STATE_QUERY struct vnic_attach_state_query, with a socket for the answer (struct
 *                      vnic_attach_state): a program asks for the state of the process.
 *   NOTICE_RECORD      struct vnic_attach_record: the process shall record its engine into the ring
 *                      of the descriptor (record_ring.h), or end that.
 *
 * All descriptors come from the daemon, which accepts none: the client sends those of its inbox to
 * the checking process only. A message with descriptors to the daemon ends the connection, or the
 * kernel refuses it (peer_socket.h).
 *
 * The interrupt is a stream socket with one 64-bit word for each interrupt. It is not an eventfd:
 * both sides share an eventfd's open file and its flag O_NONBLOCK, so a client could fill it, clear
 * the flag and block the daemon. It is not a pipe: a client that reads a pipe into memory behind a
 * FUSE file keeps the pipe locked, and the daemon's write(2) would wait. A hang-up shows the
 * daemon's end.
 */
/* clang-format on */
#ifndef URXE_VNIC_ATTACH_PROTOCOL_H
#define URXE_VNIC_ATTACH_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#define VNIC_ATTACH_VERSION 37
#define VNIC_ATTACH_GIDS    32
#define VNIC_ATTACH_PKEYS   16
#define VNIC_SOCKET_NAME    "urxed.sock" /* in the daemon's run directory */
#define VNIC_SYSFS_NAME     "sys" /* also in the run directory: the tree that stands for /sys */
/*
 * A file of the tree VNIC_SYSFS_NAME about the HCA that backs the device. Its first line is the
 * name of the HCA; the line is empty without an HCA, or while the HCA's port is down. By the other
 * lines liburxe.so replaces the HCA's port by the device in answers of the kernel's rdma_cm;
 * without them the answers name the HCA. "A" is an index in the port's table, "B" that in the
 * device's table for the same entry, -1 if the device has none; GUIDs and GIDs are hexadecimal
 * digits:
 *
 *   port NODE-GUID PORT DEVICE-NODE-GUID NAME
 *   closed          if only IDs that have the device already keep it, and no other gets it
 *   pkey A B        for each P_Key of the port
 *   gid A B GID     for each GID of the port
 */
#define VNIC_HCA_FILE VNIC_SYSFS_NAME "/hca"
/* The most lines of GIDs in VNIC_HCA_FILE. */
#define VNIC_HCA_GIDS 64
/* The most bytes in VNIC_HCA_FILE. */
#define VNIC_HCA_TEXT 4096
/*
 * The device's name in class/infiniband_verbs; Linux numbers devices up to uverbs1023. urxe0 has
 * the first name, a device with another name the second. Within an outer `urxe run` a device has
 * the name that the outer device does not have.
 */
#define VNIC_UVERBS_NAME  "uverbs1024"
#define VNIC_UVERBS_OTHER "uverbs1025"

enum vnic_attach_type {
	VNIC_ATTACH_HELLO = 1,
	VNIC_ATTACH_MEMORY,
	VNIC_ATTACH_REG,
	VNIC_ATTACH_RESOLVE,
	VNIC_ATTACH_REGISTER,
	VNIC_ATTACH_UNREGISTER,
	VNIC_ATTACH_INBOX,
	VNIC_ATTACH_INTRODUCE,
	VNIC_ATTACH_LEASE,
	VNIC_ATTACH_UPLINK,
	VNIC_ATTACH_QPN_ADD,
	VNIC_ATTACH_QPN_SET,
	VNIC_ATTACH_QPN_REMOVE,
	VNIC_ATTACH_QPN_QUERY,
};

/*
 * QPNs are leased in blocks, which begin at a multiple of their length. A process gets its first
 * block with the answer to HELLO (struct vnic_attach_welcome), and further blocks by LEASE. All
 * blocks of a process are its lease.
 */
#define VNIC_LEASE_SHIFT 12
#define VNIC_LEASE_QPNS  (1u << VNIC_LEASE_SHIFT)
#define VNIC_LEASES_MAX  16 /* blocks of a process */
/*
 * A client that wants no lease names this one in HELLO as its claimed lease. No block begins at 1,
 * so the answer is -EPERM.
 */
#define VNIC_LEASE_NONE 1

/*
 * The number of the block that contains a QPN. The number of the first block that a process has
 * leased is also the number of the process (VNIC_BLOCK(welcome.qpn_first)): no two processes of a
 * host have the same one, and it is never 0. The result is below VNIC_BLOCKS for a QPN of 24
 * bits.
 */
#define VNIC_BLOCK(qpn) ((qpn) >> VNIC_LEASE_SHIFT)
#define VNIC_BLOCKS     (1u << (24 - VNIC_LEASE_SHIFT))

/* The first word of each message on the socket of notices. */
enum vnic_notice_type {
	VNIC_NOTICE_PORT = 1,
	VNIC_NOTICE_STATE_QUERY,
	VNIC_NOTICE_INBOX,
	VNIC_NOTICE_RECORD,
};

/* The descriptors in the answer to HELLO, in this order. _INTERRUPT is a stream socket. */
enum vnic_attach_fd { VNIC_FD_BARS, VNIC_FD_DOORBELL, VNIC_FD_INTERRUPT, VNIC_FD_NOTICE, VNIC_FDS };

struct vnic_attach_gid {
	uint8_t raw[16];
	uint8_t valid;
	uint8_t v1;    /* sends RoCEv1 */
	uint16_t vlan; /* VLAN ID; 0 = untagged */
	/* Index of the kernel's interface with this address; 0 = none, or unknown. */
	uint32_t ifindex;
};

#define VNIC_HCA_NAME 64 /* IB_DEVICE_NAME_MAX of Linux, with the NUL */

/*
 * The HCA that backs the device: each process opens it itself, by libibverbs. The daemon has chosen
 * it (docs/hca.md); it may come, go and come back while a client is attached.
 */
struct vnic_attach_hca {
	char name[VNIC_HCA_NAME]; /* in class/infiniband; ends with a NUL; "" = no HCA */
	/*
	 * Changes each time that an HCA comes, goes, or is replaced by another, also by one of the
	 * same name. 0 = there was none since the daemon's start. Each daemon counts anew: after a
	 * restart of the daemon a client compares name and port.
	 */
	uint32_t generation;
	uint8_t port; /* number of the port, from 1; 0 = no HCA */
	/* 1 = the port is not ACTIVE: an HCA in software gets no new queue pairs, except those of
	 * shared receive queues that it has. The HCA keeps its queue pairs. */
	uint8_t down;
	uint8_t reserved[2];
};

/* Properties of the port that may change while a client is attached. */
struct vnic_attach_port {
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
	uint16_t link_mtu; /* bytes of Ethernet payload that the uplink can carry; at most the NIC's
			      MTU */
	uint8_t up;        /* 1 = the link is up */
	/* 1 = virtual machines of this host have ports: a peer with a MAC of its own may be one. */
	uint8_t machines;
	/* Changes whenever clients have to request sockets by UPLINK again; 1 follows UINT32_MAX;
	 * 0 = clients get no sockets. */
	uint32_t uplink_generation;
	/*
	 * A bit for each socket of UPLINK, in their order: clients may now send by it. Members of a
	 * bond that balances lose it while others carry the frames; a lone socket always has it.
	 */
	uint8_t uplink_carriers;
	/* LinkWidthActive and LinkSpeedActive (IBA 14.2.5.6). */
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t reserved;
	struct vnic_attach_hca hca;
};

struct vnic_attach_hello {
	uint32_t type;
	uint32_t version;
	uint64_t token; /* of the vnic_attach_welcome that gave the claimed lease */
	/*
	 * Which lease: 0 = any new one. With `demands`: the first QPN of the block with which a new
	 * lease begins. Otherwise: the first QPN of an earlier lease, which the client wants back
	 * (a claim), or VNIC_LEASE_NONE.
	 */
	uint32_t qpn_first;
	/* Of the virtual machine whose queue pairs the client has; 0 = they have the host's MAC. */
	uint8_t mac[6];
	uint8_t demands; /* 1: a new lease that begins at qpn_first, which is not 0 */
	uint8_t reserved[5];
};

struct vnic_attach_memory {
	uint32_t type;
	int32_t status;
	uint64_t size; /* size of the memfd, bytes */
};

struct vnic_attach_welcome {
	uint32_t type;
	/*
	 * 0, or a negative errno value; then the rest is 0 and no descriptors come. -EPROTO: the
	 * client speaks another version; -EPERM: the claimed lease does not belong to the client
	 * any more; -EBUSY: the daemon has not handled the end of the client's earlier connection
	 * yet, so the client tries again. Of a new lease: the errors of struct vnic_attach_lease.
	 */
	int32_t status;
	uint8_t mac[6];
	uint16_t mtu; /* the NIC's MTU: bytes of Ethernet payload, whatever the link's MTU */
	uint32_t qpn_first;
	uint32_t qpn_count; /* VNIC_LEASE_QPNS */
	uint64_t token;     /* the client presents it to the next daemon to claim all its blocks */
	uint32_t leases; /* number of the client's blocks: those that it has claimed, or this one */
	struct vnic_attach_port port;
	uint16_t pkeys[VNIC_ATTACH_PKEYS]; /* 0 = none */
};

struct vnic_attach_reg {
	uint32_t type;
	uint32_t bar;    /* 0 or 1 */
	uint32_t offset; /* bytes */
	uint32_t write;  /* 1 = write value, 0 = read */
	uint32_t value;
	int32_t status;
};

/* REGISTER, UNREGISTER */
struct vnic_attach_remote {
	uint32_t type;
	/*
	 * 0; -ENOSPC: too many; -EINVAL: not a QPN of a connection; -EACCES: the client has neither
	 * leased nor added local_qpn; -ENOENT: it was not registered.
	 */
	int32_t status;
	uint32_t local_qpn; /* of the client's queue pair */
	uint32_t qpn;
	uint8_t dgid[16]; /* IPv4 as ::ffff:a.b.c.d */
};

/* The next hop of packets to a destination: the destination itself, or a router. */
struct vnic_next_hop {
	uint8_t mac[6];
	uint8_t hop_limit; /* the route's hop limit; 0 = the sender chooses */
	uint8_t reserved;
};

struct vnic_attach_resolve {
	uint32_t type;
	/*
	 * 0; -ENETUNREACH: no route; -EHOSTUNREACH: the next hop does not answer, or the daemon's
	 * table of next hops is full; -EINVAL: the host has no GID sgid_index; -ENOSPC: too many
	 * requests of the user wait; -ENOMEM.
	 */
	int32_t status;
	uint8_t sgid_index;
	uint8_t reserved[7];
	uint8_t dgid[16];
	struct vnic_next_hop hop;
};

struct vnic_attach_inbox {
	uint32_t type;
	/* 0; -EPERM or -EINVAL: the descriptors are no inbox's; another error: no inbox. */
	int32_t status;
	uint32_t exists; /* 1: the client has an inbox from an earlier daemon */
	uint32_t reserved;
};

struct vnic_attach_introduce {
	uint32_t type;
	/*
	 * 0; -ENOENT: no process has that QPN and MAC, or the process has no inbox; -EPERM: the
	 * process belongs to another user; -EBUSY: the daemon does not know the user for the
	 * moment, and introduces the processes when later packets pass the switch. On errors no
	 * descriptors come.
	 */
	int32_t status;
	uint32_t qpn;
	uint8_t mac[6];
	uint8_t reserved[2];
};

struct vnic_attach_lease {
	uint32_t type;
	/*
	 * 0; -ENOSPC: the process has VNIC_LEASES_MAX, the user's quota is used up, or all blocks
	 * are leased. Of a demand: -EEXIST: another process has the block or a QPN of it; -EACCES:
	 * a process of another user had the block until recently, so its peers may still send;
	 * -EINVAL: no block of processes begins there.
	 */
	int32_t status;
	uint32_t qpn_first; /* from the client: the first QPN of the demanded block; 0 = any */
};

/*
 * Flags in struct vnic_attach_qpn of QPN_ADD and QPN_SET.
 * REACHABLE: processes of the same user may reach the queue pair without the HCA, so QPN_QUERY
 * finds it. Without the flag, QPN_QUERY answers -ENOENT: the queue pair uses the HCA for each peer.
 * UPLINK: the daemon's uplink receives packets to this QPN also while an HCA backs the device. The
 * client sets the flag if its engine executes the queue pair for peers of other hosts. Without the
 * flag, the uplink receives the packets only if another QPN of the block has the flag. Packets to
 * leased QPNs need no flag.
 */
#define VNIC_QPN_REACHABLE 1u
#define VNIC_QPN_UPLINK    2u
#define VNIC_QPN_FLAGS     (VNIC_QPN_REACHABLE | VNIC_QPN_UPLINK)

/* QPN_ADD, QPN_SET, QPN_REMOVE, QPN_QUERY */
struct vnic_attach_qpn {
	uint32_t type;
	/*
	 * 0, or:
	 * QPN_ADD: -EEXIST: another process has added or leased the QPN; -EINVAL: no QPN of a
	 * process (0, 1, 0xffffff or beyond), or unknown flags; -ENOSPC: too many. A second QPN_ADD
	 * of the same client changes the flags, and needs a QPN_REMOVE of its own.
	 * QPN_REMOVE: -ENOENT: the client has not added it.
	 * QPN_QUERY: -ENOENT: dgid is not this host's, or no process of the client's user has added
	 * the QPN with VNIC_QPN_REACHABLE; -EBUSY: the user is unknown for the moment, the client
	 * asks again.
	 */
	int32_t status;
	uint32_t qpn;     /* 24 bits */
	uint32_t flags;   /* of QPN_ADD and QPN_SET: VNIC_QPN_*, or 0 */
	uint8_t dgid[16]; /* of QPN_QUERY; IPv4 as ::ffff:a.b.c.d */
};

struct vnic_attach_uplink {
	uint32_t type;
	/*
	 * From the client: 0, or negative if it cannot use the last sockets, or has closed them.
	 * From the daemon: 0; -ECANCELED: the answer to a negative status; -EPERM: the daemon does
	 * not trust the client with raw frames; -ENODEV: no uplink has such sockets; -ENOSPC: too
	 * many sockets; another error: the kernel refused a socket. The client may ask again at any
	 * time, and replaces the sockets that it has by the new ones.
	 */
	int32_t status;
	/* As struct packet_port_ring. */
	uint32_t frame_size;
	uint32_t blocks;
	/* From the daemon: the number of sockets, 1 to VNIC_UPLINK_SOCKETS, one for each interface
	 * that may carry the client's frames: each member of a bond in mode balance, otherwise only
	 * one interface. */
	uint32_t sockets;
};

#define VNIC_UPLINK_SOCKETS 8

struct vnic_attach_notice {
	uint32_t type;
	uint32_t reserved;
	struct vnic_attach_port port;
};

struct vnic_attach_state_query {
	uint32_t type;
	uint32_t reserved;
};

/* Begins a recording if `on` is 1: then a ring's descriptor comes too. Ends it if `on` is 0. */
struct vnic_attach_record {
	uint32_t type;
	uint32_t on;
};

/* Carries the descriptors of the inbox of the process that has the QPN. */
struct vnic_attach_introduction {
	uint32_t type;
	uint32_t qpn;
};

/*
 * If status is 0, carries a sealed memfd with a JSON document (verbs/session/state_document.h). Any
 * number of messages with -EINPROGRESS may come before, while the process writes the document.
 */
struct vnic_attach_state {
	int32_t status; /* 0 or a negative errno value */
	uint32_t reserved;
};

/*
 * The GUID of the device's node, in network byte order: the modified EUI-64 of the MAC, but with ff
 * fd in the middle in place of ff fe. An HCA of the host has the latter GUID, and librdmacm tells
 * devices apart by their GUIDs. `other`: of a device with the node VNIC_UVERBS_OTHER, with ff fc.
 */
static inline void vnic_node_guid(const uint8_t mac[6], bool other, uint8_t guid[8])
{
	const uint8_t bytes[8] = {mac[0] ^ 2,          mac[1], mac[2], 0xff,
				  other ? 0xfc : 0xfd, mac[3], mac[4], mac[5]};

	for (int i = 0; i < 8; i++)
		guid[i] = bytes[i];
}

/*
 * Connects to the daemon that listens in run_dir. Each later call that uses the socket waits at
 * most 5 s for an answer. Returns the descriptor, close-on-exec, or a negative errno value. -ENOENT
 * or -ECONNREFUSED: no daemon; -EPERM: the listener's user is neither root nor this user.
 * -ETIMEDOUT: the daemon's queue of connections stayed full for 5 s, or up to 10 s if signals came.
 */
int vnic_attach_connect(const char *run_dir);

/*
 * Asks the daemon whether it speaks this version, by a HELLO with VNIC_LEASE_NONE; -EPERM is the
 * expected answer. The connection is new, and may be used for HELLO afterwards. 0; -EPROTO: another
 * version; -EAGAIN: no answer for 5 s; another negative errno value: the connection has ended.
 */
int vnic_attach_check_version(int fd);

#endif
