/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Any bytes as a capture file. No frame may lie outside of the file. */
#include <netdev/netdev.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct netdev *port, size_t size)
{
	struct netdev_frame frame;
	size_t total = 0;
	uint8_t sum = 0;

	while (netdev_rx(port, 0, &frame, 1)) {
		for (uint32_t i = 0; i < frame.len; i++)
			sum ^= frame.data[i];
		total += frame.len;
		if (frame.wire_len < frame.len)
			abort();
	}
	__asm__ volatile("" : : "r"(sum));
	if (total > size || !netdev_pcap_status(port))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct netdev *port;
	char path[32], why[256];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!netdev_pcap_open(path, &port, why, sizeof(why))) {
		read_all(port, size);
		netdev_close(port);
	}
	close(fd);
	return 0;
}
