/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol between an open /dev/infiniband/rdma_cm of a program (verbs/rdmacm/) and the daemon
 * (tools/urxed/cm/). Each open device has two pairs of SOCK_SEQPACKET UNIX sockets: the command
 * socket and the event socket. Both sides run on one machine, so integers are in host byte order.
 *
 * 1. The library sends struct cm_attach_hello. The daemon replies with struct cm_attach_welcome and
 *    the two descriptors of the event socket (SCM_RIGHTS). The library keeps both, so the event
 *    socket outlives the daemon. The daemon accepts no descriptors.
 * 2. For each command, the library sends struct cm_attach_command and the command's bytes. The
 *    daemon replies with struct cm_attach_reply and the response's bytes, before the library sends
 *    the next command.
 * 3. For each event, the daemon sends a packet on the event socket: struct cm_attach_event, the
 *    bytes of struct rdma_ucm_event_resp, and replies for the library's cache.
 *
 * An event is fetched when the library receives its packet. Each command tells the daemon the last
 * fetched event; the command GET_EVENT does nothing else. Until it is fetched, an event may be
 * - cancelled, because its ID or group is destroyed: the reply to the command has the event's
 *   sequence number, and the library skips its packet.
 * - withdrawn, because it changes, or because too many events are cancelled: the library discards
 *   all packets that it has not received, and the daemon sends the events that remain again.
 *
 * The cached replies answer the commands that librdmacm usually gives next, QUERY and INIT_QP_ATTR:
 * for each one struct cm_attach_cached and the response's bytes. They hold until the ID's next
 * command or event. If a command comes before the event is fetched, the daemon sends the event
 * again with new replies.
 *
 * For a checkpoint (verbs/checkpoint/) the library gives commands of its own, enum
 * cm_attach_checkpoint. A frozen device stands still: messages of peers and timers do not change
 * its IDs. If its command socket closes, the daemon tells the peers nothing, because the program
 * may go on elsewhere. If the program has read all records before, the daemon keeps the IDs for
 * CM_ATTACH_DEPARTED_S, and drops messages of peers for them.
 *
 * Otherwise the daemon destroys a device's IDs when the command socket closes. IDs that a daemon
 * leaves behind at its end belong to the device that sends their token to the next daemon within
 * 3 s. The next daemon sends all events again that were not fetched, on an event socket of its own.
 * If the device's connection to that daemon ends before the first command, the welcome may be lost,
 * and the device may send the token again within 3 s of that end. To confirm the welcome, a device
 * sends the command GET_EVENT at once.
 */
#ifndef URXE_CM_ATTACH_PROTOCOL_H
#define URXE_CM_ATTACH_PROTOCOL_H

#include <stdint.h>

#define CM_ATTACH_VERSION     6
#define CM_ATTACH_SOCKET_NAME "urxed.cm"
#define CM_ATTACH_BYTES       1024 /* most bytes of a command or a response */
#define CM_ATTACH_OPTION      432  /* most bytes of SET_OPTION's value, which follows: 6 paths */
#define CM_ATTACH_CACHED      1536 /* most bytes of the cached replies of an event */
#define CM_ATTACH_CANCELLED   4    /* most cancelled events of a reply */
/* Most cancelled events whose packets a library has to skip; with more, the daemon withdraws. */
#define CM_ATTACH_TO_SKIP 64

#define CM_ATTACH_DEPARTED_S 60

/* Values of cm_attach_command.command besides those of rdma/rdma_user_cm.h. */
enum cm_attach_checkpoint {
	/* -EINVAL: the daemon knows none of these commands. -EALREADY: frozen already. Other
	   commands return -EBUSY from now on. */
	CM_ATTACH_FREEZE = 0x1000,
	/*
	 * The response is the next record of the frozen device, a stream with the header of
	 * rxe/state_stream.h. A response without bytes: there are no more records.
	 * docs/checkpoint.md describes the records. -EBUSY: another device of the process has
	 * destroyed an ID meanwhile, or a record had an error; -EOVERFLOW: a value of the record is
	 * out of range. After an error the program thaws the device.
	 */
	CM_ATTACH_SAVE,
	/*
	 * The command is the next record, for a new device, which is frozen from now on. The
	 * response to the first record is the token (8 bytes) of the saved device, which the new
	 * device gets. -EBADMSG: the record is damaged, or contradicts earlier ones;
	 * -EPROTONOSUPPORT: a later version wrote the record; -EPERM: the program is not of the
	 * daemon's user; -EEXIST: another program has the ID or its connection, or the saved
	 * program still runs; -EADDRINUSE, -EADDRNOTAVAIL: the port is taken, or the host lacks the
	 * address; -EACCES: the program may not use the port; -ENOSPC: a quota is used up; -ENOMEM.
	 * After an error the caller closes the socket, and the daemon keeps nothing of the device.
	 */
	CM_ATTACH_RESTORE,
	CM_ATTACH_THAW, /* the device goes on; no error if it is not frozen */
};

/*
 * The kind of a record of an event. A connection request may name a new ID of another device of the
 * process, so CM_ATTACH_RESTORE gets such records after all others of all devices.
 */
#define CM_ATTACH_RECORD_EVENT 4

/* The descriptors that come with the welcome, in this order. */
enum cm_attach_fd { CM_ATTACH_EVENTS, CM_ATTACH_EVENT_WRITER, CM_ATTACH_FDS };

struct cm_attach_hello {
	uint32_t version;
	uint32_t reserved;
	uint64_t token;   /* from an earlier daemon's welcome; 0 = none */
	uint64_t fetched; /* cm_attach_event.sequence of the last fetched event; 0 = none */
};

struct cm_attach_welcome {
	int32_t status; /* 0, or a negative errno value, without descriptors; -EPERM: unknown token
			 */
	uint32_t reserved;
	uint64_t token; /* names this device in MIGRATE_ID and to the next daemon */
};

struct cm_attach_command {
	uint32_t command; /* RDMA_USER_CM_CMD_..., or enum cm_attach_checkpoint */
	uint32_t in;      /* bytes that follow */
	uint32_t out;     /* bytes of the response that the program has room for */
	uint32_t again;   /* 1 = an earlier daemon may have executed the command before its end */
	uint64_t token;   /* MIGRATE_ID: token of the device that has the ID */
	uint64_t fetched; /* as in cm_attach_hello */
};

struct cm_attach_reply {
	int32_t status; /* 0, or a negative errno value */
	uint32_t out;   /* bytes that follow */
	/* Number of unread packets of the event socket to discard, oldest first; MIGRATE_ID: of the
	 * event socket of the device that had the ID. */
	uint32_t withdrawn;
	uint32_t n_cancelled;
	uint64_t cancelled[CM_ATTACH_CANCELLED]; /* `sequence` of cancelled events */
};

struct cm_attach_event {
	/* Sequence number of the event. The library skips a packet whose number it has fetched. */
	uint64_t sequence;
	uint32_t out;     /* bytes of struct rdma_ucm_event_resp that follow */
	uint32_t cached;  /* bytes of cached replies that follow those */
	uint32_t confirm; /* 1 = the daemon wants GET_EVENT at once when the event is fetched */
	uint32_t reserved;
};

struct cm_attach_cached {
	uint32_t command; /* RDMA_USER_CM_CMD_QUERY or ..._INIT_QP_ATTR */
	uint32_t option;  /* QUERY's option, or INIT_QP_ATTR's QP state */
	uint32_t out;     /* bytes that follow */
	uint32_t reserved;
};

#endif
