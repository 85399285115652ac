/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/link_speed.h"

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#define SPEED_DEFAULT SPEED_1000

/* Settings and the three masks behind them, each of link_mode_masks_nwords words. */
union link_settings {
	struct ethtool_link_settings head;
	uint32_t room[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) + 3 * SCHAR_MAX];
};

static bool get_settings(int socket, const char *ifname, int words, union link_settings *s)
{
	struct ifreq request = {.ifr_data = (char *)s};

	*s = (union link_settings){
		.head = {.cmd = ETHTOOL_GLINKSETTINGS, .link_mode_masks_nwords = (int8_t)words}};
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	return !ioctl(socket, SIOCETHTOOL, &request);
}

/* Asks twice, because the kernel answers a request with the wrong number of mask words by the right
 * number, negated. */
uint32_t link_speed_mbps(int socket, const char *ifname)
{
	union link_settings s;

	if (!get_settings(socket, ifname, 0, &s) || s.head.link_mode_masks_nwords >= 0 ||
	    !get_settings(socket, ifname, -s.head.link_mode_masks_nwords, &s))
		return SPEED_DEFAULT;
	return s.head.speed == (uint32_t)SPEED_UNKNOWN ? SPEED_DEFAULT : s.head.speed;
}
