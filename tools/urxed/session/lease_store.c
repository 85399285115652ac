/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/lease_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/rundir.h"
#include "urxed/session/process_info.h"

#define MAGIC        "urxed leases 2\n"
#define ADDRESSES_AT (sizeof(struct header) + sizeof(((struct lease_store *)0)->entries))
#define REMOTES_AT   (ADDRESSES_AT + sizeof(((struct lease_store *)0)->addresses))

struct header {
	char magic[16];
	char boot_id[PROCESS_BOOT];
};

/* process: a block of QPNs, 0 = nobody, for that one is the daemon's. */
struct remote_entry {
	struct remote_qp_key key;
	uint32_t process;
};

static void fill_header(struct header *h)
{
	*h = (struct header){.magic = MAGIC};
	/* Without a boot ID, start times tell the processes of two boots apart. */
	process_boot(h->boot_id);
}

static bool lives(const struct lease_store_entry *e)
{
	return !e->pid || (e->pid > 0 && e->start && process_start(e->pid) == e->start);
}

static bool write_at(struct lease_store *r, const void *data, size_t len, size_t at)
{
	return pwrite(r->fd, data, len, (off_t)at) == (ssize_t)len;
}

static void write_entry(struct lease_store *r, uint32_t block)
{
	size_t at = sizeof(struct header) + block * sizeof(struct lease_store_entry);

	if (r->fd >= 0 && !write_at(r, &r->entries[block], sizeof(struct lease_store_entry), at))
		log_line("cannot write to " LEASE_STORE_NAME ": %s", strerror(errno));
}

static void forget(struct lease_store *r, uint32_t block)
{
	r->awaited -= r->waits[block];
	r->waits[block] = false;
	if (!r->entries[block].token)
		return;
	r->entries[block] = (struct lease_store_entry){0};
	write_entry(r, block);
}

/* Keeps the entries of processes that are still there; those are awaited. */
static void await_survivors(struct lease_store *r)
{
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++) {
		const struct lease_store_entry *e = &r->entries[block];

		if (e->token)
			r->last = block;
		if (e->token && lives(e)) {
			r->waits[block] = true;
			r->awaited++;
		} else {
			forget(r, block);
		}
	}
}

static bool read_all(struct lease_store *r, const struct header *own)
{
	struct header found;

	return pread(r->fd, &found, sizeof(found), 0) == sizeof(found) &&
	       !memcmp(&found, own, sizeof(found)) &&
	       pread(r->fd, r->entries, sizeof(r->entries), sizeof(found)) == sizeof(r->entries) &&
	       pread(r->fd, r->addresses, sizeof(r->addresses), ADDRESSES_AT) ==
		       sizeof(r->addresses);
}

/* The header last: without it the rest counts for nothing. */
static int begin(struct lease_store *r, const struct header *own)
{
	memset(r->entries, 0, sizeof(r->entries));
	memset(r->addresses, 0, sizeof(r->addresses));
	if (ftruncate(r->fd, 0) || !write_at(r, r->addresses, sizeof(r->addresses), ADDRESSES_AT) ||
	    !write_at(r, r->entries, sizeof(r->entries), sizeof(*own)) ||
	    !write_at(r, own, sizeof(*own), 0))
		return errno ? -errno : -EIO;
	return 0;
}

int lease_store_open(struct lease_store *r, const char *run_dir)
{
	struct header own;
	char name[PATH_MAX];
	int rc = 0;

	memset(r, 0, sizeof(*r));
	snprintf(name, sizeof(name), "%s/" LEASE_STORE_NAME, run_dir);
	r->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->fd < 0)
		return -errno;
	fill_header(&own);
	if (read_all(r, &own))
		await_survivors(r);
	else
		rc = begin(r, &own);
	if (rc)
		lease_store_close(r, run_dir);
	return rc;
}

static bool is_empty(const struct lease_store *r)
{
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (r->entries[block].token)
			return false;
	return true;
}

void lease_store_close(struct lease_store *r, const char *run_dir)
{
	if (r->fd < 0)
		return;
	if (is_empty(r))
		rundir_remove(run_dir, LEASE_STORE_NAME);
	close(r->fd);
	r->fd = -1;
}

static uint64_t make_token(void)
{
	struct timespec ts;
	uint64_t token = 0;

	/* Early at boot, or without the call: those who may attach could guess it then. */
	if (getrandom(&token, sizeof(token), GRND_NONBLOCK) != (ssize_t)sizeof(token)) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		token = (uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec ^ (uintptr_t)&token;
	}
	return token ? token : 1;
}

