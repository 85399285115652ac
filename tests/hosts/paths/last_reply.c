/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server that replies to each message at once, and ends in some way when it has received the last
 * one, without another verbs call; and a client, all of whose SENDs must complete with success.
 *
 * last_reply -g GID_INDEX -s SOCKET -e close|exit|kill|exec|rest     the server
 * last_reply -g GID_INDEX -s SOCKET                            the client
 *
 * Both sides exchange addresses over a UNIX socket.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device.h"

#define MESSAGES 200
#define SIZE     2
#define TIMEOUT  14 /* 4.096 us * 2^14, 67 ms */
#define RETRIES  4
#define REST     2 /* seconds */

struct introduction {
	union ibv_gid gid;
	uint32_t qpn;
};

static struct {
	uint8_t gid_index;
	const char *socket;
	const char *end; /* NULL: the client */
} options;

static struct device dev;
static struct ibv_qp *qp;

/* --- The connection */

static int meet(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), peer;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", options.socket);
	if (fd < 0)
		err(1, "socket");
	if (!options.end) {
		while (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			usleep(10000);
		return fd;
	}
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
		err(1, "%s", options.socket);
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		err(1, "accept");
	return peer;
}

static void make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = dev.cq,
		.recv_cq = dev.cq,
		.cap = {MESSAGES, MESSAGES, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	qp = ibv_create_qp(dev.pd, &init);
	if (!qp)
		err(1, "ibv_create_qp");
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		errx(1, "INIT");
}

static void connect_qp(const struct introduction *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = dev.mtu,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.grh = {.dgid = peer->gid,
				    .sgid_index = options.gid_index,
				    .hop_limit = 64},
			    .is_global = 1,
			    .port_num = 1},
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		errx(1, "RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = TIMEOUT,
				    .retry_cnt = RETRIES,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		errx(1, "RTS");
}

static void exchange(int fd)
{
	struct introduction own = {.gid = dev.gid, .qpn = qp->qp_num}, peer;

	if (write(fd, &own, sizeof(own)) != sizeof(own) ||
	    read(fd, &peer, sizeof(peer)) != sizeof(peer))
		err(1, "%s", options.socket);
	connect_qp(&peer);
	/* Both are ready now. */
	if (write(fd, "", 1) != 1 || read(fd, &peer, 1) != 1)
		err(1, "%s", options.socket);
}

/* --- Messages */

static void post_receives(void)
{
	struct ibv_sge sge = {(uintptr_t)dev.memory, SIZE, dev.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (int i = 0; i < MESSAGES; i++)
		if (ibv_post_recv(qp, &wr, &bad))
			errx(1, "ibv_post_recv");
}

static void send_message(void)
{
	struct ibv_sge sge = {(uintptr_t)dev.memory + SIZE, SIZE, dev.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (ibv_post_send(qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

/* Polls until so many sends and receives have completed altogether. */
static void await(int sends, int receives)
{
	static int sent, received;
	struct ibv_wc wc;

	while (sent < sends || received < receives) {
		int n = ibv_poll_cq(dev.cq, 1, &wc);

		if (n < 0)
			errx(1, "ibv_poll_cq");
		if (!n)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			errx(1, "message %d: %s", wc.opcode == IBV_WC_RECV ? received : sent,
			     ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV)
			received++;
		else
			sent++;
	}
}

/* How the server ends. To rest is no end: the process lives, and makes no verbs call. */
static void end(void)
{
	if (!strcmp(options.end, "close")) {
		if (ibv_destroy_qp(qp))
			errx(1, "ibv_destroy_qp");
		device_close(&dev);
	}
	if (!strcmp(options.end, "kill"))
		raise(SIGKILL);
	if (!strcmp(options.end, "exec"))
		execlp("true", "true", NULL);
	if (!strcmp(options.end, "rest"))
		sleep(REST);
	_exit(0);
}

static void serve(void)
{
	for (int i = 1; i < MESSAGES; i++) {
		await(0, i);
		send_message();
	}
	await(0, MESSAGES);
	end();
}

static void request(void)
{
	for (int i = 1; i < MESSAGES; i++) {
		send_message();
		await(0, i);
	}
	send_message();
	await(MESSAGES, MESSAGES - 1);
}

static void usage(void)
{
	fputs("usage: last_reply -g GID_INDEX -s SOCKET [-e close|exit|kill|exec|rest]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "g:s:e:")) != -1;) {
		switch (c) {
		case 'g': options.gid_index = (uint8_t)atoi(optarg); break;
		case 's': options.socket = optarg; break;
		case 'e': options.end = optarg; break;
		default: usage();
		}
	}
	if (!options.socket || optind < argc)
		usage();
	device_open(&dev, options.gid_index, 4096, 2 * MESSAGES);
	make_qp();
	post_receives();
	exchange(meet());
	if (options.end)
		serve();
	request();
	return 0;
}
