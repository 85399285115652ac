/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/replace/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/unix_packet.h"

#define VERSION 1u
/* Bytes of a stream at most: more than the state of a full device takes, which has 16 bytes for
 * each of up to 128 Mi pieces of memory. */
#define STREAM_MAX INT64_C(0xffffffff)

/* A request, offer, answer or go; in host byte order. */
struct packet {
	uint32_t version;
	int32_t status; /* 0 or a negative errno value */
	uint32_t n_fds; /* of an offer: descriptors of the packets that follow */
};

/* --- Connections */

static int set_timeouts(int fd, long ms)
{
	const struct timeval time = {ms / 1000, ms % 1000 * 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)))
		return -errno;
	return unix_packet_peer_is_trusted(fd) ? 0 : -EPERM;
}

static int checked(int fd, long ms)
{
	const int rc = set_timeouts(fd, ms);

	if (rc)
		close(fd);
	return rc ?: fd;
}

int channel_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return checked(fd, CHANNEL_NEW_MS);
	rc = -errno;
	close(fd);
	return rc;
}

int channel_accept(int listener)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return fd < 0 ? -errno : checked(fd, CHANNEL_OLD_MS);
}

/* --- Packets */

static int send_packet(int fd, int status, uint32_t n_fds, const int *fds, uint32_t n)
{
	const struct packet packet = {VERSION, status, n_fds};

	return unix_packet_send(fd, &packet, sizeof(packet), fds, n);
}

int channel_send(int fd, int status)
{
	return send_packet(fd, status, 0, NULL, 0);
}

/* Receives a packet, and returns its status, or a negative errno value. The caller closes the
 * descriptors in *extras, also after an error. */
static int receive_packet(int fd, uint32_t *n_fds, struct unix_packet_extras *extras)
{
	struct packet packet;
	const int n = unix_packet_recv(fd, &packet, sizeof(packet), extras);

	if (!n)
		return -ECONNRESET;
	if (n < 0)
		return n;
	if (n != sizeof(packet) || packet.version != VERSION || packet.status > 0)
		return -EPROTO;
	*n_fds = packet.n_fds;
	return packet.status;
}

int channel_receive(int fd)
{
	struct unix_packet_extras extras;
	uint32_t n_fds;
	const int rc = receive_packet(fd, &n_fds, &extras);

	unix_packet_close_fds(&extras);
	return rc;
}

/* --- Bundles */

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length) {
		const ssize_t n = write(fd, bytes, length);

		if (n < 0)
			return -errno;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

static int send_stream(int fd, const uint8_t *stream, size_t length, uint32_t n_fds)
{
	const int file = memfd_create("urxe-vm", MFD_CLOEXEC);
	int rc;

	if (file < 0)
		return -errno;
	rc = write_all(file, stream, length) ?: send_packet(fd, 0, n_fds, &file, 1);
	close(file);
	return rc;
}

int channel_send_bundle(int fd, const struct bundle *b)
{
	int fds[BUNDLE_FDS], rc;
	uint8_t *stream;
	uint32_t n_fds;
	size_t length;

	rc = bundle_encode(b, &stream, &length, fds, &n_fds);
	if (rc)
		return rc;
	rc = send_stream(fd, stream, length, n_fds);
	for (uint32_t i = 0; i < n_fds && !rc; i += UNIX_PACKET_FDS)
		rc = send_packet(fd, 0, n_fds, fds + i,
				 n_fds - i < UNIX_PACKET_FDS ? n_fds - i : UNIX_PACKET_FDS);
	free(stream);
	return rc;
}

/* Copies the stream out of the memfd, which the other process can still change. 0: the caller frees
 * *stream. -EBADMSG: no memfd, longer than STREAM_MAX, or truncated meanwhile; -ENOMEM. */
static int read_stream(int file, uint8_t **stream, size_t *length)
{
	struct stat status;

	if (fcntl(file, F_GET_SEALS) < 0 || fstat(file, &status) || status.st_size > STREAM_MAX)
		return -EBADMSG;
	*length = (size_t)status.st_size;
	*stream = malloc(*length + 1);
	if (!*stream)
		return -ENOMEM;
	for (size_t at = 0; at < *length;) {
		const ssize_t n = pread(file, *stream + at, *length - at, (off_t)at);

		if (n <= 0) {
			free(*stream);
			return -EBADMSG;
		}
		at += (size_t)n;
	}
	return 0;
}

static int receive_stream(int fd, uint8_t **stream, size_t *length, uint32_t *n_fds)
{
	struct unix_packet_extras extras;
	int rc = receive_packet(fd, n_fds, &extras);

	if (!rc && (extras.fds[0] < 0 || *n_fds > BUNDLE_FDS))
		rc = -EPROTO;
	if (!rc)
		rc = read_stream(extras.fds[0], stream, length);
	unix_packet_close_fds(&extras);
	return rc;
}

/*
 * Receives `wanted` descriptors. 0; or an error of channel_receive: then, too, the caller owns the
 * *n descriptors in fds[].
 */
static int receive_fds(int fd, int fds[BUNDLE_FDS], uint32_t wanted, uint32_t *n)
{
	struct unix_packet_extras extras;
	uint32_t ignored;

	for (*n = 0; *n < wanted;) {
		const int rc = receive_packet(fd, &ignored, &extras);
		const uint32_t before = *n;

		for (int i = 0; i < UNIX_PACKET_FDS; i++) {
			if (extras.fds[i] >= 0 && *n < wanted)
				fds[(*n)++] = extras.fds[i];
			else if (extras.fds[i] >= 0)
				close(extras.fds[i]);
		}
		if (rc || *n == before)
			return rc ?: -EPROTO;
	}
	return 0;
}

int channel_receive_bundle(int fd, struct bundle *b)
{
	int fds[BUNDLE_FDS];
	uint32_t wanted, n;
	uint8_t *stream;
	size_t length;
	int rc = receive_stream(fd, &stream, &length, &wanted);

	if (rc)
		return rc;
	rc = receive_fds(fd, fds, wanted, &n);
	if (rc) {
		while (n)
			close(fds[--n]);
	} else {
		rc = bundle_decode(b, stream, length, fds, n);
		if (rc)
			bundle_close(b);
	}
	free(stream);
	return rc;
}
