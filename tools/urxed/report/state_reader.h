/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the JSON document in which a process reports its QPs and MRs
 * (verbs/session/state_document.h). process_states.c calls this. The process is not trusted: the
 * reader keeps only members with known names and types, and uses no more memory than the document's
 * limits allow.
 */
#ifndef URXE_URXED_REPORT_STATE_READER_H
#define URXE_URXED_REPORT_STATE_READER_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define STATE_ERROR 128
/* Number of MRs of a process that the reader keeps; it only counts further ones. */
#define STATE_MRS_MAX 65536
/* Longest text of a member in bytes: an address is the longest that processes write. */
#define STATE_TEXT_MAX 63

struct state_limits {
	uint32_t qps; /* most QPs of the document */
	/* Units that the document may cost; state_read subtracts its cost. A unit is about 150
	 * bytes of memory: a member costs one unit, a row 16. */
	uint32_t units;
};

/*
 * Reads a document. Returns {qps: [{...}], mrs: [{...}], counters: {...}, n_mrs}; the caller calls
 * json_decref. NULL: `error` says what is wrong with the document, as the end of a sentence.
 */
json_t *state_read(const char *text, size_t len, struct state_limits *limits,
		   char error[STATE_ERROR]);

/* Returns the meaning of a counter of a process; NULL: no process has a counter of that name. */
const char *state_counter_meaning(const char *name);

#endif
