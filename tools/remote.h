/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which process speaks to which remote queue pair.
 *
 * RC and UC packets do not say which queue pair they come from, so a process has to
 * say beforehand to which ones it is connected. The first one that does owns it
 * until it has taken that back as often, or is gone. Each has room for as many as
 * it has queue pairs: none can fill the table for others.
 */
#ifndef URXE_TOOLS_REMOTE_H
#define URXE_TOOLS_REMOTE_H

#include <stdint.h>
#include <sys/queue.h>

#include "lease.h"

#define REMOTE_MAX       65536
#define REMOTE_PER_OWNER LEASE_QPNS

struct remote_key {
	uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t qpn;    /* 24 bits */
};

struct remote {
	struct remote_key key;
	uint32_t times; /* that the owner has it */
	struct remote_owner *owner;
	LIST_ENTRY(remote) link; /* of the owner, or of those that are unused */
};
LIST_HEAD(remote_list, remote);

/* A process; all 0 at first. */
struct remote_owner {
	struct remote_list list;
	uint32_t n;
};

struct hash;

struct remote_table {
	struct hash *by_key;
	struct remote *all;
	uint32_t n; /* of them that were ever in use */
	struct remote_list unused;
};

/* 0, or a negative errno value; then nothing is left. */
int remote_open(struct remote_table *t);
/* Also for one that was never opened, all 0. */
void remote_close(struct remote_table *t);

/* -EADDRINUSE: it is another's; -ENOSPC: the owner has its share, or all are in use. */
int remote_take(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key);
/* -ENOENT: the owner does not have it. */
int remote_put(struct remote_table *t, struct remote_owner *owner, const struct remote_key *key);
/* The owner goes. */
void remote_put_all(struct remote_table *t, struct remote_owner *owner);

/* NULL: nobody's. */
struct remote_owner *remote_find(const struct remote_table *t, const struct remote_key *key);

#endif
