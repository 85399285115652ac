/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requests to the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "attach_socket.h"
#include "driver_private.h"
#include "shared.h"

/* Sends a request without descriptors. *message becomes the answer. */
static int exchange(struct vnic_driver *drv, union vnic_message *message, uint32_t len)
{
	struct vnic_passed none = {0};

	return drv->transport->ops->request(drv->transport, message, len, &none);
}

/* As exchange(), for any request but REG. Returns also the status of the answer. */
static int request(struct vnic_driver *drv, union vnic_message *message, uint32_t len)
{
	int ret = exchange(drv, message, len);

	return ret ? ret : message->answer.status;
}

/* As request(), for an answer with exactly `wanted` descriptors; -EPROTO: others came. */
static int request_fds(struct vnic_driver *drv, union vnic_message *message, uint32_t len,
		       uint32_t wanted, int fds[VNIC_INBOX_FDS])
{
	struct vnic_passed passed = {.wanted = wanted};
	int ret = drv->transport->ops->request(drv->transport, message, len, &passed);

	if (!ret)
		ret = message->answer.status;
	if (!ret && passed.wanted == wanted) {
		memcpy(fds, passed.fds, wanted * sizeof(fds[0]));
		return 0;
	}
	vnic_close_fds(passed.fds, passed.wanted);
	return ret ? ret : -EPROTO;
}

/* --- Registers of BAR1, which have effects or return answers. */

static int access_register(struct vnic_driver *drv, bool write, uint32_t offset, uint32_t *value)
{
	union vnic_message message = {.reg = {
					      .type = VNIC_ATTACH_REG,
					      .bar = 1,
					      .offset = offset,
					      .write = write,
					      .value = *value,
				      }};
	int ret = exchange(drv, &message, sizeof(message.reg));

	if (ret)
		return ret;
	*value = message.reg.value;
	return message.reg.status;
}

int vnic_driver_reg_write(struct vnic_driver *drv, uint32_t offset, uint32_t value)
{
	return access_register(drv, true, offset, &value);
}

int vnic_driver_reg_read(struct vnic_driver *drv, uint32_t offset, uint32_t *value)
{
	*value = 0;
	return access_register(drv, false, offset, value);
}

/* --- Next hops and queue pairs */

int vnic_driver_resolve(struct vnic_driver *drv, uint8_t sgid_index, const uint8_t dgid[16],
			struct vnic_next_hop *hop)
{
	union vnic_message message = {
		.resolve = {.type = VNIC_ATTACH_RESOLVE, .sgid_index = sgid_index}};
	int ret;

	memcpy(message.resolve.dgid, dgid, sizeof(message.resolve.dgid));
	ret = request(drv, &message, sizeof(message.resolve));
	if (!ret)
		*hop = message.resolve.hop;
	return ret;
}

static int send_remote(struct vnic_driver *drv, uint32_t type, uint32_t local_qpn,
		       const uint8_t dgid[16], uint32_t qpn)
{
	union vnic_message message = {.remote = {.type = type, .local_qpn = local_qpn, .qpn = qpn}};

	memcpy(message.remote.dgid, dgid, sizeof(message.remote.dgid));
	return request(drv, &message, sizeof(message.remote));
}

int vnic_driver_register(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
			 uint32_t qpn)
{
	return send_remote(drv, VNIC_ATTACH_REGISTER, local_qpn, dgid, qpn);
}

int vnic_driver_unregister(struct vnic_driver *drv, uint32_t local_qpn, const uint8_t dgid[16],
			   uint32_t qpn)
{
	return send_remote(drv, VNIC_ATTACH_UNREGISTER, local_qpn, dgid, qpn);
}

int vnic_driver_add_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags)
{
	union vnic_message message = {
		.qpn = {.type = VNIC_ATTACH_QPN_ADD, .qpn = qpn, .flags = flags}};

	return request(drv, &message, sizeof(message.qpn));
}

int vnic_driver_set_qpn(struct vnic_driver *drv, uint32_t qpn, uint32_t flags)
{
	const struct vnic_attach_qpn message = {
		.type = VNIC_ATTACH_QPN_SET, .qpn = qpn, .flags = flags};
	int rc = drv->transport->ops->post(drv->transport, &message, sizeof(message));

	drv->qpns_set += !rc;
	return rc;
}

bool vnic_driver_qpns_handled(const struct vnic_driver *drv)
{
	return vnic_acquire(vnic_reg(drv->transport->bar0, VNIC_REG_QPNS_HANDLED)) == drv->qpns_set;
}

int vnic_driver_remove_qpn(struct vnic_driver *drv, uint32_t qpn)
{
	union vnic_message message = {.qpn = {.type = VNIC_ATTACH_QPN_REMOVE, .qpn = qpn}};

	return request(drv, &message, sizeof(message.qpn));
}

