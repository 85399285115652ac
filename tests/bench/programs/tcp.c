/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tcp CPU CPU SIZE ADDRESS NETNS: TCP with both ends polling, between this network namespace, which
 * has ADDRESS, and namespace NETNS. Prints the seconds of a message, one way.
 */
#include "limits/tcp_latency.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct bench_cpus cpus;
	struct in_addr address;

	if (argc != 6 || !inet_aton(argv[4], &address))
		errx(2, "usage: tcp CPU CPU SIZE ADDRESS NETNS");
	cpus = (struct bench_cpus){.own = atoi(argv[1]), .other = atoi(argv[2])};
	bench_pin(cpus.own);
	printf("%.9g\n", tcp_latency(&cpus, strtoul(argv[3], NULL, 10), address, argv[5]));
	return 0;
}
