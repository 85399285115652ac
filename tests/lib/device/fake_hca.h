/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A provider double: an HCA whose queue pairs do nothing until the test completes their requests,
 * and whose functions fail as the test says. One at a time.
 */
#ifndef URXE_TESTS_LIB_FAKE_HCA_H
#define URXE_TESTS_LIB_FAKE_HCA_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include <hca/hca.h>
#include <hca/hca_verbs.h>

#define FAKE_WRS 1024

struct fake_qp {
	struct ibv_qp ibv;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_send_wr sends[FAKE_WRS]; /* all requests so far; lists are not kept */
	uint32_t n_sends, sent;             /* posted, completed */
	struct ibv_recv_wr recvs[FAKE_WRS];
	uint32_t n_recvs, received;
	uint32_t refuse_from;      /* ibv_post_send fails once it has taken so many requests */
	uint32_t refuse_recv_from; /* the same of ibv_post_recv */
	int refuse_error;          /* what they return then */
	bool in_use;
};

struct fake_hca {
	struct ibv_device device;
	struct ibv_context context;
	struct hca_verbs verbs;
	uint32_t next_qpn, next_key;
	uint32_t rkey_differs; /* added to rkeys */
	uint32_t max_inline;
	uint16_t pkeys[4];   /* of the port; 0 = none */
	uint32_t gid_index;  /* of fake_gid */
	int gid_table_error; /* negative errno value; 0: the table can be read */
	/* Interface of fake_gid; that of a VLAN has fake_gid behind it. 0 = none. */
	uint32_t ifindex, vlan_ifindex;
	enum ibv_mtu mtu;   /* of the port */
	uint32_t vendor_id; /* 0xffffff by default: an HCA in software */
	int max_qp_wr;
	bool has_rates; /* queue pairs may have a rate limit */
	bool no_qps, no_srqs, no_mrs, no_ahs, no_pds, no_cqs, no_resize;
	/* hca_open() fails with open_error at this step; FAKE_HCA_OPEN_ALL: it succeeds. */
	enum fake_hca_open {
		FAKE_HCA_OPEN_ALL,
		FAKE_HCA_OPEN_DEVICE,
		FAKE_HCA_QUERY_DEVICE,
		FAKE_HCA_QUERY_PORT,
		FAKE_HCA_CREATE_CHANNEL
	} opens_to;
	int open_error;       /* EIO by default */
	int list_error;       /* errno of ibv_get_device_list, which fails then; 0: none */
	uint32_t empty_lists; /* so many calls of ibv_get_device_list find no device from now on */
	int ah_error;         /* errno of ibv_create_ah with no_ahs; EHOSTUNREACH by default */
	bool no_error_state;  /* ibv_modify_qp refuses the transition to IBV_QPS_ERR */
	bool no_reset_state;  /* and that to IBV_QPS_RESET */
	int mr_error;         /* errno of ibv_reg_mr, which fails then; 0: none */
	int srq_error;        /* that ibv_modify_srq returns; 0: none */
	int srq_recv_error;   /* that ibv_post_srq_recv returns */
	int modify_error;     /* that ibv_modify_qp returns */
	int query_error;      /* that ibv_query_qp returns */
	int mcast_error;      /* that ibv_attach_mcast returns */
	bool poll_error;      /* ibv_poll_cq fails */
	uint32_t pds, mrs, cqs, srqs, qps, ahs; /* objects that exist */
	/* The double delays: this function waits for `go_on`, after it has posted `delayed`. */
	enum fake_hca_delay {
		FAKE_HCA_PROMPT,
		FAKE_HCA_REG_MR,
		FAKE_HCA_DEREG_MR,
		FAKE_HCA_ALLOC_PD,
		FAKE_HCA_DEALLOC_PD,
		FAKE_HCA_CREATE_AH,
		FAKE_HCA_DESTROY_AH,
		FAKE_HCA_DESTROY_CQ,
		FAKE_HCA_DESTROY_SRQ,
		FAKE_HCA_DESTROY_QP,
		FAKE_HCA_CREATE_CQ,
		FAKE_HCA_RESIZE_CQ,
		FAKE_HCA_CREATE_SRQ,
		FAKE_HCA_MODIFY_SRQ,
		FAKE_HCA_CREATE_QP,
		FAKE_HCA_MODIFY_QP,
		FAKE_HCA_QUERY_QP,
		FAKE_HCA_CHANGE_MCAST
	} delays;
	sem_t delayed, go_on;
	uint32_t closed;   /* calls of ibv_close_device */
	uint32_t modified; /* calls of ibv_modify_qp */
	/* Calls for queue pairs and address handles at which the thread could be cancelled. */
	uint32_t cancellable;
	uint32_t resized_to;
	uint32_t armed; /* calls of req_notify_cq */
	int arm_solicited;
	struct fake_qp *last_qp;
	struct ibv_ah_attr last_ah;
	/* Calls of ibv_create_ah, by the last byte of the destination's GID. */
	uint8_t ah_calls[256];
	struct ibv_mr last_mr;
	struct ibv_async_event event; /* that get_async_event returns once */
	bool has_event;
	struct ibv_cq *comp_event; /* that get_cq_event returns once */
	struct ibv_srq srq;
	uint32_t srq_limit; /* that ibv_modify_srq has set last */
	struct ibv_recv_wr srq_recvs[FAKE_WRS];
	uint32_t n_srq_recvs;
};
extern struct fake_hca fake_hca;

/* Resets the double, whose only device is "fake0" with one GID, fake_gid. */
void fake_hca_init(void);
extern const struct urxe_gid fake_gid;

/* Adds a completion to the CQ. */
void fake_hca_complete(struct ibv_cq *cq, const struct ibv_wc *wc);
/* Completes the oldest outstanding request of the queue pair. */
void fake_hca_complete_send(struct fake_qp *qp, enum ibv_wc_status status);
void fake_hca_complete_recv(struct fake_qp *qp, enum ibv_wc_status status, uint32_t bytes);

#endif
