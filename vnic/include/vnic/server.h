/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's end of the attachment (attach_protocol.h): one client is one connection.
 *
 * No call blocks, whatever a client does. One thread at a time may use a client and its device.
 * Functions that return int give 0 or a negative errno value.
 */
#ifndef URXE_VNIC_SERVER_H
#define URXE_VNIC_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <vnic/attach_protocol.h>
#include <vnic/device.h>
#include <vnic/inbox.h>

struct vnic_server_client;

struct vnic_server_ops {
	/*
	 * A client says HELLO: the callback fills in mac, mtu, the lease and the port. A negative
	 * errno value refuses the client, except -EINPROGRESS: vnic_server_welcome answers later.
	 * The lease belongs to the client until vnic_server_close.
	 */
	int (*welcome)(void *ctx, struct vnic_server_client *client,
		       const struct vnic_attach_hello *hello, struct vnic_attach_welcome *welcome);
	/*
	 * A client asks for a next hop: answer with vnic_server_resolved, at once or later. A
	 * client has one such request at a time.
	 */
	void (*resolve)(void *ctx, struct vnic_server_client *client,
			const struct vnic_attach_resolve *request);
	/* Called while a client's request is handled: returns the client that has leased or added a
	 * QPN. NULL: no client has it, or the requesting client has asked too often. */
	struct vnic_server_client *(*owner)(void *ctx, uint32_t qpn);
	/*
	 * A queue pair of a client is connected to a remote one, or the connection has ended
	 * (request->type). Returns the status of struct vnic_attach_remote.
	 */
	int (*remote)(void *ctx, struct vnic_server_client *client,
		      const struct vnic_attach_remote *request);
	/*
	 * A client wants another block of QPNs: the one that begins with *qpn_first, or any block
	 * if *qpn_first is 0. Returns the status of struct vnic_attach_lease. The block belongs to
	 * the client until vnic_server_close.
	 */
	int (*lease)(void *ctx, struct vnic_server_client *client, uint32_t *qpn_first);
	/*
	 * A client sends QPN_ADD, QPN_SET, QPN_REMOVE or QPN_QUERY (request->type). Returns the
	 * status of struct vnic_attach_qpn, which the client gets unless it sent QPN_SET. NULL:
	 * -EOPNOTSUPP.
	 */
	int (*qpn)(void *ctx, struct vnic_server_client *client,
		   const struct vnic_attach_qpn *request);
	/*
	 * A client has an inbox from an earlier daemon: returns a socket to a process that receives
	 * and checks the inbox's descriptors (vnic_inbox_check), or a negative errno value. The
	 * client gets the socket; then vnic_server_take_inbox follows.
	 */
	int (*check_inbox)(void *ctx, struct vnic_server_client *client);
	/*
	 * A client wants packet sockets on the uplink: returns their number, the descriptors, and
	 * the size of the rings in *answer; or the status of struct vnic_attach_uplink.
	 * answer->status is the client's: if it is not 0, the client cannot use the last sockets,
	 * and the function returns a negative value. NULL: -ENODEV.
	 */
	int (*uplink)(void *ctx, struct vnic_server_client *client,
		      struct vnic_attach_uplink *answer, int fds[VNIC_UPLINK_SOCKETS]);
	/*
	 * 0: two processes share a user namespace; -EPERM: they do not; another negative errno
	 * value: that is unknown for the moment. NULL: vnic_server_share_user_namespace is called.
	 */
	int (*share_user_namespace)(void *ctx, pid_t a, pid_t b);
};

/*
 * Creates the listening socket in run_dir: non-blocking, close-on-exec, for this user and root
 * only. Replaces the socket that an earlier daemon left. Returns the descriptor.
 */
int vnic_server_listen(const char *run_dir);

/*
 * Serves a connection, a non-blocking socket from accept(2). On failure the caller still owns the
 * socket.
 */
int vnic_server_open(int socket, struct vnic_server_client **client);
/*
 * Frees the client with its device, and returns the socket, which the caller closes. close(2) may
 * block, so another process may have to do it (peer_socket.h).
 */
int vnic_server_close(struct vnic_server_client *client);

/* The client's socket. When it has input or a hang-up, the caller calls vnic_server_event. */
int vnic_server_fd(const struct vnic_server_client *client);
/*
 * An eventfd that the driver writes to wake a device that sleeps. Watch it edge-triggered (EPOLLIN
 * | EPOLLET) and never read it: the client shares it, and could make a read block.
 */
int vnic_server_doorbell_fd(const struct vnic_server_client *client);
/* The process that connected, as the kernel recorded it then. */
pid_t vnic_server_pid(const struct vnic_server_client *client);
uid_t vnic_server_uid(const struct vnic_server_client *client);

/*
 * Receives and answers one message from vnic_server_fd. 0: the client goes on, also if no message
 * was pending. Negative: close the client; -ECONNRESET: the client hung up; -EPIPE: it hung up
 * before the answer to its request; -EPROTO: it violated the protocol. `ctx` goes to the callbacks.
 *
 * A client that never says HELLO is legal: its connection alone keeps a private daemon alive.
 */
