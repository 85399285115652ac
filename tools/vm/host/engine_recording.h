/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records PVRDMA's engine for urxe capture --state (rxe/record.h). The recording contains each
 * frame that the engine receives as a whole, because the capture itself may have missed frames from
 * the switch to the machine. vm.c calls these functions, in the thread that runs the engine.
 */
#ifndef URXE_VM_HOST_ENGINE_RECORDING_H
#define URXE_VM_HOST_ENGINE_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/record_ring.h>

struct pvrdma;
struct vnic_driver;

struct engine_recording {
	struct vnic_record_side ring; /* none: no capture asks for a recording */
	bool answered; /* the ring has the process's data, or the reason why it is not recorded */
	uint64_t give_up_at; /* last attempt while peers copy, ns; 0: before the first attempt */
	uint8_t mac[6];      /* of the machine */
};

/* Call it when the daemon asks for a recording, with the ring's descriptor, which the function
 * closes; engine_recording_tick then starts the recording. `ring` -1: the daemon ends it. */
void engine_recording_request(struct engine_recording *r, const uint8_t mac[6], int ring,
			      struct pvrdma *dev);
/*
 * Starts the recording that was asked for, when the driver has activated the device, the device may
 * access memory and no peer copies. Gives up if peers still copy 1 s after its first attempt. Ends
 * the recording when urxed captures no more. `nic`: of the session; NULL: none. Call it after each
 * event of the device. Returns the time of the next call without an event, UINT64_MAX = none.
 */
uint64_t engine_recording_tick(struct engine_recording *r, uint64_t now, struct pvrdma *dev,
			       const struct vnic_driver *nic);
/* Ends the recording, if there is one. Call it before the device is destroyed. */
void engine_recording_close(struct engine_recording *r, struct pvrdma *dev);

#endif
