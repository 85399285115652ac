/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/lease_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/rundir.h"
#include "urxed/session/process_info.h"

#define MAGIC            "urxed leases 5\n"
#define MAGIC_4          "urxed leases 4\n"
#define PAST_OFFSET      sizeof(struct header)
#define ENTRIES_OFFSET   (PAST_OFFSET + sizeof(((struct lease_store *)0)->past))
#define ADDRESSES_OFFSET (ENTRIES_OFFSET + sizeof(((struct lease_store *)0)->entries))
#define QPNS_OFFSET      (ADDRESSES_OFFSET + sizeof(((struct lease_store *)0)->addresses))
/* The table of added QPNs has a fixed size, and most of it is a hole in the file. The remote QPs
 * behind it reach to the end of the file. */
#define REMOTES_OFFSET (QPNS_OFFSET + QPN_TABLE_MAX * sizeof(struct qpn_record))

struct header {
	char magic[16];
	char boot_id[PROCESS_BOOT];
};

static void fill_header(struct header *h)
{
	*h = (struct header){.magic = MAGIC};
	/* Without a boot ID, only the start times tell processes of two boots apart. */
	process_boot(h->boot_id);
}

static bool is_holder_alive(const struct lease_store_entry *e)
{
	return process_lives(e->pid, e->start);
}

