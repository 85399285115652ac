/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/recording.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rxe/record.h>
#include <vnic/record_ring.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "poll/engine_run.h"
#include "process/log.h"

/* Time in ns between two attempts to save the engine's state, and their number: the save fails
 * while a peer copies or a munmap is in progress. */
#define RETRY_NS 1000000
#define RETRIES  1000

/* Under adapter.lock. */
static struct vnic_record_side ring;

static bool write_recording(void *arg, const uint8_t *bytes, size_t n)
{
	(void)arg;
	return vnic_record_write(&ring, bytes, n, n == URXE_RECORD_END ? 0 : URXE_RECORD_END);
}

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * Saves the engine's state, and starts to record its calls. 0; -EBUSY: a peer copies or a munmap is
 * in progress, so the caller tries again; -ECANCELED: the capture or the daemon has ended; or
 * another error of urxe_record_start.
 *
 * The daemon starts the capture, and forbids to bypass the switch, before it asks for the
 * recording. Frames in the receive rings may be older than the capture, so the engine takes them
 * before its state is saved. So the capture has each frame that the engine takes or sends after
 * that.
 */
static int save_and_record(void)
{
	const struct urxe_recorder recorder = {.write = write_recording};
	int rc;

	if (!adapter_connected() || vnic_driver_bypass_allowed(adapter.nic))
		return -ECANCELED;
	engine_receive_last(clock_now());
	rc = urxe_record_start(adapter.dev, clock_now(), &recorder);
	/* Publishes the peers' rights to copy again, which the save has withdrawn: peers copy again
	 * after the capture. */
	urxe_copy_rights_publish(adapter.dev);
	return rc;
}

static int start_patiently(void)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	int rc = save_and_record();

	for (uint32_t i = 0; rc == -EBUSY && i < RETRIES && ring.ring; i++) {
		adapter_unlock();
		nanosleep(&pause, NULL);
		adapter_claim();
		rc = ring.ring ? save_and_record() : -ECANCELED;
	}
	return rc;
}

static void describe_process(struct vnic_record_process *process)
{
	*process = (struct vnic_record_process){
		.engine_ns = clock_now(), .wall_ns = wall_ns(), .pid = getpid()};
	snprintf(process->program, sizeof(process->program), "%s", program_invocation_short_name);
	for (int i = 0; i < 6; i++)
		process->mac[i] = adapter.welcome.mac[i];
}

void recording_start(int fd)
{
	struct vnic_record_process process;
	int rc;

	recording_stop();
	rc = vnic_record_open(&ring, fd);
	close(fd);
	if (rc) {
		log_warning("cannot map the recording of the engine: %d", rc);
		return;
	}
	describe_process(&process);
	rc = start_patiently();
	process.error = rc;
	if (ring.ring)
		vnic_record_set_process(&ring, &process);
	if (rc)
		recording_stop();
}

void recording_stop(void)
{
	if (!ring.ring)
		return;
	urxe_record_stop(adapter.dev);
	vnic_record_close(&ring);
}

void recording_isolate(void)
{
	vnic_record_isolate(&ring);
}

void recording_abandon(void)
{
	vnic_record_abandon(&ring);
}
