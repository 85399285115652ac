/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ISA-L's CRC, of a library that comes when the device is opened: to load it, which is larger than
 * ours, with each program that opens none would double what it costs them to have us.
 */
#ifndef URXE_VERBS_CRC_H
#define URXE_VERBS_CRC_H

/* 0, at each call after the first that could; -ENOENT where there is no such library. With the
 * caller's lock. */
int crc_load(void);

#endif
