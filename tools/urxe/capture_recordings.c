/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/capture_recordings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vnic/record_ring.h>

#include "capture/recording_file.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/printable.h"

struct capture_recording {
	struct vnic_record_side ring; /* closed after the process has ended its recording */
	char port[RECORDING_PORT];    /* printable */
	uint64_t added_at;            /* ns */
	bool written;                 /* the process is in the file */
	uint32_t number;              /* its number in the file */
};

void capture_recordings_add(struct capture_recordings *all, int ring, const char *port)
{
	struct capture_recording *grown = realloc(all->list, (all->n + 1) * sizeof(*grown));
	struct capture_recording *r;

	if (!grown || all->n == RECORDING_PROCESSES) {
		log_line("no room for the state of %s", port);
		all->list = grown ? grown : all->list;
		close(ring);
		return;
	}
	all->list = grown;
	r = &grown[all->n];
	*r = (struct capture_recording){.added_at = now_ns()};
	printable_copy(r->port, sizeof(r->port), port);
	if (vnic_record_open(&r->ring, ring))
		log_line("cannot map the recording of %s", r->port);
	else
		all->n++;
	close(ring);
}

bool capture_recordings_wait(const struct capture_recordings *all)
{
	const uint64_t now = now_ns();
	bool waits = all->on && !all->listed;

	for (uint32_t i = 0; i < all->n; i++)
		waits |= !all->list[i].written && now - all->list[i].added_at < CAPTURE_ANSWER_NS;
	return waits;
}

/* Writes the process to the file once it has answered. Returns 0 also before the answer. */
static int write_process(struct capture_recordings *all, struct capture_recording *r,
			 struct pcapng *to)
{
	struct vnic_record_process process;
	struct recording_process p;

	if (r->written || !vnic_record_get_process(&r->ring, &process))
		return 0;
	memset(&p, 0, sizeof(p));
	p.pid = process.pid;
	p.error = process.error > 0 ? 0 : process.error;
	p.engine_ns = process.engine_ns;
	p.wall_ns = process.wall_ns;
	memcpy(p.mac, process.mac, sizeof(p.mac));
	printable_copy(p.program, sizeof(p.program), process.program);
	memcpy(p.port, r->port, sizeof(p.port));
	if (p.error)
		log_line("no state of %s: %s", r->port, recording_error_text(p.error));
	r->written = true;
	r->number = all->n_written++;
	return recording_put_process(to, r->number, &p);
}

static int write_bytes(struct capture_recording *r, struct pcapng *to)
{
	uint8_t bytes[RECORDING_CHUNK];
	uint64_t most = VNIC_RECORD_BYTES;
	size_t n;
	int rc = 0;

	/* Reads at most as many bytes as one ring has, so that a process that records without a
	 * pause does not keep others waiting. */
	while (!rc && most && (n = vnic_record_read(&r->ring, bytes, sizeof(bytes)))) {
		rc = recording_put_bytes(to, r->number, bytes, (uint32_t)n);
		most -= n < most ? n : most;
	}
	return rc;
}

/* Writes what the process has recorded, and frees the ring of a process that records no more. */
static int write_recording(struct capture_recordings *all, struct capture_recording *r,
			   struct pcapng *to)
{
	/* Read before the bytes: once it is true, the ring has the last of them. */
	const bool ended = vnic_record_has_ended(&r->ring);
	int rc = write_process(all, r, to);

	if (rc || !r->written)
		return rc;
	rc = write_bytes(r, to);
	if (ended)
		vnic_record_close(&r->ring);
	return rc;
}

int capture_recordings_write(struct capture_recordings *all, struct pcapng *to)
{
	int rc = 0;

	for (uint32_t i = 0; i < all->n && !rc; i++)
		if (all->list[i].ring.ring)
			rc = write_recording(all, &all->list[i], to);
	return rc;
}

void capture_recordings_end(struct capture_recordings *all, uint32_t unrecorded)
{
	for (uint32_t i = 0; i < all->n; i++) {
		if (!all->list[i].written)
			log_line("no state of %s: it does not answer", all->list[i].port);
		vnic_record_close(&all->list[i].ring);
	}
	if (unrecorded)
		log_line("no state of %u other processes: urxed could not send their rings",
			 unrecorded);
	free(all->list);
}
