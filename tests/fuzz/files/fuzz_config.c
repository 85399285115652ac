/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Any bytes as urxed's configuration file, which is accepted, or refused with one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Values must lie in the file's text and end with a NUL byte each. */
static size_t check_values(const char *const *values, uint32_t n, const char *text, size_t size)
{
	size_t total = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (values[i] < text || values[i] >= text + size || !values[i][0])
			abort();
		total += strlen(values[i]) + 1;
	}
	return total;
}

static void check_taken(const struct options *o, const char *text, size_t size)
{
	const struct daemon_options *d = &o->daemon;
	size_t total = check_values(d->uplinks, d->n_uplinks, text, size);

	total += check_values(d->addresses, d->n_addresses, text, size);
	total += check_values(d->pkeys, d->n_pkeys, text, size);
	total += check_values(&o->run_dir, o->run_dir ? 1 : 0, text, size);
	if (total > size)
		abort();
}

static void check_refused(const char *error)
{
	unsigned line;

	if (strncmp(error, "conf:", 5) || sscanf(error + 5, "%u: ", &line) != 1 || !line ||
	    strlen(error) >= OPTIONS_ERROR || strchr(error, '\n'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), error[OPTIONS_ERROR];
	struct options options = {0};

	if (!text)
		abort();
	memcpy(text, data, size);
	if (config_parse(&options, "conf", text, size, error))
		check_refused(error);
	else
		check_taken(&options, text, size);
	free(text);
	return 0;
}
