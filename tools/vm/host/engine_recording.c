/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/engine_recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pvrdma/pvrdma.h>
#include <rxe/record.h>
#include <vnic/driver.h>

#include "common/clock.h"
#include "common/log.h"

/* While a peer copies: time between two attempts to start, and time until the last attempt. */
#define RETRY_NS    NS_PER_MS
#define PATIENCE_NS NS_PER_SEC

static bool write_recording(void *arg, const uint8_t *bytes, size_t n)
{
	struct engine_recording *r = arg;

	return vnic_record_write(&r->ring, bytes, n, n == URXE_RECORD_END ? 0 : URXE_RECORD_END);
}

/* Tells urxe capture once about the process, or why the process does not record (`error`). */
static void report_process(struct engine_recording *r, uint64_t now, int error)
{
	struct vnic_record_process process = {
		.engine_ns = now, .wall_ns = wall_ns(), .pid = getpid(), .error = error};

	snprintf(process.program, sizeof(process.program), "%s", program_invocation_short_name);
	memcpy(process.mac, r->mac, sizeof(process.mac));
	vnic_record_set_process(&r->ring, &process);
	r->answered = true;
}

void engine_recording_close(struct engine_recording *r, struct pvrdma *dev)
{
	struct urxe_dev *engine = dev ? pvrdma_engine(dev) : NULL;

	if (!r->ring.ring)
		return;
	if (engine)
		urxe_record_stop(engine);
	vnic_record_close(&r->ring);
}

void engine_recording_request(struct engine_recording *r, const uint8_t mac[6], int ring,
			      struct pvrdma *dev)
{
	int rc;

	engine_recording_close(r, dev);
	if (ring < 0)
		return;
	*r = (struct engine_recording){0};
	memcpy(r->mac, mac, sizeof(r->mac));
	rc = vnic_record_open(&r->ring, ring);
	close(ring);
	if (rc)
		log_line("cannot map the recording of the engine: %s", strerror(-rc));
}

/*
 * Starts the recording with the engine's state. 0; -EBUSY: a peer copies, and the caller tries
 * again; -ECANCELED: urxed captures no more; or another error of urxe_record_start. For the saved
 * state the peers lose their rights to copy; afterwards they get them back.
 */
static int start_recording(struct engine_recording *r, uint64_t now, struct urxe_dev *engine,
			   const struct vnic_driver *nic)
{
	const struct urxe_recorder recorder = {
		.arg = r, .write = write_recording, .whole_frames = true};
	int rc;

	if (!nic || vnic_driver_bypass_allowed(nic))
		return -ECANCELED;
	rc = urxe_record_start(engine, now, &recorder);
	urxe_copy_rights_publish(engine);
	return rc;
}

uint64_t engine_recording_tick(struct engine_recording *r, uint64_t now, struct pvrdma *dev,
			       const struct vnic_driver *nic)
{
	struct urxe_dev *engine;
	int rc;

	/* The capture or its daemon has ended: peers may copy, which a recording would miss. */
	if (r->answered && !(nic && !vnic_driver_bypass_allowed(nic)))
		engine_recording_close(r, dev);
	if (!r->ring.ring || r->answered)
		return UINT64_MAX;
	engine = pvrdma_engine(dev);
	/* The guest's driver has not started, or the device may grant peers no rights now, which
	 * start_recording would do. An event of the device ends both states. */
	if (!engine || !pvrdma_may_grant(dev))
		return UINT64_MAX;
	if (!r->give_up_at)
		r->give_up_at = now + PATIENCE_NS;
	rc = start_recording(r, now, engine, nic);
	if (rc == -EBUSY && now < r->give_up_at)
		return now + RETRY_NS;
	report_process(r, now, rc);
	if (rc)
		vnic_record_close(&r->ring);
	return UINT64_MAX;
}
