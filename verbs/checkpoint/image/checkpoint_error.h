/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sentence of urxe_checkpoint_error. For one thread. */
#ifndef URXE_VERBS_CHECKPOINT_CHECKPOINT_ERROR_H
#define URXE_VERBS_CHECKPOINT_CHECKPOINT_ERROR_H

/* Sets the sentence, and returns `error`. */
int checkpoint_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the system's text for an error other than 0 if there is no sentence yet. Returns `error`. */
int checkpoint_failed(int error, const char *what);
void checkpoint_error_clear(void);
const char *checkpoint_error_text(void);

#endif
