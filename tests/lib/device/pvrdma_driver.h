/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PVRDMA driver for tests, and the memory of its virtual machine: two regions with a hole between
 * them. Pages come from the two regions in turn, so neighbours in a page list are rarely neighbours
 * in memory. The driver follows the rules of Linux' driver; a test that breaks these rules writes
 * to the structures below itself.
 */
#ifndef URXE_TEST_PVRDMA_DRIVER_H
#define URXE_TEST_PVRDMA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "pvrdma/abi.h"
#include "pvrdma/pvrdma.h"
#include "vfio_client.h"

#define GUEST_LOW_SIZE   0x1000000u
#define GUEST_HIGH       UINT64_C(0x100000000)
#define GUEST_HIGH_SIZE  0x3000000u
#define GUEST_EXTRA      UINT64_C(0x200000000) /* not mapped at first */
#define GUEST_EXTRA_SIZE 0x1000000u
#define GUEST_SMALL      0x40000u
#define GUEST_MEMORY     (GUEST_LOW_SIZE + GUEST_HIGH_SIZE + GUEST_EXTRA_SIZE)

#define GUEST_UAR_PFN    UINT64_C(0xfe000)
#define GUEST_RING_PAGES 4 /* as Linux' driver */
#define GUEST_MTU        1500
#define GUEST_QKEY       0x1234u

/* Pages of guest memory, and the directory that names them. */
struct pages {
	uint64_t dir;
	uint32_t n;
	uint64_t *addr;
};

struct guest_attr {
	uint8_t id; /* of MAC and GIDs */
	bool roce_v1;
	bool ipv6;    /* RoCEv2 over IPv6 */
	uint32_t mtu; /* 0: GUEST_MTU */
	bool small;   /* only GUEST_SMALL bytes of each region */
	const struct pvrdma_owner *owner;
	void *uar; /* of pvrdma_attr */
};

struct guest {
	uint8_t id;
	bool roce_v1;
	bool ipv6;
	uint8_t mac[6];
	int fd;
	uint8_t *bytes; /* the file of the guest's memory */
	struct vnic_guest_memory *memory;
	struct pvrdma_attr attr;
	struct pvrdma *dev; /* NULL: the device is behind `client` */
	struct vfio_client *client;
	int eventfds[PV_VECTORS]; /* of the client */
	uint64_t low_size, high_size, extra_size;
	bool keep_extra; /* the extra region is mapped, and stays so when the memory is cleared */
	uint64_t now;
	uint64_t next_low; /* page allocator */
	uint64_t next_high;
	bool high_next;
	uint32_t interrupts[PV_VECTORS];
	uint64_t dsr;
	uint64_t request;
	uint64_t response;
	struct pages async;
	struct pages cq_notify;
	uint64_t token; /* of the newest command */
	uint32_t pd;
	uint32_t context;  /* of pd and of CQs that cq_open makes; 0: the machine's kernel */
	uint32_t uar_page; /* of the context's doorbells */
};

void guest_open(struct guest *g, const struct guest_attr *attr);
void guest_close(struct guest *g);
/*
 * A guest without a device of its own (dev is NULL): a device process has the device, behind the
 * vfio-user protocol. guest_attach maps the guest's memory for a client that is connected to one
 * function, and enables bus mastering. `rdma`: the function is the PVRDMA; the guest uses it and
 * gets its interrupts.
 */
void guest_open_remote(struct guest *g, const struct guest_attr *attr);
void guest_attach(struct guest *g, struct vfio_client *client, bool rdma);
/* Memory of the same layout in another file, still empty. */
void guest_open_copy(const struct guest *g, struct guest *copy);
/* Clears the memory, of which the device uses nothing. */
void guest_clear(struct guest *g);
/* As if closed and opened: clears the memory, and makes a new device. */
void guest_reopen(struct guest *g);
/*
 * Moves the guest to another host: saves the device, and restores it over new memory, whose
 * contents arrive after that. Frames on the way are lost. Returns the error of the restoration;
 * then the guest is as before, and goes on.
 */
