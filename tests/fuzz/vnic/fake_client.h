/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The other end of a vfio-user server's system calls, without system calls: a stream socket that
 * passes descriptors, files, eventfds, and mappings. The linker replaces the calls (meson.build).
 *
 * Uses of descriptors and mappings that are closed or unmapped end the program, as do accesses to
 * memory that is not mapped where AddressSanitizer is on.
 */
#ifndef URXE_FUZZ_FAKE_CLIENT_H
#define URXE_FUZZ_FAKE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

/* What a client passes: a file of so many bytes, or an eventfd. */
enum fake_kind { FAKE_NONE, FAKE_FILE, FAKE_EVENT, FAKE_SOCKET };

void fake_client_open(uint64_t file_size);
/* Opens the socket. The server gets this descriptor. */
int fake_client_connect(void);
bool fake_client_connected(void);
/* The client sends bytes, and descriptors with the first of them. False: the socket is full. */
bool fake_client_send(const uint8_t *bytes, uint32_t n, const enum fake_kind *kinds,
		      uint32_t n_kinds);
/* The client sends nothing more. */
void fake_client_shut(void);
/* Makes room for so many bytes of replies. */
void fake_client_room(uint32_t bytes);
/* Descriptors that are open, and pages that are mapped. */
uint32_t fake_client_fds(void);
uint32_t fake_client_pages(void);

#endif
