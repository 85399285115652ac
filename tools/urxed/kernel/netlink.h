/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends requests to the kernel's network configuration, and receives notifications of its changes
 * (rtnetlink(7)), each on a socket of its own. kernel_sync, route and hca_monitor call this; libmnl
 * parses the messages.
 */
#ifndef URXE_URXED_KERNEL_NETLINK_H
#define URXE_URXED_KERNEL_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

/* Room for a request in bytes; the kernel's messages may be longer. */
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
/* Accepts a zeroed structure. */
void netlink_close(struct netlink *n);

/* Returns a descriptor that is readable when notifications are pending. */
int netlink_fd(const struct netlink *n);
/* Calls `each`, unless it is NULL, for all pending notifications; never blocks. Returns false if
 * the kernel has dropped some. */
bool netlink_events(struct netlink *n, netlink_fn each, void *ctx);

/*
 * Sends a request, whose type, body and flags the caller has set, and calls `each` for each message
 * of the answer. Returns 0, the kernel's negative errno value, or -EAGAIN if no answer has come for
 * 1 s. -EINTR: a change during a dump made it inconsistent (NLM_F_DUMP_INTR), so the caller
 * discards what it got.
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
/* Returns the value of `attr`, or NULL if attr is NULL or its value is shorter than size. */
const void *netlink_value(const struct nlattr *attr, uint32_t size);
/* Returns a 32-bit value in host byte order; 0 if attr is NULL or its value is shorter. */
uint32_t netlink_number(const struct nlattr *attr);

#endif
