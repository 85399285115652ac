/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The structures of the device and of its objects, for all files of pvrdma/. */
#ifndef URXE_PVRDMA_PVRDMA_DEVICE_H
#define URXE_PVRDMA_PVRDMA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "abi.h"
#include "handle_table.h"
#include "memory/guest_ring.h"
#include "pvrdma.h"
#include "queues/event_ring.h"

/* Limits that the driver sees. The driver uses 16 bits of a QP's handle. */
#define PV_MAX_QP        16384u
#define PV_MAX_CQ        16384u
#define PV_MAX_SRQ       16384u
#define PV_MAX_PD        16384u
#define PV_MAX_MR        262144u
#define PV_MAX_AH        (1u << 20)
#define PV_MAX_CQE       (1u << 20)
#define PV_MAX_FAST_REG  128u /* the driver's own limit */
#define PV_PORT          1u
#define PV_MAX_MR_LENGTH ((uint64_t)PV_DIR_PAGES * PV_PAGE)

/*
 * Memory of this process, bytes, that the objects of a guest may take: its page lists and queues.
 * Lists of all 4 KiB pages of 256 GiB take 2 GiB.
 */
#define PV_MEMORY_MAX (UINT64_C(4) << 30)

enum pv_kind { PV_UC, PV_PD, PV_MR, PV_CQ, PV_QP, PV_SRQ, PV_KINDS };

/* The first member of every object; a context of the engine's callbacks points to it. */
struct pv_object {
	struct pvrdma *dev;
	enum pv_kind kind;
	uint32_t handle;
	uint32_t users;    /* objects that use this one */
	uint32_t uar_page; /* page of BAR2 whose doorbells reach the object */
	uint64_t bytes;    /* memory of this process that the object takes; part of pvrdma.bytes */
	/* Events that the event ring has not taken yet, one bit for each type (1 << type). If not
	 * 0, the object is in dev->event_objects. */
	uint32_t due_events;
	TAILQ_ENTRY(pv_object) event_link;
};

struct pv_uc {
	struct pv_object object;
};

struct pv_pd {
	struct pv_object object;
	struct pv_object *uc; /* the context that owns the PD; NULL: the guest's kernel */
};

/* A region of one of three kinds: a list of pages (mr is set), all memory (mr and is_dma are set),
 * or for fast registration (fast is set). */
struct pv_mr {
	struct pv_object object;
	struct pv_pd *pd;
	struct urxe_mr *mr;
	struct urxe_fast_mr *fast;
	uint32_t access;
	bool is_dma;
};

struct pv_cq {
	struct pv_object object;
	struct pv_object *uc; /* the context that owns the CQ; NULL: the guest's kernel */
	struct urxe_cq *cq;
	struct pv_ring ring;
	struct pv_pages pages;
	uint64_t n_completions; /* number of completions since the creation */
	uint64_t solicited;   /* value of `n_completions` after the newest solicited completion; 0:
				 none */
	uint64_t notified;    /* value of `n_completions` at the newest notification */
	uint32_t left_unread; /* unread completions at the last call of pv_cq_is_left_unread */
	uint32_t left_head;   /* the driver's index at that call */
	uint64_t unread_notify_at; /* no notification of unread completions before this time, ns */
	uint64_t unread_pause_ns;  /* pause before unread_notify_at, ns; 0: none since an ARM */
	bool polled;               /* its doorbell said that the driver polled it */
	bool armed;       /* armed, by driver or device, and no notification became due since */
	bool uses_events; /* the driver has armed it or was notified, or the CQ was restored */
	bool notify_due;  /* a notification is due: the CQ is in dev->notify_cqs */
	bool failed;      /* the CQ has failed, and the device has told the driver */
	TAILQ_ENTRY(pv_cq) notify_link;
};

/* A receive queue in guest memory. */
struct pv_recv_queue {
	struct urxe_rq *rq;
	struct pv_ring ring;
	uint32_t max_sge;
	bool refilling; /* pv_recv_queue_refill runs: a call from within it returns at once */
};

struct pv_srq {
	struct pv_object object;
	struct pv_pd *pd;
	struct pv_recv_queue recv;
	struct pv_pages pages;
};

struct pv_qp {
	struct pv_object object;
	struct pv_pd *pd;
	struct pv_cq *send_cq;
	struct pv_cq *recv_cq;
	struct pv_srq *srq; /* NULL: a receive queue of its own */
	struct urxe_qp *qp;
	struct pv_ring send;
	struct pv_recv_queue recv;
	struct pv_pages pages;
	uint32_t qpn;
	/* qpn is the owner's, by take_qpn or demand_qpn: free_qpn gives it back. False: the device
	 * or the HCA chose it, or it is QP 1. */
	bool qpn_taken;
	uint32_t max_send_sge;
	uint32_t events;             /* asynchronous events of the QP so far */
	uint8_t type;                /* enum pv_qp_type */
	struct pv_qp_list *waits_in; /* waiting_qps or unprepared_qps of the device; NULL: none */
	/* The QP has lost the memory of its rings while the device was paused, or was permitted no
	 * access to memory: it fails at pv_qp_fail_due. */
	bool failure_due;
	TAILQ_ENTRY(pv_qp) waiting_link;
	TAILQ_ENTRY(pv_qp) poll_link;
};

