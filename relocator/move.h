// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mover: exchanges blocks of files with blocks of the donor (EXT4_IOC_MOVE_EXT).
 *
 * moved_blocks of each piece says at every moment how much of it lies in the new place: it is what
 * the kernel said, also when it reported an error beside. A piece moved in part is moved back like
 * any.
 */
#pragma once

#include <glib.h>

#include "relocator/plan.h"

/* Moves the pieces (pointers to Piece) of one file, opened for reading and writing. The file must
 * have no dirty pages (fsync) and no large folios in the page cache (POSIX_FADV_DONTNEED), or each
 * page costs a journal commit. RELOCATOR_ERROR_MOVE: what was moved until then stands in the
 * pieces. */
gboolean move_pieces(int fd, int donor_fd, const GPtrArray *pieces, GError **error);

/* Exchanges back what moved_blocks says, last first. */
gboolean move_back(int fd, int donor_fd, const GPtrArray *pieces, GError **error);

/* Reads the pieces into the page cache, as single pages and in large requests: the kernel's mover
 * itself reads block by block. */
void move_read_in(int fd, const GPtrArray *pieces, guint32 block_bytes);
