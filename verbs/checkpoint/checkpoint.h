/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Saves and restores urxe's part of a process, for programs that checkpoint processes.
 *
 * liburxe.so exports these functions, and is preloaded. So a checkpointer finds them by dlsym: if
 * it linked them, it would not start without liburxe.so.
 *
 *   save:    urxe_checkpoint_quiesce, stop the other threads, urxe_checkpoint_save, save the
 *            memory, end the process
 *   restore: start a process with the same libraries at the same addresses, put the memory back,
 *            urxe_checkpoint_restore, start the threads
 *   abandon: urxe_checkpoint_resume instead of the end of the process
 *
 * Functions return 0 or a negative errno value, and do not change errno; after an error,
 * urxe_checkpoint_error has a sentence that names the object. None is a cancellation point. One
 * thread of the process calls all of them. docs/checkpoint.md has the duties of the checkpointer,
 * and the format of the stream.
 */
#ifndef URXE_CHECKPOINT_H
#define URXE_CHECKPOINT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that urxe_checkpoint_save writes. */
#define URXE_CHECKPOINT_VERSION 3

/*
 * Stops the engine between two packets. Before, the engine takes over the queue pairs that an HCA
 * executes (rxe/offload.h), and keeps them after urxe_checkpoint_resume. Verbs calls of other
 * threads wait until urxe_checkpoint_resume, or return no completions; the engine thread runs no
 * more. Until urxe_checkpoint_resume the calling thread must not call a verb or unmap registered
 * memory: it would wait for ever.
 *
 * -ETIMEDOUT: not within timeout_ms: another process still copies registered memory, a thread
 * unmaps it, a thread waits for the daemon or destroys rdma_cm IDs all the time, the daemon does
 * not answer, no daemon runs, an HCA has requests that do not end, or the peers of its queue pairs
 * send without a pause. If the daemon ends meanwhile, the function waits for the next one, within
 * timeout_ms. -EOPNOTSUPP: an HCA executes queue pairs with which the engine cannot go on, the
 * daemon knows no next hop of an address handle, a descriptor is of a device that the parent
 * process opened, an rdma_cm ID belongs to the kernel, or the daemon cannot save the ID or is an
 * earlier version. -ENODEV: the process has no open device. -EIO: the device has failed, as when no
 * next daemon came, or the next daemon does not know the rdma_cm IDs. -ENOMEM. After these errors
 * the device runs as before, but queue pairs that an HCA has executed may be the engine's from now
 * on. -EALREADY: the device is stopped already, and stays so.
 */
int urxe_checkpoint_quiesce(uint32_t timeout_ms);

/*
 * Writes urxe's state to a descriptor: a file, a pipe or a socket. Allocates no memory and takes no
 * lock, so other threads may be stopped anywhere. They have to be stopped: they could change rings,
 * descriptors and mappings. May be called again, also after an error.
 *
 * -EINVAL: urxe_checkpoint_quiesce has not succeeded. -EPERM: the caller is a child that was forked
 * while the device was stopped. -EBUSY: since then a thread has duplicated more descriptors than
 * the buffer has room for, opened or closed rdma_cm, or begun to close the device. Errors of
 * write(2), or of open(2) for /proc/self/maps.
 */
int urxe_checkpoint_save(int fd);

/*
 * Continues after urxe_checkpoint_quiesce, in the same thread. Call it if the process goes on: the
 * checkpoint was abandoned or only a snapshot. -EINVAL: the device is not stopped. -EPERM: another
 * thread has stopped it, or the caller is a child that was forked while it was stopped, and has no
 * device.
 */
int urxe_checkpoint_resume(void);

/*
 * Reads a stream to its end, and restores what it describes: open devices with the same
 * descriptors, and rings at the same addresses; the same handles, keys and QPNs. The registered
 * memory, and the objects of libibverbs and librxe, are in their places already. When the function
 * returns 0, the engine runs.
 *
 * Other users must not be able to write the stream, because it names addresses of the process.
 * After an error nothing has changed. -EBUSY: the process has an open device. -EBADMSG: the stream
 * is truncated or damaged, its values contradict each other, or the saved process had pages of
 * another size. -EPROTONOSUPPORT: a later version of urxe has written it. -EEXIST: another process
 * of this host has the QPNs, or an rdma_cm ID or its connection; or a descriptor or an address of
 * the saved process is in use. -EACCES: a process of another user had the QPNs, or this process may
 * not have the port below 1024 of an rdma_cm ID. -EADDRNOTAVAIL, -EADDRINUSE: the device has
 * another MAC address than the saved one, lacks a P_Key or address that a queue pair, address
 * handle or rdma_cm ID uses, or another process has the port of an rdma_cm ID. -EPERM: the process
 * has rdma_cm IDs, and its user is neither root nor that of urxed. -EOPNOTSUPP: the running urxed
 * is an earlier version, which takes no rdma_cm IDs. -EFAULT: registered memory or an object of
 * librxe is missing, or a library has another address than before. -ETIMEDOUT: urxed has not
 * answered a question for 5 s. -EFBIG, -ENOSPC: a limit of the process, of urxe or of urxed is
 * exceeded. -EIO: the process was forked meanwhile, and this is the child. -ENOMEM; errors of
 * read(2) and of the attachment to urxed.
 */
int urxe_checkpoint_restore(int fd);

/* A sentence that says why the last call of these functions failed; "" if that call succeeded. */
const char *urxe_checkpoint_error(void);

#ifdef __cplusplus
}
#endif

#endif
