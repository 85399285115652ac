/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/finding.h"

#include <stdarg.h>

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

static const char *get_text(const json_t *finding, const char *key)
{
	return json_string_value(json_object_get(finding, key));
}

void findings_print(FILE *out, const struct findings *f)
{
	json_t *finding;
	size_t i;

	json_array_foreach(f->list, i, finding)
	{
		const char *remedy = get_text(finding, "remedy");

		fprintf(out, "%-6s %-10s %s\n", get_text(finding, "status"),
			get_text(finding, "subject"), get_text(finding, "text"));
		if (remedy)
			fprintf(out, "%-17s $ %s\n", "", remedy);
	}
}