TAILQ_HEAD(pv_qp_list, pv_qp);

/* Members of the shared region that the device has copied. */
struct pv_slots {
	bool loaded;       /* the driver has loaded a shared region; if not, all is 0 */
	uint64_t request;  /* guest address of the command slot */
	uint64_t response; /* guest address of the response slot */
	uint64_t uar_pfn;  /* page frame number of BAR2 */
};

/* The VLAN in which the machine has last used an address (gid_vlan.h). */
struct pv_address_vlan {
	struct urxe_gid gid;
	uint16_t vlan; /* 0: none */
};
#define PV_ADDRESS_VLANS URXE_MAX_GIDS

/* A frame that waits for pvrdma_output. */
struct pv_staged {
	STAILQ_ENTRY(pv_staged) link;
	struct urxe_frame frame;
	uint8_t data[];
};

struct pvrdma {
	struct pvrdma_attr attr;
	struct urxe_ops ops;        /* callbacks of the engine */
	struct vnic_dirty_log *log; /* the log of changed pages of attr.memory */
	struct urxe_dev *engine;    /* NULL: not active */
	uint64_t counters[PVRDMA_COUNTERS];
	uint64_t now; /* the latest time that the caller has passed */
	bool active;  /* the driver has activated the device: the engine exists */
	bool link_up;
	bool believed_down;    /* the driver takes the link for down: the last event, or the link at
				  ACTIVATE, has told it so, and no UNQUIESCE came since */
	bool no_master;        /* the driver permits no access to memory */
	bool paused;           /* between pvrdma_pause, or pvrdma_restore, and pvrdma_resume */
	bool hca_attached;     /* the engine has `hca` */
	bool command_deferred; /* the driver waits for the response to deferred_command */
	bool polls_all;        /* doorbells may be missing: pv_qp_poll looks at all QPs next */
	bool recvs_behind;     /* rings have receive requests that the engine had no room for */
	const struct pvrdma_hca *hca; /* NULL: none */
	uint64_t activations;         /* so far; gives each engine another seed of keys */
	/* No PORT_ACTIVE or PORT_ERR event before this time (pv_port_delay_report); 0: none was
	 * delayed. */
	uint64_t report_link_at;
	/* Registers. */
	uint32_t dsr_low;
	uint32_t err;
	uint32_t icr; /* vectors raised since the driver's last read of ICR; bits */
	uint32_t imr;
	uint32_t masked_causes; /* vectors that were due while masked, or while no_master; bits */
	/* Doorbells in memory (doorbell_page.h). */
	uint32_t uar_pages; /* 1 + the highest page that a context or the driver has used */
	uint64_t cqs_rung_at[PVRDMA_UAR_PAGES]; /* by page: time of the last doorbell of CQs; 0:
						   none since all CQs of the page were armed */
	uint64_t cqs_looked_at; /* time of the last notify_unread_cqs() that checked CQs */
	union pv_request deferred_command; /* waits until the HCA is prepared */
	struct pv_slots slots;
	struct pv_event_ring async;
	struct pv_event_ring cq_notify;
	struct pv_handle_table objects[PV_KINDS];
	uint32_t gids; /* valid entries of the GID table, one bit each */
	struct pv_address_vlan address_vlans[PV_ADDRESS_VLANS];
	uint32_t next_address_vlan; /* modulo PV_ADDRESS_VLANS: next entry for a new address */
	uint32_t qpn_generation;    /* upper bits of the last QPN that the device chose itself */
	uint64_t bytes;             /* sum of pv_object.bytes; at most PV_MEMORY_MAX */
	TAILQ_HEAD(, pv_cq) notify_cqs;
	TAILQ_HEAD(, pv_object) event_objects;
	struct pv_qp_list waiting_qps; /* QPs whose send requests are to be posted again */
	/* QPs for whose next datagram the HCA is not prepared (pvrdma_hca.prepare). */
	struct pv_qp_list unprepared_qps;
	struct pv_qp_list polled_qps; /* all QPs, the next to be polled first */
	STAILQ_HEAD(, pv_staged) staged;
	uint32_t n_staged;
	uint32_t n_staged_long; /* staged frames that are longer than acknowledgements */
	/* The result of pv_mr_page_list for the newest fast registration. */
	struct urxe_extent fast_reg_extents[PV_MAX_FAST_REG];
};
_Static_assert(URXE_MAX_GIDS <= 32, "bits of struct pvrdma.gids");

static inline void pv_count(struct pvrdma *dev, enum pvrdma_counter counter)
{
	dev->counters[counter]++;
}

static inline void pv_count_n(struct pvrdma *dev, enum pvrdma_counter counter, uint64_t n)
{
	dev->counters[counter] += n;
}

/* Raises the interrupt of a vector. While the driver masks the vector, or forbids access to memory
 * (no_master), the interrupt waits until the driver has ended both. */
void pv_raise(struct pvrdma *dev, enum pv_vector vector);
/*
 * Raises the interrupts again whose causes the driver has not read. With MSI-X Linux' driver never
 * reads them; it looks for work at each interrupt, and a repeated one harms nothing.
 */
void pv_raise_unread(struct pvrdma *dev);
/* Sets dev->now to `now`, unless dev->now is later already. */
void pv_pass_time(struct pvrdma *dev, uint64_t now);

#endif
