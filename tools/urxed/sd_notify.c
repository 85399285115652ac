/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/sd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void sd_notify_ready(void)
{
	static const char ready[] = "READY=1";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	/* In NOTIFY_SOCKET, '@' stands for the NUL with which an abstract address begins. */
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* The daemon works without a service manager, too, so it ignores errors. */
	sendto(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL | MSG_DONTWAIT,
	       (const struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}
