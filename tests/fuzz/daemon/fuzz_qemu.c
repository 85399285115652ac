/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of a QEMU stream, which arrive in pieces; the length of each piece precedes it in the input
 * (2 bytes, little-endian). The port's frames must equal the frames that a second parser finds.
 */
#include <endian.h>
#include <netdev/netdev.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MTU        1500
#define FRAME_MAX  (MTU + 18)
#define LENGTH_MAX (65536u + 4096)
#define PIECE_MAX  8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All bytes so far, and the position up to which their frames are compared. */
struct stream {
	uint8_t *bytes;
	size_t length, at;
	bool broken;
};

/* The next complete frame. */
static bool next_frame(struct stream *stream, const uint8_t **frame, uint32_t *length)
{
	while (stream->length - stream->at >= 4) {
		memcpy(length, stream->bytes + stream->at, 4);
		*length = be32toh(*length);
		if (*length > LENGTH_MAX) {
			stream->broken = true;
			return false;
		}
		if (stream->length - stream->at - 4 < *length)
			return false;
		*frame = stream->bytes + stream->at + 4;
		stream->at += 4 + *length;
		if (*length && *length <= FRAME_MAX)
			return true;
	}
	return false;
}

static void compare(struct netdev *port, struct stream *stream)
{
	struct netdev_frame frame;
	const uint8_t *expected;
	uint32_t length;

	while (netdev_rx(port, 0, &frame, 1))
		if (!next_frame(stream, &expected, &length) || frame.len != length ||
		    frame.wire_len != length || memcmp(frame.data, expected, length))
			abort();
	if (next_frame(stream, &expected, &length))
		abort();
}

static void run(struct netdev *port, int qemu, const uint8_t *data, size_t size)
{
	struct stream stream = {.bytes = malloc(size + 1)};
	uint64_t counters[NETDEV_COUNTER_COUNT];

	if (!stream.bytes)
		abort();
	while (size >= 2 && !stream.broken) {
		size_t piece = (data[0] | data[1] << 8) % PIECE_MAX;

		data += 2;
		size -= 2;
		piece = piece < size ? piece : size;
		if (send(qemu, data, piece, MSG_NOSIGNAL) != (ssize_t)piece)
			abort();
		memcpy(stream.bytes + stream.length, data, piece);
		stream.length += piece;
		data += piece;
		size -= piece;
		compare(port, &stream);
	}
	netdev_counters(port, counters);
	if (counters[NETDEV_PEERS_BROKEN] != stream.broken)
		abort();
	free(stream.bytes);
}

/* Of a socket pair: that of the port, and that of the fuzzer. */
static int fds[2];

static int take_port_end(const struct sockaddr_un *address)
{
	(void)address;
	return fds[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct netdev_qemu_files files = {.connect = take_port_end};
	struct netdev *port;
	char error[256];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		abort();
	netdev_qemu_set_files(&files);
	if (netdev_qemu_open("qemu:/nobody,connect", MTU, &port, error, sizeof(error)))
		abort();
	netdev_qemu_set_files(NULL);
	run(port, fds[1], data, size);
	netdev_close(port);
	close(fds[1]);
	return 0;
}
