/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device process of a virtual machine: it is a PCI device whose function 0 is a vmxnet3 and
 * whose function 1 is a PVRDMA, and has a port of its own on urxed's switch. cmd_vm.c runs it.
 */
#ifndef URXE_VM_VM_H
#define URXE_VM_VM_H

#include <stdbool.h>
#include <stdint.h>

#include <hca/way.h>

#define VM_ERROR 256

struct vm;

struct vm_attr {
	const char *run_dir;   /* of the daemon */
	const char *name;      /* of the port, "" = the daemon chooses */
	const char *path;      /* socket of function 0 */
	const char *rdma_path; /* socket of function 1 */
	uint8_t mac[6];
	/* Largest MTU of the vmxnet3. PVRDMA's is this or the uplinks', whichever is smaller. */
	uint16_t mtu;
	bool roce_v1;
	/* Which of HCA and engine executes queue pairs of the machine's programs. */
	enum hca_way way;
	/* The guest's doorbells are stores in memory, at which the process looks. */
	bool map_doorbells;
	/* A live migration brings the machine here; it gets no port before its state arrives. */
	bool incoming;
	/* The process replaces a running one, which serves the machine at the same paths. */
	bool take_over;
	const char *replace_path; /* socket at which this process, or the one before it, can be
				     replaced */
};

/*
 * Creates the device, and listens at its sockets. The strings of *attr must stay valid until
 * vm_destroy. Returns 0, or a negative errno value and a sentence in `error`.
 */
int vm_create(const struct vm_attr *attr, struct vm **vm, char error[VM_ERROR]);
/*
 * Serves the machine until SIGTERM or SIGINT: returns true. False: another process has taken the
 * machine's device over. Then the caller must not call vm_destroy, which would remove the sockets
 * that the other process uses now.
 */
bool vm_run(struct vm *vm);
void vm_destroy(struct vm *vm);

#endif
