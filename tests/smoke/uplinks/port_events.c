/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints each asynchronous event of a device, and the port's state after it:
 *
 *   EVENT state=ACTIVE mtu=1024 gids=1:::ffff:192.0.2.1,17:...
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>

#include <infiniband/verbs.h>

static void print_port(struct ibv_context *context, const char *event)
{
	struct ibv_port_attr port;
	char text[INET6_ADDRSTRLEN], *comma = "";
	union ibv_gid gid;
	int i;

	if (ibv_query_port(context, 1, &port))
		errx(1, "cannot query the port");
	printf("%s state=%s mtu=%d gids=", event, port.state == IBV_PORT_ACTIVE ? "ACTIVE" : "DOWN",
	       128 << port.active_mtu);
	for (i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(context, 1, i, &gid) || !gid.global.interface_id)
			continue;
		inet_ntop(AF_INET6, &gid, text, sizeof(text));
		printf("%s%d:%s", comma, i, text);
		comma = ",";
	}
	printf("\n");
	fflush(stdout);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_async_event event;

	if (!context)
		errx(1, "no device");
	print_port(context, "START");
	while (!ibv_get_async_event(context, &event)) {
		if (event.element.port_num != 1)
			errx(1, "an event of port %d", event.element.port_num);
		switch (event.event_type) {
		case IBV_EVENT_GID_CHANGE: print_port(context, "GID_CHANGE"); break;
		case IBV_EVENT_PORT_ACTIVE: print_port(context, "PORT_ACTIVE"); break;
		case IBV_EVENT_PORT_ERR: print_port(context, "PORT_ERR"); break;
		default: print_port(context, ibv_event_type_str(event.event_type));
		}
		ibv_ack_async_event(&event);
	}
	return 1;
}
