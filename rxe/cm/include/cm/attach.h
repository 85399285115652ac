/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an open /dev/infiniband/rdma_cm is connected to urxed: one SOCK_SEQPACKET UNIX
 * socket each, with what the kernel's device takes and gives by write(2), and the
 * program's own descriptor, which is readable as long as there are events.
 *
 * The client says struct cm_attach_hello, with the bell: one end of a pair of SOCK_SEQPACKET
 * sockets of its own, which gets a packet for each event: struct cm_attach_event with the event's
 * bytes behind it. It is welcomed with struct cm_attach_welcome. Then it sends a struct
 * cm_attach_command with the command's bytes behind it, and gets a struct cm_attach_reply with the
 * response's. One command at a time. Client and daemon are of one build and machine, so integers
 * are in host byte order.
 *
 * An event is fetched when its packet is taken, of which each command tells; GET_EVENT does nothing
 * else. Until then the daemon may withdraw it: all packets that are out are to be taken back then,
 * and come again without it.
 *
 * Behind an event come answers to what programs ask next as a rule, QUERY and INIT_QP_ATTR: each as
 * struct cm_attach_answer with its bytes behind it. They hold until the program gives another
 * command of that ID, or fetches its next event; a command that comes before the event is fetched
 * has the packets come again, with answers as they are since.
 *
 * Its IDs last as long as the socket, and where the daemon ends, for the 3 s in which a later one
 * awaits a hello with the token of the welcome. All events that were not fetched come anew then,
 * into a bell that the client has emptied before.
 */
#ifndef URXE_CM_ATTACH_H
#define URXE_CM_ATTACH_H

#include <stdint.h>

#define CM_ATTACH_VERSION     4
#define CM_ATTACH_SOCKET_NAME "urxed.cm"
#define CM_ATTACH_BYTES       1024 /* of a command or a response */
#define CM_ATTACH_OPTION      432  /* bytes of an option's value, behind SET_OPTION: 6 paths */
#define CM_ATTACH_FORETOLD    1536 /* of answers behind an event */

struct cm_attach_hello {
	uint32_t version;
	uint32_t reserved;
	uint64_t token;   /* of what an earlier daemon welcomed; 0 = nothing */
	uint64_t fetched; /* the order of the event that was fetched last; 0 = none */
};

struct cm_attach_welcome {
	int32_t status; /* 0, or a negative errno value; -EPERM: nothing has that token */
	uint32_t reserved;
	uint64_t token; /* by which MIGRATE_ID names this socket, and the next daemon knows it */
};

struct cm_attach_command {
	uint32_t command; /* enum of RDMA_USER_CM_CMD_... */
	uint32_t in;      /* bytes that follow */
	uint32_t out;     /* bytes of the response that there is room for */
	uint32_t reserved;
	uint64_t token;   /* MIGRATE_ID: of the socket that has the ID */
	uint64_t fetched; /* as in the hello */
};

struct cm_attach_reply {
	int32_t status; /* 0, or a negative errno value */
	uint32_t out;   /* bytes that follow */
	/* Packets to be taken back from the bell, its first ones; for MIGRATE_ID from that of the
	 * socket that had the ID. */
	uint32_t withdrawn;
	uint32_t reserved;
};

struct cm_attach_event {
	uint64_t order;    /* counts up; what is not later than the last one has come before */
	uint32_t out;      /* bytes of struct rdma_ucm_event_resp that follow, */
	uint32_t foretold; /* and of answers behind those */
	uint32_t tell;     /* 1 = the daemon wants to hear at once that it was fetched */
	uint32_t reserved;
};

struct cm_attach_answer {
	uint32_t command; /* RDMA_USER_CM_CMD_QUERY or ..._INIT_QP_ATTR */
	uint32_t what;    /* its option, or state of a queue pair */
	uint32_t out;     /* bytes that follow */
	uint32_t reserved;
};

#endif
