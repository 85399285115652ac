/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's network configuration: a socket to ask on and one that tells of changes
 * (rtnetlink(7)). libmnl walks the messages.
 */
#ifndef URXE_URXED_HOSTNET_NETLINK_H
#define URXE_URXED_HOSTNET_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

/* A request that we make; the kernel's own messages may be longer. */
#define NETLINK_REQUEST_ROOM 256

struct netlink {
	struct mnl_socket *requests;
	struct mnl_socket *events;
	uint32_t seq;
};

typedef void (*netlink_fn)(void *ctx, const struct nlmsghdr *message);

/* `groups` is a set of RTMGRP_* to hear changes of. On error nothing is open. */
int netlink_open(struct netlink *n, uint32_t groups);
/* Also one that is zeroed. */
void netlink_close(struct netlink *n);

/* Readable when something has changed. */
int netlink_fd(const struct netlink *n);
/* Gives each change that has come; never blocks. False: some were lost. */
bool netlink_events(struct netlink *n, netlink_fn each, void *ctx);

/*
 * Sends a request, whose type, body and flags the caller has set, and gives each message of the
 * answer, which the kernel makes within the call. Returns 0 or the kernel's negative errno value.
 */
int netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx);

/*
 * Sorts a message's attributes, which lie behind a header of that size, by their types; those above
 * max are passed over. Each is whole: libmnl checks that.
 */
void netlink_attributes(const struct nlmsghdr *message, uint32_t header, const struct nlattr **at,
			uint16_t max);
/* The same of the attributes within an attribute. */
void netlink_nested(const struct nlattr *nest, const struct nlattr **at, uint16_t max);
/* NULL where there is none, or it is shorter than size. */
const void *netlink_value(const struct nlattr *attr, uint32_t size);
/* 32 bits, host byte order; 0 where there is none. */
uint32_t netlink_number(const struct nlattr *attr);

#endif