int guest_migrate(struct guest *g);
/* The two parts of guest_migrate. guest_save pauses the device; the caller frees the
 * stream. guest_restore returns as guest_migrate. */
void guest_save(struct guest *g, uint8_t **stream, size_t *length);
int guest_restore(struct guest *g, const uint8_t *stream, size_t length);
/* Fills *owner, and reopens the guest with this owner, whose callback `nic` returns *nic. Both must
 * outlive the guest's device. */
void guest_give_nic(struct guest *g, struct pvrdma_owner *owner, struct pvrdma_nic *nic);

/* The byte of a guest physical address in this process. */
void *guest_at(const struct guest *g, uint64_t addr);
uint64_t guest_page(struct guest *g);
void guest_pages(struct guest *g, uint32_t n, struct pages *pages);
void guest_pages_free(struct pages *pages);
/* Maps, and unmaps, the extra region, and tells the device. */
void guest_plug(struct guest *g);
void guest_unplug(struct guest *g, uint64_t addr, uint64_t size);

uint32_t guest_read(struct guest *g, uint32_t reg);
void guest_write(struct guest *g, uint32_t reg, uint32_t value);
/* A write to BAR2, or a store if the device has that as memory (pvrdma_attr.uar). */
void guest_doorbell(struct guest *g, uint32_t page, uint32_t offset, uint32_t value);

/* Writes the shared region, with slots and event rings, to the guest's memory; a former region's
 * rings go. */
void guest_prepare(struct guest *g);
/* Tells the device the address of the shared region. */
void guest_load(struct guest *g);
/* Unmasks the interrupts, and activates the device. */
void guest_activate(struct guest *g);
/* All of these; then binds GID 0 and creates a PD, g->pd. */
void guest_start(struct guest *g);
const struct pv_device_caps *guest_caps(const struct guest *g);

/* Gives the device a command. The response to a MODIFY_QP may come later. */
void guest_begin_command(struct guest *g, uint32_t cmd, union pv_request *request);
/*
 * Executes a command. Returns 0, or the negative errno value of ERR or the response. Requires the
 * response's form, and its interrupt where the driver waits for it.
 */
int guest_command(struct guest *g, uint32_t cmd, union pv_request *request,
		  union pv_response *response);
/* A command with only a handle. */
int guest_handle_command(struct guest *g, uint32_t cmd, uint32_t handle);

uint32_t guest_pd(struct guest *g, uint32_t context);
/* Opens a program's context with this page of doorbells, 1 or above, and a PD of it: further
 * objects are the program's. */
void guest_enter_context(struct guest *g, uint32_t page);
void guest_gid(const struct guest *g, struct urxe_gid *gid);
int guest_bind(struct guest *g, uint32_t index, const struct urxe_gid *gid, uint32_t vlan);

struct cq {
	uint32_t handle;
	uint32_t slots;
	struct pages pages;
};

int cq_try_open(struct guest *g, struct cq *cq, uint32_t cqe, uint32_t context);
void cq_open(struct guest *g, struct cq *cq, uint32_t cqe);
void cq_close(struct guest *g, struct cq *cq);
struct pv_ring_indices *cq_indices(const struct guest *g, const struct cq *cq);
bool cq_poll(struct guest *g, struct cq *cq, struct pvrdma_cqe *cqe);
void cq_arm(struct guest *g, const struct cq *cq, bool solicited);

struct srq {
	uint32_t handle;
	uint32_t slots;
	uint32_t wqe_size;
	struct pages pages;
};

int srq_try_open(struct guest *g, struct srq *srq, uint32_t max_wr, uint32_t max_sge,
		 uint32_t limit);
void srq_close(struct guest *g, struct srq *srq);

struct qp_attr {
	uint8_t type;
	uint32_t send_wr; /* 0: 16; also of the next two */
	uint32_t recv_wr;
	uint32_t sge;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
};

