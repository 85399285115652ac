/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Any bytes as a daemon's report, which `urxe show` prints in every form. */
#include <stddef.h>
#include <stdint.h>

#include "require.h"
#include "urxe/report_paths.h"
#include "urxe/report_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *report = json_loadb((const char *)data, size, 0, NULL);
	static FILE *out;
	const char *topic;
	size_t i;

	if (!report)
		return 0;
	if (!out)
		out = fopen("/dev/null", "w");
	require(out);
	report_paths_add(report);
	report_view_print(out, report, NULL, false);
	for (i = 0; (topic = report_view_topic(i)); i++) {
		report_view_print(out, report, topic, i & 1);
		report_view_json(out, report, topic);
	}
	json_decref(report);
	return 0;
}
