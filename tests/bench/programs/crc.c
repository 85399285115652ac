/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * crc isal|zlib|kernel SIZE TIMES computes a CRC-32 of SIZE bytes, TIMES times: by ISA-L or zlib,
 * as urxe's ICRC, or by the kernel's "crc32", as rdma_rxe's, over an AF_ALG socket, which copies
 * nothing. The caller measures the time.
 */
#include <err.h>
#include <isa-l/crc.h>
#include <linux/if_alg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define SIZE_MAX_ONCE 65536 /* maximum bytes of one request to the kernel */

static uint8_t data[SIZE_MAX_ONCE];
static int operation; /* AF_ALG socket */

static void by_isal(size_t size)
{
	volatile uint32_t crc = crc32_gzip_refl(0, data, size);

	(void)crc;
}

static void by_zlib(size_t size)
{
	volatile uLong crc = crc32_z(0, data, size);

	(void)crc;
}

static void open_kernel(void)
{
	const struct sockaddr_alg address = {
		.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "crc32"};
	int transform = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (transform < 0 || bind(transform, (const struct sockaddr *)&address, sizeof(address)))
		err(1, "the kernel's crc32");
	operation = accept(transform, NULL, NULL);
	if (operation < 0)
		err(1, "the kernel's crc32");
	close(transform);
}

static void by_kernel(size_t size)
{
	uint32_t crc;

	if (send(operation, data, size, 0) != (ssize_t)size ||
	    read(operation, &crc, sizeof(crc)) != sizeof(crc))
		err(1, "the kernel's crc32");
}

static const struct library {
	const char *name;
	void (*by)(size_t size);
} libraries[] = {{"isal", by_isal}, {"zlib", by_zlib}, {"kernel", by_kernel}};

#define N_LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static const struct library *find(const char *name)
{
	for (size_t i = 0; i < N_LIBRARIES; i++)
		if (!strcmp(libraries[i].name, name))
			return &libraries[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct library *library = argc == 4 ? find(argv[1]) : NULL;
	size_t size = library ? strtoul(argv[2], NULL, 10) : 0;

	if (!size || size > SIZE_MAX_ONCE)
		errx(2, "usage: crc isal|zlib|kernel SIZE TIMES, of up to %d bytes", SIZE_MAX_ONCE);
	memset(data, 0x5a, sizeof(data));
	if (library->by == by_kernel)
		open_kernel();
	for (unsigned long times = strtoul(argv[3], NULL, 10); times; times--)
		library->by(size);
	return 0;
}
