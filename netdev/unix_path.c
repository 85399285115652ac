/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "unix_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error_text.h"

int unix_path_set(struct sockaddr_un *address, const char *path, size_t length)
{
	char directory[sizeof(address->sun_path)] = "";
	int printed;

	if (!length)
		return -EINVAL;
	if (*path != '/' && !getcwd(directory, sizeof(directory)))
		return -ENAMETOOLONG;
	address->sun_family = AF_UNIX;
	printed = snprintf(address->sun_path, sizeof(address->sun_path), "%s%s%.*s", directory,
			   *path == '/' ? "" : "/", (int)length, path);
	return printed < 0 || (size_t)printed >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}

/* Whether somebody serves a socket that is there; only the kernel knows. */
static bool is_served(const struct sockaddr_un *address, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served;

	if (fd < 0)
		return true;
	served = !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
		 errno != ECONNREFUSED;
	close(fd);
	return served;
}

int unix_path_clear(const struct sockaddr_un *address, int type, char *why, uint32_t why_size)
{
	struct stat file;

	if (lstat(address->sun_path, &file))
		return errno == ENOENT ? 0 : netdev_why(why, why_size, -errno, "%m");
	if (!S_ISSOCK(file.st_mode))
		return netdev_why(why, why_size, -EEXIST, "there is a file, and it is no socket");
	if (is_served(address, type))
		return netdev_why(why, why_size, -EADDRINUSE, "somebody serves it already");
	return unlink(address->sun_path) ? netdev_why(why, why_size, -errno, "%m") : 0;
}
