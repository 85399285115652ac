/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to the kernel's network configuration, and notifications of its changes (rtnetlink(7));
 * each has a socket of its own. kernel_sync, route and hca_monitor call this; libmnl parses the
 * messages.
 */
#ifndef URXE_URXED_KERNEL_NETLINK_H
#define URXE_URXED_KERNEL_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

/* Bytes for a request; the kernel's messages may be longer. */
#define NETLINK_REQUEST_ROOM 256

struct netlink {
	struct mnl_socket *requests;
	struct mnl_socket *events;
	uint32_t seq;
};

typedef void (*netlink_fn)(void *ctx, const struct nlmsghdr *message);

/*
 * Subscribes to changes of `groups`, a set of RTMGRP_*. Returns 0, or a negative errno value: then
 * nothing is open.
 */
int netlink_open(struct netlink *n, uint32_t groups);
/* Accepts a zeroed object. */
void netlink_close(struct netlink *n);

/* Readable when notifications are pending. */
int netlink_fd(const struct netlink *n);
/*
 * Calls `each`, unless it is NULL, for all pending notifications; never blocks. False: some were
 * lost.
 */
bool netlink_events(struct netlink *n, netlink_fn each, void *ctx);

/*
 * Sends a request, whose type, body and flags the caller has set, and calls `each` for each message
 * of the answer. Returns 0 or the kernel's negative errno value; -EAGAIN: no answer for 1 s.
 * -EINTR: a change during a dump made it inconsistent (NLM_F_DUMP_INTR), so the caller drops what
 * it got.
 */
int netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx);

/*
 * Stores pointers to a message's attributes, which follow `header` bytes, in `at`, indexed by type.
 * Ignores types above max. libmnl checks the lengths of the attributes.
 */
void netlink_attributes(const struct nlmsghdr *message, uint32_t header, const struct nlattr **at,
			uint16_t max);
/* As netlink_attributes, for the attributes nested in `nest`. */
void netlink_nested(const struct nlattr *nest, const struct nlattr **at, uint16_t max);
/* NULL if attr is NULL or its value is shorter than size. */
const void *netlink_value(const struct nlattr *attr, uint32_t size);
/* A 32-bit value in host byte order; 0 if attr is NULL or shorter. */
uint32_t netlink_number(const struct nlattr *attr);

#endif
