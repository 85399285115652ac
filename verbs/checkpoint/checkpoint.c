/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions that liburxe.so exports to checkpointers. */
#include "checkpoint/checkpoint.h"

#include <errno.h>

#include "checkpoint/checkpoint_restore.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/quiesce.h"
#include "process/cancellation.h"

int urxe_checkpoint_quiesce(uint32_t timeout_ms)
{
	const int saved = errno, cancel = cancellation_disable();
	int rc;

	checkpoint_error_clear();
	rc = checkpoint_explain(quiesce_begin(timeout_ms), "cannot stop the device");
	if (!rc)
		checkpoint_error_clear();
	cancellation_restore(cancel);
	errno = saved;
	return rc;
}

int urxe_checkpoint_save(int fd)
{
	const int saved = errno, cancel = cancellation_disable();
	int rc;

	checkpoint_error_clear();
	rc = checkpoint_explain(quiesce_save(fd), "cannot save the device");
	cancellation_restore(cancel);
	errno = saved;
	return rc;
}

int urxe_checkpoint_resume(void)
{
	const int saved = errno, cancel = cancellation_disable();
	int rc;

	checkpoint_error_clear();
	rc = checkpoint_explain(quiesce_end(), "cannot continue");
	cancellation_restore(cancel);
	errno = saved;
	return rc;
}

int urxe_checkpoint_restore(int fd)
{
	const int saved = errno, cancel = cancellation_disable();
	int rc;

	checkpoint_error_clear();
	rc = restore_process(fd);
	cancellation_restore(cancel);
	errno = saved;
	return rc;
}

const char *urxe_checkpoint_error(void)
{
	return checkpoint_error_text();
}