uint64_t lease_store_add(struct lease_store *r, uint32_t qpn, pid_t pid, uint64_t token)
{
	uint32_t block = lease_block(qpn);

	r->entries[block] = (struct lease_store_entry){.token = token ? token : make_token(),
						       .start = pid > 0 ? process_start(pid) : 0,
						       .pid = pid};
	write_entry(r, block);
	return r->entries[block].token;
}

int lease_store_claim(struct lease_store *r, uint32_t qpn, uint64_t token, pid_t pid)
{
	uint32_t block = lease_block(qpn);
	struct lease_store_entry *e = &r->entries[block];

	if (qpn % LEASE_QPNS || !r->waits[block] || e->token != token || e->pid != pid)
		return -EPERM;
	r->waits[block] = false;
	r->awaited--;
	return 0;
}

uint32_t lease_store_next_claimable(const struct lease_store *r, uint64_t token, pid_t pid)
{
	for (uint32_t block = 0; r->awaited && block < LEASE_BLOCKS; block++)
		if (r->waits[block] && r->entries[block].token == token &&
		    r->entries[block].pid == pid)
			return block << LEASE_SHIFT;
	return 0;
}

void lease_store_remove(struct lease_store *r, uint32_t qpn)
{
	forget(r, lease_block(qpn));
}

bool lease_store_awaits(const struct lease_store *r, pid_t pid)
{
	for (uint32_t block = 0; r->awaited && block < LEASE_BLOCKS; block++)
		if (r->waits[block] && r->entries[block].pid == pid)
			return true;
	return false;
}

uint32_t lease_store_count_awaited(struct lease_store *r)
{
	for (uint32_t block = 0; r->awaited && block < LEASE_BLOCKS; block++)
		if (r->waits[block] && !lives(&r->entries[block]))
			forget(r, block);
	return r->awaited;
}

void lease_store_end_claims(struct lease_store *r)
{
	for (uint32_t block = 0; r->awaited && block < LEASE_BLOCKS; block++)
		if (r->waits[block])
			forget(r, block);
}

static size_t remote_at(uint32_t place)
{
	return REMOTES_AT + place * sizeof(struct remote_entry);
}

void lease_store_put_remote(struct lease_store *r, uint32_t place, const struct remote_qp_key *key,
			    uint32_t process)
{
	const struct remote_entry e = {.key = *key, .process = process};

	if (r->fd >= 0 && !write_at(r, &e, sizeof(e), remote_at(place)))
		log_line("cannot write to " LEASE_STORE_NAME ": %s", strerror(errno));
}

int lease_store_get_remote(struct lease_store *r, uint32_t place, struct remote_qp_key *key,
			   uint32_t *process)
{
	struct remote_entry e;

	/* Files of daemons that did not write them end before. */
	if (pread(r->fd, &e, sizeof(e), (off_t)remote_at(place)) != sizeof(e))
		return -ENODATA;
	if (!e.process)
		return -ENOENT;
	if (e.process >= LEASE_BLOCKS || !r->waits[e.process]) {
		lease_store_put_remote(r, place, &e.key, 0);
		return -ENOENT;
	}
	*key = e.key;
	*process = e.process;
	return 0;
}

void lease_store_put_addresses(struct lease_store *r, const struct host *host)
{
	uint32_t i;

	memset(r->addresses, 0, sizeof(r->addresses));
	for (i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = &host->addresses[i];

		/* Of one that has gone, as long as nobody has taken its place. */
		if (!a->valid && !a->freed)
			continue;
		memcpy(r->addresses[i].ip, a->ip, sizeof(a->ip));
		r->addresses[i].vlan = a->vlan;
		r->addresses[i].valid = 1;
	}
	if (r->fd >= 0 && !write_at(r, r->addresses, sizeof(r->addresses), ADDRESSES_AT))
		log_line("cannot write to " LEASE_STORE_NAME ": %s", strerror(errno));
}

void lease_store_reserve_addresses(const struct lease_store *r, struct host *host)
{
	uint32_t i;

	for (i = 0; i < HOST_ADDRESSES; i++)
		if (r->addresses[i].valid)
			host_reserve_index(host, i, r->addresses[i].ip, r->addresses[i].vlan);
}
