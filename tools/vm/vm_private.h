/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a device process, for vm.c and replace/. */
#ifndef URXE_VM_VM_PRIVATE_H
#define URXE_VM_VM_PRIVATE_H

#include "urxed/uplink/vm_port_protocol.h"
#include "vm/datapath.h"
#include "vm/host/announcer.h"
#include "vm/host/engine_recording.h"
#include "vm/host/machine_hca.h"
#include "vm/host/machine_peers.h"
#include "vm/host/machine_session.h"
#include "vm/replace/bundle.h"
#include "vm/rest.h"
#include "vm/vm.h"

#define VM_NAME (3 + VM_PORT_NAME) /* "vm:" and the name of the switch's port */

/* The replacement of the process by another one. */
struct vm_replacement {
	struct listen_socket listener; /* for a process that replaces this one */
	int requester;   /* connection of the replacing process, which has sent nothing yet; -1:
			    none */
	int predecessor; /* connection to the process that this one replaces; -1: none */
	/* While one of these two is set, the device stands still, and keeps its port. */
	bool handing_over; /* this process hands the device over */
	bool taking_over;  /* this process takes the device over */
	bool replaced;     /* another process has taken the device over; this one ends */
};

struct vm {
	int epoll_fd, signal_fd;
	bool stop;
	/* PVRDMA's reply to the guest's last access to a register waits, for the end of peers'
	 * copies, for a completion (rest.h) or for the HCA. */
	bool held;
	bool paused; /* a function is paused: the machine's device stands still */
	struct vm_replacement replacement;
	struct bundle_options options;
	struct announcer announcer;
	struct function_owner owner; /* of both functions */
	char name[VM_NAME];          /* of the process, for urxe show */
	struct switch_link link;
	struct vm_session session;
	struct engine_recording recording;
	struct machine_peers peers;
	struct pvrdma_owner pvrdma_owner;
	struct vmxnet3_function nic;
	struct pvrdma_function rdma;
	struct machine_hca hca;
	struct datapath datapath;
	uint64_t ticked_at; /* time of the last tick of link, session and announcer, ns */
	struct rest rest;
};

static inline struct function *vm_function(struct vm *vm, uint32_t number)
{
	return number ? &vm->rdma.function : &vm->nic.function;
}

/* Sets the link of both functions, whose drivers get an event if it has changed. */
void vm_set_link(struct vm *vm, bool up);

#endif
