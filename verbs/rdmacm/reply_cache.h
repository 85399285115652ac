/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers that came from urxed along with an event, to what programs ask next as a rule, so that
 * it need not be asked. They hold until the ID's next command or event. Of an open device as many
 * IDs have some as RDMACM_FORETOLD; for the others urxed is asked.
 *
 * All with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_REPLY_CACHE_H
#define URXE_VERBS_RDMACM_REPLY_CACHE_H

#include "rdmacm/file.h"

#define RDMACM_FORETOLD 64

/* An event of the ID was fetched, with so many bytes of answers. */
void rdmacm_foretold_keep(struct rdmacm_file *file, uint32_t id, const uint8_t *bytes,
			  uint32_t len);
/* True: the answer is known, and in the response. */
bool rdmacm_foretold_answer(const struct rdmacm_file *file, const struct rdmacm_request *request,
			    struct rdmacm_response *response);
/* urxed has done the command: what it may have changed is not known any more. */
void rdmacm_foretold_done(struct rdmacm_file *file, const struct rdmacm_request *request);
/* The device is closed. */
void rdmacm_foretold_forget(struct rdmacm_file *file);

#endif
