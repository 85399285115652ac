/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe doctor has found out about this host. Each check adds one finding or several. */
#ifndef URXE_URXE_DOCTOR_FINDING_H
#define URXE_URXE_DOCTOR_FINDING_H

#include <stdio.h>

#include <jansson.h>

enum finding_status {
	FINDING_OK,
	FINDING_NOTE,  /* programs have the device, but something is slower or missing */
	FINDING_FAULT, /* programs cannot have the device */
};

/* An array of {subject, status, text, remedy}; remedy is a command, or null. */
struct findings {
	json_t *list;
	enum finding_status worst;
};

/*
 * Adds a finding. `remedy`: the command that mends it; NULL: none. `format`: a sentence without a
 * full stop.
 */
__attribute__((format(printf, 5, 6))) void finding_add(struct findings *f, const char *subject,
						       enum finding_status status,
						       const char *remedy, const char *format, ...);
/* Prints a line for each finding, and below it the remedy. */
void findings_print(FILE *out, const struct findings *f);

#endif
