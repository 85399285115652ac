/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "unix_path.h"

#include <errno.h>
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

/* Only connect(2) tells whether a process still has the socket. */
bool unix_path_is_abandoned(const struct sockaddr_un *address, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool abandoned;

	if (fd < 0)
		return false;
	abandoned = connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		    (errno == ECONNREFUSED || errno == ENOENT);
	close(fd);
	return abandoned;
}

int unix_path_clear(const struct sockaddr_un *address, int type, char *error, uint32_t error_size)
{
	struct stat file;

	if (lstat(address->sun_path, &file))
		return errno == ENOENT ? 0 : error_text_set(error, error_size, -errno, "%m");
	if (!S_ISSOCK(file.st_mode))
		return error_text_set(error, error_size, -EEXIST,
				      "the path is a file, not a socket");
	if (!unix_path_is_abandoned(address, type))
		return error_text_set(error, error_size, -EADDRINUSE,
				      "the socket is in use already");
	return unlink(address->sun_path) && errno != ENOENT
		       ? error_text_set(error, error_size, -errno, "%m")
		       : 0;
}
