/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Structures of the engine's interface that both a recorded call and a saved device contain. */
#ifndef URXE_RECORD_FIELDS_H
#define URXE_RECORD_FIELDS_H

#include <rxe/rxe.h>
#include <rxe/state_stream.h>

void path_fields(struct state_stream *s, struct urxe_path *path);
void segment_fields(struct state_stream *s, struct urxe_seg *seg);
/* The arguments of URXE_WR_BIND_MW and URXE_WR_REG_MR. */
void bind_fields(struct state_stream *s, struct urxe_mw_bind *bind);
void fast_reg_fields(struct state_stream *s, struct urxe_fast_reg *reg);

#endif
