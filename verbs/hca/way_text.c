/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "way.h"

#include <string.h>

bool hca_way_read(const char *text, enum hca_way *way)
{
	static const char *const names[] = {
		[HCA_WAY_AUTO] = "auto", [HCA_WAY_HCA] = "hca", [HCA_WAY_ENGINE] = "engine"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			*way = (enum hca_way)i;
			return true;
		}
	return false;
}

const char *way_reason_text(enum way_reason reason)
{
	static const char *const texts[] = {
		[WAY_NO_HCA] = "no HCA",
		[WAY_OF_DEVICE] = "datagrams or a shared receive queue",
		[WAY_OTHER_HOST] = "another host",
		[WAY_SAME_HOST] = "same host and user",
		[WAY_FORCED] = "forced",
		[WAY_ADDRESS] = "the HCA lacks the address or MTU",
		[WAY_NUMBER_UNKNOWN] = "urxed does not know the number",
		[WAY_KERNEL] = "of the machine's kernel",
		[WAY_REGION] = "the HCA lacks a region",
	};

	return texts[reason];
}
