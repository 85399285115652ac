/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "version.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vnic/guest_memory.h>

#include "protocol.h"

/* Whether the JSON text has the member "write_multiple": true. The client has written the text: a
 * member of that name in another place has the same effect, but on this client only. */
static bool offers_write_multiple(const char *text)
{
	static const char name[] = "\"write_multiple\"";
	const char *at = strstr(text, name);

	if (!at)
		return false;
	at += strlen(name);
	at += strspn(at, " \t\r\n");
	if (*at++ != ':')
		return false;
	at += strspn(at, " \t\r\n");
	return !strncmp(at, "true", 4);
}

int version_answer(const uint8_t *body, uint32_t size, uint8_t *reply, uint32_t room)
{
	struct vfio_user_version version;
	const char *text = (const char *)body + sizeof(version);
	int n;

	if (size < sizeof(version))
		return -EINVAL;
	memcpy(&version, body, sizeof(version));
	size -= (uint32_t)sizeof(version);
	/* The text ends with its NUL, or is missing. */
	if (size && text[size - 1])
		return -EINVAL;
	if (version.major)
		return -ENOTSUP;
	version.minor = 0;
	memcpy(reply, &version, sizeof(version));
	n = snprintf((char *)reply + sizeof(version), room - sizeof(version),
		     "{\"capabilities\":{\"max_msg_fds\":%u,\"max_data_xfer_size\":%u,"
		     "\"max_dma_maps\":%u,\"pgsizes\":%ld%s}}",
		     VFIO_USER_FDS, VFIO_USER_DATA_MAX, VNIC_GUEST_REGIONS, sysconf(_SC_PAGESIZE),
		     size && offers_write_multiple(text) ? ",\"write_multiple\":true" : "");
	return (int)sizeof(version) + n + 1;
}
