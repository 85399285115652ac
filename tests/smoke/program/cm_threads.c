/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 16 threads connect by rdma_cm and disconnect, again and again; 16 threads accept on one listener.
 * Each connection carries one message, whose contents are checked.
 */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define THREADS 16 /* that connect, and as many that accept */
#define ROUNDS  4
#define PORT    "7471"

struct message {
	uint32_t thread, round;
};

static struct rdma_cm_id *listener;
static atomic_uint sum; /* of all messages received */

static struct ibv_qp_init_attr qp_attributes(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}};
}

static struct rdma_cm_id *create_endpoint(int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr init = qp_attributes();
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo("127.0.0.1", PORT, &hints, &found) ||
	    rdma_create_ep(&id, found, NULL, &init))
		err(1, "cannot make an end point");
	rdma_freeaddrinfo(found);
	return id;
}

static void check_completion(int n, const struct ibv_wc *wc)
{
	if (n != 1 || wc->status != IBV_WC_SUCCESS)
		errx(1, "completion: %s", n == 1 ? ibv_wc_status_str(wc->status) : "none");
}

static void accept_one(void)
{
	struct message message;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_get_request(listener, &id))
		err(1, "rdma_get_request");
	mr = rdma_reg_msgs(id, &message, sizeof(message));
	if (!mr || rdma_post_recv(id, NULL, &message, sizeof(message), mr) || rdma_accept(id, NULL))
		err(1, "cannot accept");
	check_completion(rdma_get_recv_comp(id, &wc), &wc);
	sum += message.thread * ROUNDS + message.round;
	/* The connecting thread disconnects at the same time, so either call may be the first. */
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

static void connect_once(struct message message)
{
	struct rdma_cm_id *id = create_endpoint(0);
	struct ibv_mr *mr = rdma_reg_msgs(id, &message, sizeof(message));
	struct ibv_wc wc;

	if (!mr || rdma_connect(id, NULL) ||
	    rdma_post_send(id, NULL, &message, sizeof(message), mr, 0))
		err(1, "cannot connect");
	check_completion(rdma_get_send_comp(id, &wc), &wc);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

static void *accept_all(void *unused)
{
	for (int round = 0; round < ROUNDS; round++)
		accept_one();
	return unused;
}

static void *connect_all(void *argument)
{
	struct message message = {.thread = (uint32_t)(uintptr_t)argument};

	for (; message.round < ROUNDS; message.round++)
		connect_once(message);
	return NULL;
}

int main(void)
{
	const unsigned int all = THREADS * ROUNDS;
	pthread_t threads[2 * THREADS];

	listener = create_endpoint(RAI_PASSIVE);
	if (rdma_listen(listener, THREADS))
		err(1, "rdma_listen");
	for (uintptr_t i = 0; i < 2 * THREADS; i++)
		if (pthread_create(&threads[i], NULL, i < THREADS ? connect_all : accept_all,
				   (void *)i))
			errx(1, "pthread_create");
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	if (sum != all * (all - 1) / 2)
		errx(1, "the messages that came add up to %u", sum);
	rdma_destroy_ep(listener);
	return 0;
}
