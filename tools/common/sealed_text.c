/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/sealed_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

static int write_and_seal(int fd, const char *text, size_t len)
{
	ssize_t n;

	for (; len; text += n, len -= (size_t)n) {
		n = write(fd, text, len);
		if (n < 0)
			return -errno;
	}
	return fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) ? -errno : 0;
}

int sealed_text_make(const char *text, size_t len)
{
	int fd = memfd_create("urxe-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	if (fd < 0)
		return -errno;
	rc = write_and_seal(fd, text, len);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int read_text(int fd, char *text, size_t len)
{
	size_t done = 0;
	ssize_t n;

	for (; done < len; done += (size_t)n) {
		n = pread(fd, text + done, len - done, (off_t)done);
		if (n <= 0)
			return -EIO;
	}
	text[len] = '\0';
	return 0;
}

int sealed_text_read(int fd, uint64_t most, char **text, size_t *len)
{
	/* Only a memfd has seals. fcntl comes first, because on other files the later calls could
	 * block. */
	int seals = fcntl(fd, F_GET_SEALS), rc;
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st))
		return -EPERM;
	if ((uint64_t)st.st_size > most || (uint64_t)st.st_size > SEALED_TEXT_MAX)
		return -EFBIG;
	*len = (size_t)st.st_size;
	*text = malloc(*len + 1);
	if (!*text)
		return -ENOMEM;
	rc = read_text(fd, *text, *len);
	if (rc)
		free(*text);
	return rc;
}
