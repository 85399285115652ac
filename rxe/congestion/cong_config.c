/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "congestion/cong_config.h"

#include <errno.h>

#include "congestion/dcqcn.h"
#include "wire/header_fields.h"

/*
 * DCQCN's link rate if the rate is unknown: 4 x 25 Gb/s, the rate that the port reports. On a
 * slower link the rate takes effect after a few more CNPs.
 */
#define UNKNOWN_LINK_BPS UINT64_C(100000000000)

static void none_init(struct cong *cong)
{
	(void)cong;
}

static bool none_notified(const struct cong_config *config, struct cong *cong, uint64_t now,
			  uint64_t rtt)
{
	(void)config;
	(void)cong;
	(void)now;
	(void)rtt;
	return false;
}

static uint64_t none_sent(const struct cong_config *config, struct cong *cong, uint64_t now,
			  uint64_t rtt, uint32_t len)
{
	(void)config;
	(void)cong;
	(void)now;
	(void)rtt;
	(void)len;
	return 0;
}

const struct cong_ops cong_none = {
	.ecn = ECN_NOT_ECT,
	.init = none_init,
	.notified = none_notified,
	.sent = none_sent,
};

int cong_configure(struct cong_config *config, const struct urxe_dev_attr *attr)
{
	static const struct cong_ops *const ops[URXE_CONGESTION_COUNT] = {
		[URXE_CONGESTION_DCQCN] = &cong_dcqcn,
		[URXE_CONGESTION_NONE] = &cong_none,
	};

	if (attr->congestion >= URXE_CONGESTION_COUNT || attr->link_bps > URXE_MAX_LINK_BPS)
		return -EINVAL;
	config->ops = ops[attr->congestion];
	config->dcqcn = attr->dcqcn ? *attr->dcqcn : urxe_dcqcn_default;
	config->link_bps = attr->link_bps ? attr->link_bps : UNKNOWN_LINK_BPS;
	/* The default minimum rate may exceed the rate of a slow link. */
	if (!attr->dcqcn && config->dcqcn.min_bps > config->link_bps)
		config->dcqcn.min_bps = config->link_bps;
	return dcqcn_valid(&config->dcqcn, config->link_bps) ? 0 : -EINVAL;
}
