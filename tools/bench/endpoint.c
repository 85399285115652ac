/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/endpoint.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netdev/netdev.h>

#define AWAKE_NS (100 * NS_PER_MS)

void endpoint_mac(const struct netdev *port, uint8_t mac[6])
{
	const uint32_t number = (uint32_t)getpid();

	if (netdev_mac(port, mac))
		return;
	memset(mac, 0, 6);
	mac[0] = 2;
	memcpy(mac + 2, &number, sizeof(number));
}

bool endpoint_quiet(uint64_t last_rx, uint64_t now)
{
	return now - last_rx > AWAKE_NS;
}

void endpoint_nap(void)
{
	const struct timespec nap = {.tv_nsec = ENDPOINT_NAP_NS};

	nanosleep(&nap, NULL);
}
