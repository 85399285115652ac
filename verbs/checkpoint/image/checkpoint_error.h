/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sentence that urxe_checkpoint_error returns. For one thread at a time. */
#ifndef URXE_VERBS_CHECKPOINT_CHECKPOINT_ERROR_H
#define URXE_VERBS_CHECKPOINT_CHECKPOINT_ERROR_H

/* Sets the sentence, and returns `error`. */
int checkpoint_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* If `error` is not 0 and no sentence is set: sets "`what`: " and strerror's text. Returns
 * `error`. */
int checkpoint_explain(int error, const char *what);
void checkpoint_error_clear(void);
const char *checkpoint_error_text(void);

#endif
