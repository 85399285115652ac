/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an open /dev/infiniband/rdma_cm is connected to urxed: one SOCK_SEQPACKET UNIX
 * socket each, with what the kernel's device takes and gives by write(2), and the
 * program's own descriptor, which is readable as long as there are events.
 *
 * The client says struct cm_attach_hello, with the bell: one end of a pair of SOCK_SEQPACKET
 * sockets of its own, which gets one packet of one byte for each event that can be fetched. It
 * is welcomed with struct cm_attach_welcome. Then it sends a struct cm_attach_command with the
 * command's bytes behind it, and gets a struct cm_attach_reply with the response's. One command at
 * a time. Behind an event come answers to what programs ask next as a rule, QUERY and INIT_QP_ATTR:
 * each as struct cm_attach_answer with its bytes behind it. They hold until the program gives
 * another command of that ID, or fetches its next event. Client and daemon are of one build and
 * machine, so integers are in host byte order.
 *
 * Its IDs last as long as the socket, and where the daemon ends, for the 3 s in which a later one
 * awaits a hello with the token of the welcome. All events that can be fetched ring the bell anew
 * then, which the client has emptied before.
 */
#ifndef URXE_CM_ATTACH_H
#define URXE_CM_ATTACH_H

#include <stdint.h>

#define CM_ATTACH_VERSION     3
#define CM_ATTACH_SOCKET_NAME "urxed.cm"
#define CM_ATTACH_BYTES       1024 /* of a command or a response */
#define CM_ATTACH_OPTION      432  /* bytes of an option's value, behind SET_OPTION: 6 paths */
#define CM_ATTACH_FORETOLD    1536 /* of answers behind an event */

struct cm_attach_hello {
	uint32_t version;
	uint32_t reserved;
	uint64_t token; /* of what an earlier daemon welcomed; 0 = nothing */
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
	uint64_t token; /* MIGRATE_ID: of the socket that has the ID */
};

struct cm_attach_reply {
	int32_t status; /* 0, or a negative errno value */
	uint32_t out;   /* bytes that follow */
	/* Events that cannot be fetched any more: their packets are to be taken from the
	 * descriptor, for MIGRATE_ID from that which had the ID. */
	uint32_t withdrawn;
	uint32_t foretold; /* bytes of answers that follow those; 0 but for GET_EVENT */
};

struct cm_attach_answer {
	uint32_t command; /* RDMA_USER_CM_CMD_QUERY or ..._INIT_QP_ATTR */
	uint32_t what;    /* its option, or state of a queue pair */
	uint32_t out;     /* bytes that follow */
	uint32_t reserved;
};

#endif