int vnic_driver_query_qpn(struct vnic_driver *drv, const uint8_t dgid[16], uint32_t qpn)
{
	union vnic_message message = {.qpn = {.type = VNIC_ATTACH_QPN_QUERY, .qpn = qpn}};

	memcpy(message.qpn.dgid, dgid, sizeof(message.qpn.dgid));
	return request(drv, &message, sizeof(message.qpn));
}

bool vnic_driver_is_lease(uint32_t qpn_first)
{
	return qpn_first && qpn_first < 1u << 24 && qpn_first % VNIC_LEASE_QPNS == 0;
}

int vnic_driver_lease(struct vnic_driver *drv, uint32_t *qpn_first)
{
	const uint32_t demanded = *qpn_first;
	union vnic_message message = {.lease = {.type = VNIC_ATTACH_LEASE, .qpn_first = demanded}};
	int ret = request(drv, &message, sizeof(message.lease));

	if (!ret && (!vnic_driver_is_lease(message.lease.qpn_first) ||
		     (demanded && message.lease.qpn_first != demanded)))
		ret = -EPROTO;
	if (!ret)
		*qpn_first = message.lease.qpn_first;
	return ret;
}

/* --- The direct uplink */

int vnic_driver_uplink(struct vnic_driver *drv, struct vnic_attach_uplink *answer,
		       int fds[VNIC_UPLINK_SOCKETS])
{
	union vnic_message message = {.uplink = {.type = VNIC_ATTACH_UPLINK}};
	struct vnic_passed passed = {.wanted = VNIC_UPLINK_SOCKETS};
	int ret = drv->transport->ops->request(drv->transport, &message, sizeof(message.uplink),
					       &passed);

	if (!ret)
		ret = message.uplink.status;
	*answer = message.uplink;
	if (!ret && passed.wanted && passed.wanted == answer->sockets) {
		memcpy(fds, passed.fds, passed.wanted * sizeof(fds[0]));
		return (int)passed.wanted;
	}
	vnic_close_fds(passed.fds, passed.wanted);
	return ret < 0 ? ret : -EPROTO;
}

void vnic_driver_decline_uplink(struct vnic_driver *drv, int reason)
{
	union vnic_message message = {.uplink = {.type = VNIC_ATTACH_UPLINK, .status = reason}};

	(void)exchange(drv, &message, sizeof(message.uplink));
}

/* --- Inboxes */

static int request_inbox(struct vnic_driver *drv, bool exists, uint32_t wanted,
			 int fds[VNIC_INBOX_FDS])
{
	union vnic_message message = {.inbox = {.type = VNIC_ATTACH_INBOX, .exists = exists}};

	return request_fds(drv, &message, sizeof(message.inbox), wanted, fds);
}

int vnic_driver_make_inbox(struct vnic_driver *drv, uint16_t mtu, struct vnic_inbox **inbox)
{
	int fds[VNIC_INBOX_FDS];
	int ret = request_inbox(drv, false, VNIC_INBOX_FDS, fds);

	return ret ? ret : vnic_inbox_open(fds, mtu, inbox);
}

/* Sends the inbox to the checking process; returns the status that it answers. */
static int send_inbox(int checker, const struct vnic_inbox *inbox)
{
	union vnic_message message = {.inbox = {.type = VNIC_ATTACH_INBOX, .exists = 1}};
	uint32_t fd_count = 0;
	int fds[VNIC_INBOX_FDS], ret;

	vnic_inbox_fds(inbox, fds);
	ret = vnic_message_send(checker, &message, sizeof(message.inbox), fds, VNIC_INBOX_FDS);
	if (!ret)
		ret = vnic_message_recv(checker, &message, NULL, &fd_count);
	if (ret == (int)sizeof(message.inbox))
		return message.inbox.status;
	return ret < 0 ? ret : -ECONNRESET;
}

int vnic_driver_set_inbox(struct vnic_driver *drv, const struct vnic_inbox *inbox)
{
	struct vnic_transport *transport = drv->transport;
	int checker[VNIC_INBOX_FDS];
	int ret;

	vnic_driver_release_spare(transport);
	ret = request_inbox(drv, true, 1, checker);
	if (ret) {
		vnic_driver_keep_spare(transport);
		return ret;
	}
	ret = vnic_socket_limit_wait(checker[0], VNIC_ANSWER_SECONDS);
	if (!ret)
		ret = send_inbox(checker[0], inbox);
	/* Closes the socket and lets its number refer to the doorbell: the number stays in use. */
	transport->spare = dup3(transport->doorbell, checker[0], O_CLOEXEC);
	if (transport->spare < 0)
		vnic_close_fds(checker, 1);
	return ret;
}

int vnic_driver_introduce(struct vnic_driver *drv, const uint8_t mac[6], uint32_t qpn,
			  int fds[VNIC_INBOX_FDS])
{
	union vnic_message message = {.introduce = {.type = VNIC_ATTACH_INTRODUCE, .qpn = qpn}};

	memcpy(message.introduce.mac, mac, sizeof(message.introduce.mac));
	return request_fds(drv, &message, sizeof(message.introduce), VNIC_INBOX_FDS, fds);
}
