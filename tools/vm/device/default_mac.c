/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/default_mac.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a */
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t n)
{
	while (n--)
		hash = (hash ^ (uint8_t)*bytes++) * HASH_PRIME;
	return hash;
}

/* Adds the machine ID of this installation (machine-id(5)) to the hash, and returns the new hash.
 * Without a machine ID adds the host name. */
static uint64_t hash_machine(uint64_t hash)
{
	char text[256];
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	if (n > 0)
		return hash_bytes(hash, text, (size_t)n);
	text[sizeof(text) - 1] = '\0';
	return gethostname(text, sizeof(text) - 1) ? hash : hash_bytes(hash, text, strlen(text));
}

void default_mac(const char *path, uint8_t mac[6])
{
	char dir[PATH_MAX];
	uint64_t hash = hash_machine(HASH_START);

	if (*path != '/' && getcwd(dir, sizeof(dir)))
		hash = hash_bytes(hash_bytes(hash, dir, strlen(dir)), "/", 1);
	hash = hash_bytes(hash, path, strlen(path));
	/* Folds the hash: the last bytes of the path change few of its lower bits. */
	hash ^= hash >> 32;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)(hash >> 8 * i);
	mac[0] = (mac[0] & 0xfc) | 0x02;
}
