/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/finding.h"

#include <stdarg.h>

#include "common/json_fields.h"
#include "common/printable.h"

#define TEXT 512 /* maximum length of a sentence, with the NUL; a longer one is cut */

static const char *const names[] = {"ok", "note", "fault"};

void finding_add(struct findings *f, const char *subject, enum finding_status status,
		 const char *remedy, const char *format, ...)
{
	char text[TEXT], shown[TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printable_copy(shown, sizeof(shown), text);
	json_array_append_new(f->list,
			      json_pack("{s:s, s:s, s:s, s:s?}", "subject", subject, "status",
					names[status], "text", shown, "remedy", remedy));
	if (status > f->worst)
		f->worst = status;
}

void findings_print(FILE *out, const struct findings *f)
{
	json_t *finding;
	size_t i;

	json_array_foreach(f->list, i, finding)
	{
		const char *remedy = json_get_text(finding, "remedy");

		fprintf(out, "%-6s %-10s %s\n", json_get_text(finding, "status"),
			json_get_text(finding, "subject"), json_get_text(finding, "text"));
		if (remedy)
			fprintf(out, "%-17s $ %s\n", "", remedy);
	}
}