int vnic_server_event(struct vnic_server_client *client, const struct vnic_server_ops *ops,
		      void *ctx);

/*
 * Whether the client has hung up, or its next message stops its device: frames that the device has
 * not read by the next vnic_server_event are lost.
 */
bool vnic_server_ends(const struct vnic_server_client *client);

/*
 * Whether the client has sent a message since it got its device: it has received the answers to
 * HELLO and MEMORY.
 */
bool vnic_server_confirmed(const struct vnic_server_client *client);

/* Answers the pending HELLO: with *welcome if status is 0, otherwise with status. -EINVAL: no HELLO
 * is pending. */
int vnic_server_welcome(struct vnic_server_client *client, int status,
			const struct vnic_attach_welcome *welcome);

/*
 * Answers the pending RESOLVE; status as in struct vnic_attach_resolve. If it is not 0, hop may be
 * NULL. -EINVAL: no RESOLVE is pending.
 */
int vnic_server_resolved(struct vnic_server_client *client, int status,
			 const struct vnic_next_hop *hop);

/*
 * Tells a client the state of the port; a client that has not said HELLO gets it with its welcome.
 * -EAGAIN: the client does not read its notices; repeat the call when vnic_server_notice_fd is
 * writable. Other errors: those of sendmsg(2), such as -ENOMEM; repeat the call after a while.
 */
int vnic_server_notice(struct vnic_server_client *client, const struct vnic_attach_port *port);
/*
 * Asks a client for its state; the client answers on `socket`, which the caller still owns.
 * -EAGAIN: the client reads nothing and has about four questions pending; -ENOTCONN: it has not
 * said HELLO.
 */
int vnic_server_query_state(struct vnic_server_client *client, int socket);
/* The socket of notices, for poll(2) after -EAGAIN of vnic_server_notice; -1 before HELLO. */
int vnic_server_notice_fd(const struct vnic_server_client *client);

/* NULL until the server has answered the client's message MEMORY, which follows HELLO. */
struct vnic_device *vnic_server_device(struct vnic_server_client *client);

/*
 * Whether two processes share a user namespace: in different ones the same UID means different
 * users. False also if this process may not see that.
 */
bool vnic_server_share_user_namespace(pid_t a, pid_t b);

/* --- Frames that bypass the daemon (inbox.h). */

/*
 * Sends a client the descriptors of the inbox of `owner`, the client that has the QPN, without a
 * request (NOTICE_INBOX). -ENOENT, -EPERM, -EBUSY: see struct vnic_attach_introduce; -EAGAIN: the
 * client does not read its notices; -ENOTCONN: it has not said HELLO. Errors of sendmsg(2). Makes
 * no system call if the owner has no inbox.
 */
int vnic_server_introduce(struct vnic_server_client *client, const struct vnic_server_client *owner,
			  uint32_t qpn, const struct vnic_server_ops *ops, void *ctx);
/*
 * Gives the client object its inbox from an earlier daemon, after the process of check_inbox has
 * checked the descriptors. The object takes over the descriptors, also on failure. -EINVAL: it has
 * an inbox, or the client has not asked.
 */
int vnic_server_take_inbox(struct vnic_server_client *client, const int fds[VNIC_INBOX_FDS]);
/* The MAC of the client's queue pairs: the NIC's, or that of its virtual machine; 0 before HELLO.
 */
const uint8_t *vnic_server_qp_mac(const struct vnic_server_client *client);
/*
 * Returns 0 if two clients are living processes of one user in one user namespace, or the same
 * client; -EPERM: they are not; another error: the daemon cannot tell for the moment. Only between
 * such processes the daemon permits inboxes and the copy transport.
 */
int vnic_server_compare_users(const struct vnic_server_client *a,
			      const struct vnic_server_client *b, const struct vnic_server_ops *ops,
			      void *ctx);
/* VNIC_BLOCK of the client's lease; 0 before HELLO. */
uint32_t vnic_server_process(const struct vnic_server_client *client);
/* Sets whether the client may put frames into other processes' inboxes; initially true. If false,
 * all its frames go to its NIC, from its next burst on. */
void vnic_server_allow_bypass(struct vnic_server_client *client, bool on);
/*
 * Asks the client to record its engine into a ring (record_ring.h); ring -1: to end that. 0;
 * -EAGAIN: the client does not read its notices; -ENOTCONN: it has not said HELLO; or another
 * negative errno value.
 */
int vnic_server_record(struct vnic_server_client *client, int ring);
/* The number of the process that holds the lock of the client's inbox; 0 = none. */
uint32_t vnic_server_inbox_holder(const struct vnic_server_client *client);
/* A process has died: releases the lock of the client's inbox if that process held it. */
void vnic_server_inbox_unlock(struct vnic_server_client *client, uint32_t process);
/*
 * The client has ended: no process may send to its inbox any more. Without this call,
 * vnic_server_close leaves the inbox usable, as it must be during a restart of the daemon.
 */
void vnic_server_inbox_revoke(struct vnic_server_client *client);

#endif
