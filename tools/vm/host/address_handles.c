/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/address_handles.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int address_handles_open(struct address_handles *h)
{
	*h = (struct address_handles){.fds = {-1, -1}};
	return pipe2(h->fds, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

/* Whether the job runs, or ended so recently that its result is still valid. */
static bool is_current(const struct address_handle_job *job, uint64_t now)
{
	switch (job->state) {
	case ADDRESS_HANDLE_NONE: return false;
	case ADDRESS_HANDLE_RUNS: return true;
	case ADDRESS_HANDLE_FOUND: return now - job->ended_at < ADDRESS_HANDLE_FOUND_NS;
	case ADDRESS_HANDLE_FAILED: return now - job->ended_at < ADDRESS_HANDLE_FAILED_NS;
	}
	return false;
}

/* Whether the error means that the kernel has found no way to the peer. Other errors concern the
 * PD, or the path apart from its destination. */
static bool is_of_peer(int error)
{
	return error == -EHOSTUNREACH || error == -ENETUNREACH || error == -ETIMEDOUT ||
	       error == -ENODATA;
}

/*
 * Whether the result of the job is also that of the wanted job. For success, or an error of the
 * peer, only the destination counts, because the kernel resolves nothing else; for other errors the
 * PD and the whole path.
 */
static bool applies_to(const struct address_handle_job *job,
		       const struct address_handle_job *wanted)
{
	const struct urxe_path *a = &job->path, *b = &wanted->path;

	if (job->hca != wanted->hca || a->sgid_index != b->sgid_index ||
	    memcmp(&a->dgid, &b->dgid, sizeof(a->dgid)))
		return false;
	return job->state != ADDRESS_HANDLE_FAILED || is_of_peer(job->error) ||
	       (job->pd == wanted->pd && hca_is_same_path(a, b));
}

static const struct address_handle_job *find_job(const struct address_handle_job *wanted,
						 uint64_t now)
{
	for (unsigned i = 0; i < ADDRESS_HANDLE_JOBS; i++) {
		const struct address_handle_job *job = &wanted->all->jobs[i];

		if (is_current(job, now) && applies_to(job, wanted))
			return job;
	}
	return NULL;
}

/* Returns a free one of the first n jobs, or the one of them that ended first; NULL: all run. */
static struct address_handle_job *find_room(struct address_handles *h, unsigned n)
{
	struct address_handle_job *oldest = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct address_handle_job *job = &h->jobs[i];

		if (job->state == ADDRESS_HANDLE_NONE)
			return job;
		if (job->state != ADDRESS_HANDLE_RUNS &&
		    (!oldest || job->ended_at < oldest->ended_at))
			oldest = job;
	}
	return oldest;
}

static int end_call(struct address_handle_job *job)
{
	const int rc = hca_ah_end(job->call);

	hca_release(job->hca);
	return rc;
}

/* The thread of a job. */
static void *create_handle(void *arg)
{
	struct address_handle_job *job = arg;
	const uint8_t number = (uint8_t)(job - job->all->jobs);

	hca_ah_run(job->call);
	/* The pipe has room for all jobs. */
	return write(job->all->fds[1], &number, 1) == 1 ? job : NULL;
}

/* Starts a thread for the wanted handle. Returns as address_handles_get(). */
static int begin_job(const struct address_handle_job *wanted, bool connects)
{
	struct address_handle_job *job = find_room(
		wanted->all, connects ? ADDRESS_HANDLE_JOBS : ADDRESS_HANDLE_DATAGRAM_JOBS);
	int rc;

	if (!job)
		return -EAGAIN;
	*job = *wanted;
	job->call = hca_ah_begin(job->hca, job->pd, &job->path, connects);
	if (!job->call)
		return 0;
	rc = pthread_create(&job->thread, NULL, create_handle, job);
	if (rc) {
		end_call(job);
		return -EHOSTUNREACH;
	}
	job->state = ADDRESS_HANDLE_RUNS;
	return -EAGAIN;
}

/* Replaces errors by which callers would retry: the HCA's attempt is over. */
static int final_error(int rc)
{
	return rc == -EAGAIN || rc == -EINPROGRESS || rc == -ENOMEM ? -EHOSTUNREACH : rc;
}

/* The result of address_handles_get() for a job that has ended. A connection uses no handle, so an
 * error that is not the peer's does not concern it. */
static int result(const struct address_handle_job *job, bool connects)
{
	return connects && !is_of_peer(job->error) ? 0 : final_error(job->error);
}

int address_handles_get(struct address_handles *h, struct hca *hca, uint32_t pd,
			const struct urxe_path *path, bool connects, uint64_t now)
{
	const struct address_handle_job wanted = {.all = h, .hca = hca, .pd = pd, .path = *path};
	const struct address_handle_job *job;

	if (!connects && hca_has_ah(hca, pd, path))
		return 0;
	job = find_job(&wanted, now);
	if (!job)
		return begin_job(&wanted, connects);
	return job->state == ADDRESS_HANDLE_RUNS ? -EAGAIN : result(job, connects);
}

static void end_job(struct address_handle_job *job, uint64_t now)
{
	pthread_join(job->thread, NULL);
	job->error = end_call(job);
	job->state = job->error ? ADDRESS_HANDLE_FAILED : ADDRESS_HANDLE_FOUND;
	job->ended_at = now;
}

bool address_handles_event(struct address_handles *h, uint64_t now)
{
	bool some = false;
	uint8_t number;

	while (read(h->fds[0], &number, 1) == 1) {
		end_job(&h->jobs[number], now);
		some = true;
	}
	return some;
}

void address_handles_close(struct address_handles *h)
{
	for (unsigned i = 0; i < ADDRESS_HANDLE_JOBS; i++)
		if (h->jobs[i].state == ADDRESS_HANDLE_RUNS)
			end_job(&h->jobs[i], 0);
	for (unsigned i = 0; i < 2; i++)
		if (h->fds[i] >= 0)
			close(h->fds[i]);
}
