/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's notices. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "driver_private.h"

void vnic_driver_init_notices(struct vnic_driver *drv)
{
	drv->record_fd = -1;
	memset(drv->introduced_fds, -1, sizeof(drv->introduced_fds));
}

/* Closes descriptors of the driver. A child that a signal handler forks meanwhile does not close
 * them, because the numbers may be those of other files by then. */
static void close_fds(int *fds, uint32_t n)
{
	int closing[VNIC_INBOX_FDS];

	memcpy(closing, fds, n * sizeof(*fds));
	memset(fds, -1, n * sizeof(*fds));
	atomic_signal_fence(memory_order_seq_cst);
	vnic_close_fds(closing, n);
}

void vnic_driver_close_notices(struct vnic_driver *drv)
{
	close_fds(&drv->record_fd, 1);
	close_fds(drv->introduced_fds, VNIC_INBOX_FDS);
}

bool vnic_driver_port_valid(uint16_t mtu, const struct vnic_attach_port *port)
{
	return port->link_mtu >= VMXNET3_MIN_MTU && port->link_mtu <= mtu &&
	       memchr(port->hca.name, '\0', sizeof(port->hca.name)) &&
	       !port->hca.name[0] == !port->hca.port;
}

static bool is_port(const struct vnic_driver *drv, const union vnic_message *message, int len)
{
	return len == (int)sizeof(message->notice) && message->type == VNIC_NOTICE_PORT &&
	       vnic_driver_port_valid(drv->mtu, &message->notice.port);
}

static bool is_question(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->question) && message->type == VNIC_NOTICE_STATE_QUERY &&
	       fd_count == 1;
}

static bool is_introduction(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->introduction) && message->type == VNIC_NOTICE_INBOX &&
	       fd_count == VNIC_INBOX_FDS;
}

static bool is_record(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->record) && message->type == VNIC_NOTICE_RECORD &&
	       fd_count == !!message->record.on;
}

static void store_record(struct vnic_driver *drv, int fd)
{
	close_fds(&drv->record_fd, 1);
	drv->record_fd = fd;
	drv->record_asked = true;
}

bool vnic_driver_record(struct vnic_driver *drv, int *ring)
{
	if (!drv->record_asked)
		return false;
	*ring = drv->record_fd;
	drv->record_fd = -1;
	drv->record_asked = false;
	return true;
}

static void store_introduction(struct vnic_driver *drv, uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	close_fds(drv->introduced_fds, VNIC_INBOX_FDS);
	drv->introduced_qpn = qpn;
	memcpy(drv->introduced_fds, fds, sizeof(drv->introduced_fds));
}

bool vnic_driver_introduction(struct vnic_driver *drv, uint32_t *qpn, int fds[VNIC_INBOX_FDS])
{
	if (drv->introduced_fds[0] < 0)
		return false;
	*qpn = drv->introduced_qpn;
	memcpy(fds, drv->introduced_fds, sizeof(drv->introduced_fds));
	memset(drv->introduced_fds, -1, sizeof(drv->introduced_fds));
	return true;
}

/*
 * Reads notices until none is left, or up to a question, an introduction or a request to record.
 * True: *port is new. Of several states of the port the last one counts; malformed messages are
 * skipped.
 */
bool vnic_driver_notice(struct vnic_driver *drv, struct vnic_attach_port *port, int *question)
{
	union vnic_message message;
	bool found = false;
	int len;

	*question = -1;
	do {
		uint32_t fd_count = VNIC_INBOX_FDS;
		int fds[VNIC_INBOX_FDS];

		len = vnic_message_recv(drv->transport->notice_fd, &message, fds, &fd_count);
		if (is_question(&message, len, fd_count)) {
			*question = fds[0];
			return found;
		}
		if (is_introduction(&message, len, fd_count)) {
			store_introduction(drv, message.introduction.qpn, fds);
			return found;
		}
		if (is_record(&message, len, fd_count)) {
			store_record(drv, fd_count ? fds[0] : -1);
			return found;
		}
		vnic_close_fds(fds, fd_count);
		if (is_port(drv, &message, len)) {
			*port = message.notice.port;
			found = true;
		}
	} while (len > 0 || len == -EPROTO || len == -EMFILE);
	/*
	 * The daemon has closed its end, and the socket would stay readable for ever; the control
	 * socket reports the daemon's end.
	 */
	if (len != -EAGAIN)
		drv->transport->notice_fd = -1;
	return found;
}
