/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Capture files as ports, by libpcap: a reader of pcap and pcapng, and a writer of pcap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "error_text.h"
#include "netdev_ops.h"

/* libpcap's own limit (MAXIMUM_SNAPLEN): libpcap's readers refuse longer packets. */
#define SNAPLEN 262144

#define NSEC_PER_SEC 1000000000u

struct pcap_port {
	struct netdev netdev;
	pcap_t *pcap;
	FILE *file;            /* closed by `pcap` or `dumper` */
	pcap_dumper_t *dumper; /* NULL in a reader */
	int status;
};

static struct pcap_port *to_pcap(struct netdev *port)
{
	return (struct pcap_port *)port;
}

static struct pcap_port *pcap_port_new(const struct netdev_ops *ops)
{
	struct pcap_port *port = calloc(1, sizeof(*port));

	if (port)
		port->netdev.ops = ops;
	return port;
}

/* --- Reading */

/* One frame a call: libpcap has one buffer, and the frame stays there without a copy. */
static uint32_t reader_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			  uint32_t n)
{
	struct pcap_port *port = to_pcap(netdev);
	struct pcap_pkthdr *header;
	const u_char *data;
	int got;

	(void)now;
	if (!n || port->status)
		return 0;
	got = pcap_next_ex(port->pcap, &header, &data);
	if (got != 1) {
		port->status = got == PCAP_ERROR_BREAK ? 1 : ferror(port->file) ? -EIO : -EBADMSG;
		return 0;
	}
	/* With nanosecond precision tv_usec holds nanoseconds: pcap_open_offline(3PCAP). */
	frames[0] = (struct netdev_frame){
		.data = data,
		.len = header->caplen,
		.wire_len = header->len > header->caplen ? header->len : header->caplen,
		.time = (uint64_t)header->ts.tv_sec * NSEC_PER_SEC + (uint64_t)header->ts.tv_usec,
	};
	return 1;
}

static uint32_t reader_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			  uint32_t n)
{
	(void)netdev, (void)now, (void)frames, (void)n;
	return 0;
}

static void reader_close(struct netdev *netdev)
{
	struct pcap_port *port = to_pcap(netdev);

	pcap_close(port->pcap);
	free(port);
}

static const struct netdev_ops reader_ops = {
	.rx = reader_rx, .tx = reader_tx, .close = reader_close};

static int reader_start(struct pcap_port *port, const char *path, char *error, uint32_t error_size)
{
	char pcap_error[PCAP_ERRBUF_SIZE];
	int link;

	port->pcap = pcap_fopen_offline_with_tstamp_precision(
		port->file, PCAP_TSTAMP_PRECISION_NANO, pcap_error);
	if (!port->pcap)
		return error_text_set(error, error_size, -EINVAL, "%s is not a capture file: %s",
				      path, pcap_error);
	link = pcap_datalink(port->pcap);
	if (link == DLT_EN10MB)
		return 0;
	pcap_close(port->pcap);
	port->file = NULL;
	return error_text_set(error, error_size, -ENOTSUP, "%s has link type %d (%s), not Ethernet",
			      path, link, pcap_datalink_val_to_name(link) ?: "unknown");
}

int netdev_pcap_open(const char *path, struct netdev **port, char *error, uint32_t error_size)
{
	struct pcap_port *new = pcap_port_new(&reader_ops);
	int err;

	if (!new)
		return error_text_set(error, error_size, -ENOMEM, "out of memory");
	new->file = fopen(path, "rbe");
	if (!new->file) {
		err = error_text_set(error, error_size, -errno, "cannot open %s: %m", path);
		free(new);
		return err;
	}
	err = reader_start(new, path, error, error_size);
	if (err) {
		if (new->file)
			fclose(new->file);
		free(new);
		return err;
	}
	*port = &new->netdev;
	return 0;
}

/* --- Writing */

static uint32_t writer_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			  uint32_t n)
{
	(void)netdev, (void)now, (void)frames, (void)n;
	return 0;
}

static void writer_append(struct pcap_port *port, uint64_t now, const struct netdev_frame *frame)
{
	uint64_t time = frame->time ? frame->time : now;
	struct pcap_pkthdr header = {
		.ts = {time / NSEC_PER_SEC, time % NSEC_PER_SEC},
		.caplen = frame->len < SNAPLEN ? frame->len : SNAPLEN,
		.len = frame_wire_len(frame),
	};

	pcap_dump((u_char *)port->dumper, &header, frame->data);
}

static uint32_t writer_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			  uint32_t n)
{
	struct pcap_port *port = to_pcap(netdev);
	uint32_t i;

	for (i = 0; i < n && !port->status; i++) {
		writer_append(port, now, &frames[i]);
		if (ferror(port->file))
			port->status = -EIO;
	}
	return port->status ? 0 : i;
}

static void writer_close(struct netdev *netdev)
{
	struct pcap_port *port = to_pcap(netdev);

	pcap_dump_close(port->dumper);
	pcap_close(port->pcap);
	free(port);
}

static const struct netdev_ops writer_ops = {
	.rx = writer_rx, .tx = writer_tx, .close = writer_close};

/* Creates the file; returns 0 or a negative errno value. pcap_dump_fopen closes the file when it
 * fails. */
static int writer_start(struct pcap_port *port, const char *path, char *error, uint32_t error_size)
{
	int err;

	port->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAPLEN,
							  PCAP_TSTAMP_PRECISION_NANO);
	if (!port->pcap)
		return error_text_set(error, error_size, -ENOMEM, "out of memory");
	port->file = fopen(path, "wbe");
	if (!port->file)
		err = error_text_set(error, error_size, -errno, "cannot create %s: %m", path);
	else if (!(port->dumper = pcap_dump_fopen(port->pcap, port->file)))
		err = error_text_set(error, error_size, -EIO, "cannot write %s: %s", path,
				     pcap_geterr(port->pcap));
	else
		return 0;
	pcap_close(port->pcap);
	return err;
}

int netdev_pcap_create(const char *path, struct netdev **port, char *error, uint32_t error_size)
{
	struct pcap_port *new = pcap_port_new(&writer_ops);
	int err;

	if (!new)
		return error_text_set(error, error_size, -ENOMEM, "out of memory");
	err = writer_start(new, path, error, error_size);
	if (err) {
		free(new);
		return err;
	}
	*port = &new->netdev;
	return 0;
}

/* --- Status */

int netdev_pcap_status(const struct netdev *port)
{
	struct pcap_port *pcap = (struct pcap_port *)port;

	/* A full disk may show only when libpcap writes its last block. */
	if (pcap->dumper && !pcap->status && pcap_dump_flush(pcap->dumper))
		pcap->status = -EIO;
	return pcap->status;
}

const char *netdev_pcap_error(const struct netdev *port)
{
	const struct pcap_port *pcap = (const struct pcap_port *)port;

	if (pcap->status >= 0)
		return "";
	return pcap->dumper ? "writing failed" : pcap_geterr(pcap->pcap);
}
