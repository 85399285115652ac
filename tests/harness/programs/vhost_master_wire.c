/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vhost_master.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define VERSION 1u
/* VIRTIO_F_VERSION_1 and VHOST_USER_F_PROTOCOL_FEATURES */
#define FEATURES (1ull << 32 | 1ull << 30)

struct header {
	uint32_t request, flags, size;
} __attribute__((packed));

int master_open(struct master *m, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval second = {.tv_sec = 1};

	*m = (struct master){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .memory = -1};
	for (int i = 0; i < MASTER_QUEUES; i++)
		m->kick[i] = m->call[i] = -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (m->fd < 0 || connect(m->fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	/* A process that no longer reads must not stop the test. */
	setsockopt(m->fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	m->memory = memfd_create("guest", MFD_CLOEXEC);
	if (m->memory < 0 || ftruncate(m->memory, MASTER_MEMORY))
		return -1;
	m->queues = mmap(NULL, MASTER_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, m->memory, 0);
	return m->queues == MAP_FAILED ? -1 : 0;
}

void master_close(struct master *m)
{
	close(m->fd);
	close(m->memory);
	for (int i = 0; i < MASTER_QUEUES; i++) {
		close(m->kick[i]);
		close(m->call[i]);
	}
	if (m->queues && m->queues != MAP_FAILED)
		munmap(m->queues, MASTER_MEMORY);
}

int master_send_raw(struct master *m, uint32_t request, uint32_t size, const void *payload,
		    size_t sent, const int *fds, int n_fds)
{
	struct header header = {request, VERSION, size};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)payload, sent}};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * MASTER_FDS)];
	} control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = sent ? 2 : 1};

	if (n_fds) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
	}
	return sendmsg(m->fd, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int master_send(struct master *m, uint32_t request, const void *payload, size_t size,
		const int *fds, int n_fds)
{
	return master_send_raw(m, request, (uint32_t)size, payload, size, fds, n_fds);
}

int master_receive(struct master *m, uint64_t *value)
{
	struct pollfd fd = {m->fd, POLLIN, 0};
	struct {
		struct header header;
		uint64_t value;
	} __attribute__((packed)) answer;

	if (poll(&fd, 1, 1000) != 1 ||
	    recv(m->fd, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer))
		return -1;
	*value = answer.value;
	return 0;
}

int master_negotiate(struct master *m)
{
	uint64_t features;

	if (master_send(m, VHOST_SET_OWNER, NULL, 0, NULL, 0) ||
	    master_send(m, VHOST_GET_FEATURES, NULL, 0, NULL, 0) || master_receive(m, &features))
		return -1;
	features &= FEATURES;
	return master_send(m, VHOST_SET_FEATURES, &features, sizeof(features), NULL, 0);
}

int master_send_table(struct master *m, uint64_t size, uint64_t mmap_offset, int memory)
{
	struct {
		uint32_t n, padding;
		uint64_t guest, size, user, mmap_offset;
	} table = {1, 0, MASTER_GPA, size, (uintptr_t)m->queues, mmap_offset};

	return master_send(m, VHOST_SET_MEM_TABLE, &table, sizeof(table), &memory, 1);
}

static int send_state(struct master *m, uint32_t request, uint32_t index, uint32_t number)
{
	uint32_t state[2] = {index, number};

	return master_send(m, request, state, sizeof(state), NULL, 0);
}

static int send_event(struct master *m, uint32_t request, uint32_t index, int fd)
{
	uint64_t value = index;

	return master_send(m, request, &value, sizeof(value), &fd, 1);
}

int master_send_addresses(struct master *m, uint32_t index, uint64_t desc, uint64_t used,
			  uint64_t avail)
{
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addresses = {index, 0, desc, used, avail, 0};

	return master_send(m, VHOST_SET_VRING_ADDR, &addresses, sizeof(addresses), NULL, 0);
}

int master_start_queue(struct master *m, uint32_t index)
{
	struct master_queue *q = &m->queues[index];

	if (m->kick[index] < 0)
		m->kick[index] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->call[index] < 0)
		m->call[index] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (send_state(m, VHOST_SET_VRING_NUM, index, MASTER_SIZE) ||
	    send_state(m, VHOST_SET_VRING_BASE, index, 0) ||
	    master_send_addresses(m, index, (uintptr_t)q->desc, (uintptr_t)&q->used,
				  (uintptr_t)&q->avail) ||
	    send_event(m, VHOST_SET_VRING_CALL, index, m->call[index]) ||
	    send_event(m, VHOST_SET_VRING_KICK, index, m->kick[index]))
		return -1;
	return send_state(m, VHOST_SET_VRING_ENABLE, index, 1);
}

int master_start(struct master *m)
{
	int err = master_negotiate(m) ?: master_send_table(m, MASTER_MEMORY, 0, m->memory);

	for (uint32_t i = 0; i < MASTER_QUEUES && !err; i++)
		err = master_start_queue(m, i);
	return err;
}
