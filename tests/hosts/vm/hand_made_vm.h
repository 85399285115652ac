/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A virtual machine by hand, with the two functions of `urxe vm`: plays the hypervisor and both
 * drivers. It exchanges messages with ibv_rc_pingpong, which returns each of them; every byte is
 * compared. A call that fails ends the program.
 */
#ifndef URXE_TEST_HOSTS_HAND_MADE_VM_H
#define URXE_TEST_HOSTS_HAND_MADE_VM_H

#include <stdint.h>

#include "pvrdma_driver.h"

/* Pages of both regions of the guest's memory. */
#define VM_PAGES (2 * GUEST_SMALL / PV_PAGE)

/* A driver of the vmxnet3 that only sends. */
struct vm_nic {
	uint64_t shared, queues, rings, frame; /* pages of the guest */
	uint32_t sent;
};

struct hand_made_vm {
	struct guest guest;
	struct vm_nic nic;
	struct vfio_client clients[2]; /* of the vmxnet3, and of the PVRDMA */
	struct cq cq;
	struct qp qp;
	struct buffer send, recv;
	uint32_t size; /* of a message, bytes */
	uint32_t message;
	uint8_t peer; /* 10.0.0.PEER is the address of the peer's host */
};

/* Connects to the functions at `path` and path.1, and gives them the guest's memory. */
void vm_connect_clients(struct guest *g, struct vfio_client clients[2], const char *path);
/* Starts both drivers on the device process at `path`; m->size and m->peer are set. */
void vm_start(struct hand_made_vm *m, const char *path);
/* As QEMU: maps the page of doorbells if the device process offers it (m->guest.attr.uar); else
 * doorbells are messages. Forgets the page of an earlier process. */
void vm_map_doorbells(struct hand_made_vm *m);
/* Connects the queue pair to ibv_rc_pingpong, which listens on this host at `port`. mac: of the
 * peer's host. */
void vm_connect_qp(struct hand_made_vm *m, uint16_t port, const char *mac);
/* Sends frames through the NIC, whose link is up. */
void vm_check_nic(struct hand_made_vm *m);

/* Posts a message; vm_finish waits for the completions of the message and of its return. */
void vm_post(struct hand_made_vm *m);
/* Waits until the first `bytes` of the message have returned. */
void vm_wait_returned(struct hand_made_vm *m, uint32_t bytes);
void vm_finish(struct hand_made_vm *m);
void vm_exchange(struct hand_made_vm *m, uint32_t n);

#endif