struct qp {
	uint32_t handle;
	uint32_t qpn;
	uint8_t type;
	uint32_t send_slots, recv_slots;
	uint32_t send_size, recv_size; /* bytes of a request */
	uint32_t recv_page;            /* index of the first page of receive requests */
	struct pages pages;
};

int qp_try_open(struct guest *g, struct qp *qp, const struct qp_attr *attr);
void qp_open(struct guest *g, struct qp *qp, const struct qp_attr *attr);
void qp_close(struct guest *g, struct qp *qp);
struct pv_ring_state *qp_state_page(const struct guest *g, const struct qp *qp);
int qp_modify(struct guest *g, const struct qp *qp, const struct pv_qp_attr *attrs, uint32_t mask);
int qp_to(struct guest *g, const struct qp *qp, uint32_t state);
uint32_t qp_query(struct guest *g, const struct qp *qp, struct pv_qp_attr *attrs);
/* RESET to RTR: connected to a peer whose requests it executes. */
void qp_receive(struct guest *g, const struct qp *qp, const struct guest *peer,
		const struct qp *peer_qp);
/* RESET to RTS: connected to a peer, or a datagram QP. The path MTU is 1024, or 4096 if the MTU of
 * the guest's device permits. */
void qp_connect(struct guest *g, const struct qp *qp, const struct guest *peer,
		const struct qp *peer_qp);
void qp_datagram(struct guest *g, const struct qp *qp);
void qp_av(const struct guest *g, const struct guest *peer, struct pvrdma_av *av);

/* Writes a request into the ring, without a doorbell. False: the ring is full. */
bool qp_write_send(struct guest *g, struct qp *qp, const struct pvrdma_sq_wqe_hdr *header,
		   const struct pvrdma_sge *sges);
/* The functions below also ring the doorbell; the ring must have room. */
void qp_post_send(struct guest *g, struct qp *qp, const struct pvrdma_sq_wqe_hdr *header,
		  const struct pvrdma_sge *sges);
void qp_post_recv(struct guest *g, struct qp *qp, uint64_t wr_id, const struct pvrdma_sge *sges,
		  uint32_t n);
void srq_post(struct guest *g, struct srq *srq, uint64_t wr_id, const struct pvrdma_sge *sges,
	      uint32_t n);

/* Memory of a program in the guest, registered at an address of its own. */
struct buffer {
	struct pages pages;
	uint64_t va;
	uint64_t length;
	uint32_t handle;
	uint32_t key;
};

int mr_create(struct guest *g, const struct pv_cmd_create_mr *request, uint32_t *handle,
	      uint32_t *key);
void buffer_open(struct guest *g, struct buffer *buffer, uint64_t va, uint64_t length,
		 uint32_t access);
void buffer_close(struct guest *g, struct buffer *buffer);
/* A byte of the buffer. */
uint8_t *buffer_at(const struct guest *g, const struct buffer *buffer, uint64_t offset);
void buffer_fill(const struct guest *g, const struct buffer *buffer, uint64_t offset,
		 uint64_t length, uint8_t seed);
/* Whether bytes are those of buffer_fill with the seed. */
bool buffer_has(const struct guest *g, const struct buffer *buffer, uint64_t offset,
		uint64_t length, uint8_t seed);
struct pvrdma_sge buffer_sge(const struct buffer *buffer, uint64_t offset, uint32_t length);

/* The oldest event, or notification, that the driver has not read. */
bool guest_event(struct guest *g, struct pv_eqe *eqe);
bool guest_notification(struct guest *g, uint32_t *handle);

/*
 * A cable between two devices, or one device alone. A frame with a payload reference arrives as
 * from an inbox; its sender is the struct guest.
 */
struct net {
	struct guest *guest[2]; /* the second may be NULL */
	uint64_t moved;         /* frames */
	uint64_t lose;          /* bit i: frame i, modulo 64, is lost */
};

/* Moves what is due now; false: nothing was. */
bool net_step(struct net *net);
/* Runs until nothing is due, for at most so many virtual nanoseconds. */
void net_run_for(struct net *net, uint64_t ns);
void net_run(struct net *net);

#endif