/* Returns false with the reason in errno. After a short write, the write of the rest sets errno. */
static bool write_at(struct lease_store *r, const void *data, size_t len, size_t at)
{
	const char *bytes = data;
	ssize_t n;

	for (; len; bytes += n, at += (size_t)n, len -= (size_t)n) {
		errno = EIO;
		n = pwrite(r->fd, bytes, len, (off_t)at);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Writes to the file unless it is closed, and logs an error. Limits the number of lines, because
 * each lease writes to the file, and the disk may stay full. */
static void store(struct lease_store *r, const void *data, size_t len, size_t at)
{
	static struct log_ratelimit limit;

	if (r->fd >= 0 && !write_at(r, data, len, at))
		log_ratelimited(&limit, now_ns(), "cannot write to " LEASE_STORE_NAME ": %s",
				strerror(errno));
}

static void write_lease_entry(struct lease_store *r, uint32_t block)
{
	store(r, &r->entries[block], sizeof(r->entries[block]),
	      ENTRIES_OFFSET + block * sizeof(r->entries[block]));
}

static void write_past(struct lease_store *r, uint32_t block)
{
	store(r, &r->past[block], sizeof(r->past[block]),
	      PAST_OFFSET + block * sizeof(r->past[block]));
}

static void end_claim(struct lease_store *r, uint32_t block)
{
	r->n_claimable -= r->claimable[block];
	r->claimable[block] = false;
	r->claim_until[block] = 0;
}

static void remove_lease_entry(struct lease_store *r, uint32_t block)
{
	end_claim(r, block);
	if (!r->entries[block].token)
		return;
	r->past[block].ended_at = now_ns();
	write_past(r, block);
	r->entries[block] = (struct lease_store_entry){0};
	write_lease_entry(r, block);
}

/* Keeps the entries of processes that still live, and makes them claimable; removes the others. */
static void keep_survivors(struct lease_store *r)
{
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++) {
		const struct lease_store_entry *e = &r->entries[block];

		/* Blocks from a file of format 4 have no times, so among them the one with the
		 * highest number counts as the last leased one. */
		if ((e->token || r->past[block].user) &&
		    r->past[block].began_at >= r->past[r->last].began_at)
			r->last = block;
		if (e->token && is_holder_alive(e)) {
			r->claimable[block] = true;
			r->n_claimable++;
		} else {
			remove_lease_entry(r, block);
		}
	}
}

static bool read_lease_file(struct lease_store *r, const struct header *own)
{
	struct header found;

	return pread(r->fd, &found, sizeof(found), 0) == sizeof(found) &&
	       !memcmp(&found, own, sizeof(found)) &&
	       pread(r->fd, r->past, sizeof(r->past), PAST_OFFSET) == sizeof(r->past) &&
	       pread(r->fd, r->entries, sizeof(r->entries), ENTRIES_OFFSET) == sizeof(r->entries) &&
	       pread(r->fd, r->addresses, sizeof(r->addresses), ADDRESSES_OFFSET) ==
		       sizeof(r->addresses);
}

/*
 * Converts a file of format 4 to format 5. Returns false if the file has another format, or after
 * an error. Format 4 lacks lease_store.past, so the rest of the file moves. During the conversion
 * the file has no valid header: if the daemon is killed then, the file counts as empty.
 */
static bool convert_format_4(struct lease_store *r, const struct header *own)
{
	const struct header none = {.magic = {0}};
	struct header old = *own, found;
	off_t at = lseek(r->fd, 0, SEEK_END);
	uint8_t bytes[16384];
	size_t n;

	memcpy(old.magic, MAGIC_4, sizeof(old.magic));
	if (pread(r->fd, &found, sizeof(found), 0) != sizeof(found) ||
	    memcmp(&found, &old, sizeof(found)) != 0 || !write_at(r, &none, sizeof(none), 0))
		return false;
	for (; at > (off_t)PAST_OFFSET; at -= (off_t)n) {
		n = (size_t)at - PAST_OFFSET;
		n = n < sizeof(bytes) ? n : sizeof(bytes);
		if (pread(r->fd, bytes, n, at - (off_t)n) != (ssize_t)n ||
		    !write_at(r, bytes, n, (size_t)at - n + sizeof(r->past)))
			return false;
	}
	return write_at(r, r->past, sizeof(r->past), PAST_OFFSET) &&
	       write_at(r, own, sizeof(*own), 0);
}

/* Makes the file empty. Writes the header last, because the file counts as empty until it has one.
 * Returns 0 or a negative errno value. */
static int write_empty_lease_file(struct lease_store *r, const struct header *own)
{
	memset(r->past, 0, sizeof(r->past));
	memset(r->entries, 0, sizeof(r->entries));
	memset(r->addresses, 0, sizeof(r->addresses));
	if (ftruncate(r->fd, 0) ||
	    !write_at(r, r->addresses, sizeof(r->addresses), ADDRESSES_OFFSET) ||
	    !write_at(r, r->entries, sizeof(r->entries), ENTRIES_OFFSET) ||
	    !write_at(r, r->past, sizeof(r->past), PAST_OFFSET) ||
	    !write_at(r, own, sizeof(*own), 0))
		return -errno;
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
	(void)convert_format_4(r, &own);
	if (read_lease_file(r, &own))
		keep_survivors(r);
	else
		rc = write_empty_lease_file(r, &own);
	if (rc)
		lease_store_close(r, run_dir, false);
	return rc;
}

/* Whether the next daemon needs the entry of the block. */
static bool matters(const struct lease_store *r, uint32_t block, bool keep_ended)
{
	const struct lease_past *past = &r->past[block];

	return r->entries[block].token ||
	       (keep_ended && past->user && now_ns() < past->ended_at + LEASE_QUIET_NS);
}

static bool is_needed(const struct lease_store *r, bool keep_ended)
{
	for (uint32_t block = 0; block < LEASE_BLOCKS; block++)
		if (matters(r, block, keep_ended))
			return true;
	return false;
}

bool lease_store_close(struct lease_store *r, const char *run_dir, bool keep_ended)
{
	if (r->fd < 0)
		return false;
	if (!is_needed(r, keep_ended))
		rundir_remove(run_dir, LEASE_STORE_NAME);
	close(r->fd);
	r->fd = -1;
	return is_needed(r, false);
}

static uint64_t make_token(void)
{
	struct timespec ts;
	uint64_t token = 0;

	/* Early at boot, or if the kernel lacks the system call, the token comes from the clock.
	 * Processes that may attach could guess such a token. */
	if (getrandom(&token, sizeof(token), GRND_NONBLOCK) != (ssize_t)sizeof(token)) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		token = (uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec ^ (uintptr_t)&token;
	}
	return token ? token : 1;
}

uint64_t lease_store_add(struct lease_store *r, uint32_t qpn, pid_t pid, uid_t user, uint64_t token)
{
	uint32_t block = lease_block(qpn);

	r->past[block] = (struct lease_past){.user = 1ull + user, .began_at = now_ns()};
	write_past(r, block);
	r->unclaimed[block] = (struct lease_store_entry){0};
	r->entries[block] = (struct lease_store_entry){.token = token ? token : make_token(),
						       .start = pid > 0 ? process_identity(pid) : 0,
						       .pid = pid};
	write_lease_entry(r, block);
	return r->entries[block].token;
}

int lease_store_claim(struct lease_store *r, uint32_t qpn, uint64_t token, pid_t pid, uid_t user)
{
	uint32_t block = lease_block(qpn);
	struct lease_store_entry *e = &r->entries[block];

	if (qpn >> 24 || qpn % LEASE_QPNS || !r->claimable[block] || e->token != token ||
	    e->pid != pid)
		return -EPERM;
	end_claim(r, block);
	if (r->past[block].user != 1ull + user) {
		r->past[block].user = 1ull + user;
		write_past(r, block);
	}
	return 0;
}

uint32_t lease_store_claimable_qpn(const struct lease_store *r, uint64_t token, pid_t pid)
{
	for (uint32_t block = 0; r->n_claimable && block < LEASE_BLOCKS; block++)
		if (r->claimable[block] && r->entries[block].token == token &&
		    r->entries[block].pid == pid)
			return block << LEASE_SHIFT;
	return 0;
}

void lease_store_set_direct_uplink(struct lease_store *r, uint32_t qpn, bool direct_uplink)
{
	if (r->entries[qpn >> LEASE_SHIFT].direct_uplink == direct_uplink)
		return;
	r->entries[qpn >> LEASE_SHIFT].direct_uplink = direct_uplink;
	write_lease_entry(r, qpn >> LEASE_SHIFT);
}

void lease_store_remove(struct lease_store *r, uint32_t qpn)
{
	remove_lease_entry(r, lease_block(qpn));
}

bool lease_store_is_alive(const struct lease_store *r, uint32_t qpn)
{
	return is_holder_alive(&r->entries[lease_block(qpn)]);
}

void lease_store_lose(struct lease_store *r, uint32_t qpn, uint64_t until)
{
	uint32_t block = lease_block(qpn);

	r->n_claimable += !r->claimable[block];
	r->claimable[block] = true;
	r->claim_until[block] = until;
}

bool lease_store_has_claimable(const struct lease_store *r, pid_t pid)
{
	for (uint32_t block = 0; r->n_claimable && block < LEASE_BLOCKS; block++)
		if (r->claimable[block] && r->entries[block].pid == pid)
			return true;
	return false;
}

uint32_t lease_store_prune_claims(struct lease_store *r)
{
	for (uint32_t block = 0; r->n_claimable && block < LEASE_BLOCKS; block++)
		if (r->claimable[block] && !is_holder_alive(&r->entries[block]))
			remove_lease_entry(r, block);
	return r->claims_ended ? 0 : r->n_claimable;
}

static bool may_still_claim(const struct lease_store *r, uint32_t block, uint64_t now,
			    lease_store_frozen_fn *is_frozen, void *ctx)
{
	const struct lease_store_entry *e = &r->entries[block];

	return (now < r->claim_until[block] || (is_frozen && is_frozen(ctx, e->pid))) &&
	       is_holder_alive(e);
}

void lease_store_end_claims(struct lease_store *r, uint64_t now, lease_store_frozen_fn *is_frozen,
			    void *ctx)
{
	r->claims_ended = true;
	for (uint32_t block = 0; r->n_claimable && block < LEASE_BLOCKS; block++) {
		if (r->claimable[block] && !may_still_claim(r, block, now, is_frozen, ctx)) {
			r->unclaimed[block] = r->entries[block];
			remove_lease_entry(r, block);
		}
	}
}

bool lease_store_lives_without_claim(const struct lease_store *r, uint32_t block)
{
	return block < LEASE_BLOCKS && r->unclaimed[block].token &&
	       is_holder_alive(&r->unclaimed[block]);
}

static size_t remote_offset(uint32_t place)
{
	return REMOTES_OFFSET + place * sizeof(struct remote_qp_record);
}

void lease_store_put_remote(struct lease_store *r, uint32_t place,
			    const struct remote_qp_record *record)
{
	store(r, record, sizeof(*record), remote_offset(place));
}

int lease_store_get_remote(struct lease_store *r, uint32_t place, struct remote_qp_record *record)
{
	static const struct remote_qp_record nothing;

	/* The file ends before this place, or comes from an earlier daemon that stored no remote
	 * QPs. */
	if (pread(r->fd, record, sizeof(*record), (off_t)remote_offset(place)) != sizeof(*record))
		return -ENODATA;
	if (!record->process)
		return -ENOENT;
	if (record->process >= LEASE_BLOCKS || !r->claimable[record->process]) {
		lease_store_put_remote(r, place, &nothing);
		return -ENOENT;
	}
	return 0;
}

static size_t qpn_offset(uint32_t place)
{
	return QPNS_OFFSET + place * sizeof(struct qpn_record);
}

void lease_store_put_qpn(struct lease_store *r, uint32_t place, const struct qpn_record *record)
{
	store(r, record, sizeof(*record), qpn_offset(place));
}

uint32_t lease_store_get_qpns(struct lease_store *r, uint32_t place, struct qpn_record *records,
			      uint32_t n)
{
	ssize_t got = pread(r->fd, records, n * sizeof(*records), (off_t)qpn_offset(place));

	n = got < 0 ? 0 : (uint32_t)((size_t)got / sizeof(*records));
	if (place + n > QPN_TABLE_MAX)
		n = place < QPN_TABLE_MAX ? QPN_TABLE_MAX - place : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct qpn_record *record = &records[i];

		if (record->process < LEASE_BLOCKS && r->claimable[record->process])
			continue;
		if (record->process)
			lease_store_put_qpn(r, place + i, &(struct qpn_record){0});
		*record = (struct qpn_record){0};
	}
	return n;
}

