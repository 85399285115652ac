/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/uplink_set.h"

#include <errno.h>
#include <stdio.h>

#include "urxed/epoll_watch.h"

int uplinks_open(struct uplinks *all, const char *const *specs, uint32_t n,
		 const struct fault *fault, char why[UPLINK_WHY])
{
	int rc;

	all->n = 0;
	if (fault->asked && !n) {
		snprintf(why, UPLINK_WHY, "faults are those of an uplink, and there is none");
		return -EINVAL;
	}
	for (; all->n < n; all->n++) {
		rc = uplink_open(&all->at[all->n], specs[all->n], fault, why);
		if (rc)
			return rc;
	}
	return 0;
}

void uplinks_close(struct uplinks *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_close(&all->at[i]);
	all->n = 0;
}

int uplinks_check_mtu(const struct uplinks *all, uint16_t mtu, char why[UPLINK_WHY])
{
	uint32_t i, wanted = mtu ? mtu : HOST_MTU_LEAST;

	for (i = 0; i < all->n; i++) {
		if (all->at[i].mtu >= wanted)
			continue;
		snprintf(why, UPLINK_WHY, "%s carries %u bytes, less than %s %u", all->at[i].spec,
			 all->at[i].mtu, mtu ? "the mtu of" : "RoCE's least,", wanted);
		return -EMSGSIZE;
	}
	return 0;
}

int uplinks_hear_all(struct uplinks *all, char why[UPLINK_WHY])
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < all->n && !rc; i++)
		rc = uplink_hear_all(&all->at[i], why);
	return rc;
}

int uplinks_watch(const struct uplinks *all, int epoll_fd, char why[UPLINK_WHY])
{
	uint32_t i;
	int fd, rc;

	for (i = 0; i < all->n; i++) {
		fd = all->at[i].port ? netdev_wait_fd(all->at[i].port) : -1;
		rc = fd < 0 ? 0 : watch_add(epoll_fd, fd, NULL, why);
		if (rc && rc != -EEXIST)
			return rc;
	}
	return 0;
}

void uplinks_log_pages(const struct uplinks *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_log_pages(&all->at[i]);
}

void uplinks_log_faults(const struct uplinks *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		uplink_log_faults(&all->at[i]);
}
