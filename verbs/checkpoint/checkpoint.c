/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions that liburxe.so exports to checkpointers. */
#include "checkpoint/checkpoint.h"

#include <errno.h>

#include "checkpoint/checkpoint_restore.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/quiesce.h"

int urxe_checkpoint_quiesce(uint32_t timeout_ms)
{
	int saved = errno, rc;

	checkpoint_error_clear();
	rc = checkpoint_failed(quiesce_begin(timeout_ms), "cannot stop the device");
	if (!rc)
		checkpoint_error_clear();
	errno = saved;
	return rc;
}

int urxe_checkpoint_save(int fd)
{
	int saved = errno, rc;

	checkpoint_error_clear();
	rc = checkpoint_failed(quiesce_save(fd), "cannot save the device");
	errno = saved;
	return rc;
}

int urxe_checkpoint_resume(void)
{
	int saved = errno, rc;

	checkpoint_error_clear();
	rc = checkpoint_failed(quiesce_end(), "cannot continue");
	errno = saved;
	return rc;
}

int urxe_checkpoint_restore(int fd)
{
	int saved = errno, rc;

	checkpoint_error_clear();
	rc = restore_process(fd);
	errno = saved;
	return rc;
}

const char *urxe_checkpoint_error(void)
{
	return checkpoint_error_text();
}
