/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's side of the attachment, played by tests. */
#ifndef URXE_TEST_DAEMON_H
#define URXE_TEST_DAEMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/regs.h>
#include <vnic/server.h>

#define MTU      1500
#define PATIENCE 60000 /* ms */

static const uint8_t daemon_mac[6] = {2, 0xca, 0xfe, 0, 0, 1};

struct daemon {
	char run_dir[32];
	int listen_fd;
	struct vnic_server_client *client;
	int refuse; /* what welcome answers */
	struct vnic_attach_hello hello;
	uint32_t resolves;
	int asker; /* the GID index of the last RESOLVE that note_asker received */
	uint32_t registered;
	uint32_t lease; /* the block that the next LEASE gets */
	uint32_t sets;  /* messages QPN_SET so far */
	uint32_t flags; /* of the last one */
	pid_t child;
};

static inline int set_up(void **state)
{
	struct daemon *d = calloc(1, sizeof(*d));

	strcpy(d->run_dir, "/tmp/test-vnic-XXXXXX");
	if (!mkdtemp(d->run_dir))
		return -1;
	d->listen_fd = vnic_server_listen(d->run_dir);
	*state = d;
	return d->listen_fd < 0 ? -1 : 0;
}

static inline int tear_down(void **state)
{
	struct daemon *d = *state;
	char path[64];

	if (d->child > 0) {
		kill(d->child, SIGKILL);
		waitpid(d->child, NULL, 0);
	}
	if (d->client)
		close(vnic_server_close(d->client));
	close(d->listen_fd);
	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, d->run_dir);
	unlink(path);
	rmdir(d->run_dir);
	free(d);
	return 0;
}

static inline int welcome(void *ctx, struct vnic_server_client *client,
			  const struct vnic_attach_hello *hello, struct vnic_attach_welcome *w)
{
	struct daemon *d = ctx;

	assert_ptr_equal(client, d->client);
	d->hello = *hello;
	memcpy(w->mac, daemon_mac, sizeof(w->mac));
	w->mtu = MTU;
	w->port.link_mtu = MTU;
	w->qpn_first = 4096;
	w->qpn_count = 4096;
	w->leases = 1;
	return d->refuse;
}

/* An address whose first byte is 0 resolves; its last byte becomes the MAC's. */
static inline void resolve(void *ctx, struct vnic_server_client *client,
			   const struct vnic_attach_resolve *request)
{
	const struct vnic_next_hop hop = {
		.mac = {2, 0, 0, 0, request->sgid_index, request->dgid[15]}, .hop_limit = 9};
	struct daemon *d = ctx;

	d->resolves++;
	if (request->dgid[0])
		assert_int_equal(vnic_server_resolved(client, -EHOSTUNREACH, NULL), 0);
	else
		assert_int_equal(vnic_server_resolved(client, 0, &hop), 0);
}

/* A process may register the remote QP 0x123 of its QP 0x1005, and no other. */
static inline int remote(void *ctx, struct vnic_server_client *client,
			 const struct vnic_attach_remote *request)
{
	struct daemon *d = ctx;

	(void)client;
	assert_int_equal(request->dgid[15], 7);
	assert_int_equal(request->local_qpn, 0x1005);
	if (request->qpn != 0x123)
		return -ENOSPC;
	if (request->type == VNIC_ATTACH_UNREGISTER)
		return d->registered-- ? 0 : -ENOENT;
	d->registered++;
	return 0;
}

/* The next block is d->lease, whatever its number. */
static inline int lease(void *ctx, struct vnic_server_client *client, uint32_t *qpn)
{
	const struct daemon *d = ctx;

	(void)client;
	*qpn = d->lease;
	return d->lease ? 0 : -ENOSPC;
}

/* A process may add the QPN 0x456 as local, and finds the peer 0x789 with the GID 7. */
static inline int qpn(void *ctx, struct vnic_server_client *client,
		      const struct vnic_attach_qpn *request)
{
	struct daemon *d = ctx;

	(void)client;
	switch (request->type) {
	case VNIC_ATTACH_QPN_SET:
		d->sets++;
		d->flags = request->flags;
		return 0;
	case VNIC_ATTACH_QPN_ADD:
		return request->qpn == 0x456 && request->flags == VNIC_QPN_REACHABLE ? 0 : -EEXIST;
	case VNIC_ATTACH_QPN_REMOVE: return request->qpn == 0x456 ? 0 : -ENOENT;
	default: return request->qpn == 0x789 && request->dgid[15] == 7 ? 0 : -ENOENT;
	}
}

static const struct vnic_server_ops ops = {
	.welcome = welcome, .resolve = resolve, .remote = remote, .lease = lease, .qpn = qpn};

static inline bool readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&pfd, 1, ms);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static inline void accept_client(struct daemon *d)
{
	int fd;

	assert_true(readable(d->listen_fd, PATIENCE));
	fd = accept4(d->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(vnic_server_open(fd, &d->client), 0);
}

/* A test between set_up and tear_down. */
#define DAEMON_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
