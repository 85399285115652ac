/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The socket filter of a packet port. */
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <netdev/packet_port.h>

#include "packet/qpn_filter.h"

static int set_filter(int fd, const uint16_t *blocks, uint32_t n, struct sock_filter *all)
{
	static const struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {.filter = all};
	uint32_t length =
		n > PACKET_PORT_QPN_BLOCKS_MAX
			? 0
			: qpn_filter_write(all, BPF_MAXINSNS - 1, blocks, n, QPN_FILTER_PASS);

	if (!length)
		return -E2BIG;
	all[length++] = drop;
	program.len = (uint16_t)length;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

/* Allocates the filter's instructions, because the calling thread may have a small stack. */
int packet_port_accept(int fd, const uint16_t *blocks, uint32_t n)
{
	struct sock_filter *all = malloc(BPF_MAXINSNS * sizeof(*all));
	int rc = all ? set_filter(fd, blocks, n, all) : -ENOMEM;

	free(all);
	return rc;
}