void lease_store_put_addresses(struct lease_store *r, const struct host *host)
{
	uint32_t i;

	memset(r->addresses, 0, sizeof(r->addresses));
	for (i = 0; i < HOST_ADDRESSES; i++) {
		const struct host_address *a = &host->addresses[i];

		/* A removed address keeps its index until another address takes that index. */
		if (!a->valid && !a->freed)
			continue;
		memcpy(r->addresses[i].ip, a->ip, sizeof(a->ip));
		r->addresses[i].vlan = a->vlan;
		r->addresses[i].valid = 1;
		r->addresses[i].freed = a->valid ? 0 : a->freed;
	}
	store(r, r->addresses, sizeof(r->addresses), ADDRESSES_OFFSET);
}

/* Returns the index that was freed next after the index whose `freed` is given; HOST_ADDRESSES:
 * there is none. */
static uint32_t next_freed(const struct lease_store *r, uint32_t freed)
{
	uint32_t next = HOST_ADDRESSES;

	for (uint32_t i = 0; i < HOST_ADDRESSES; i++)
		if (r->addresses[i].valid && r->addresses[i].freed > freed &&
		    (next == HOST_ADDRESSES || r->addresses[i].freed < r->addresses[next].freed))
			next = i;
	return next;
}

static void reserve_address(const struct lease_store *r, struct host *host, uint32_t i)
{
	host_reserve_index(host, i, r->addresses[i].ip, r->addresses[i].vlan);
}

void lease_store_reserve_addresses(const struct lease_store *r, struct host *host)
{
	uint32_t i, freed = 0;

	for (; (i = next_freed(r, freed)) < HOST_ADDRESSES; freed = r->addresses[i].freed)
		reserve_address(r, host, i);
	for (i = 0; i < HOST_ADDRESSES; i++)
		if (r->addresses[i].valid && !r->addresses[i].freed)
			reserve_address(r, host, i);
}
