// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Making a pack: collects records and strings and lays them out as pack.h says. Pure.
 *
 * The builder checks nothing: pack_builder_finish() proves the result with the reader's own code
 * and fails when that refuses it, so that no pack is ever written that a replay would not take.
 */
#pragma once

#include <glib.h>

#include "readahead/pack.h"

typedef struct {
        gint64 profile_created_us;
        guint32 page_bytes;
        guint32 flags;
        GArray *meta;   /* struct pack_meta, any order; sorted and joined by finish */
        GArray *fs;     /* struct pack_fs */
        GArray *files;  /* struct pack_file; `ranges` is counted by finish */
        GArray *ranges; /* struct pack_range */
        GString *strings;
        GHashTable *string_offsets;
} PackBuilder;

PackBuilder *pack_builder_new(gint64 profile_created_us, guint32 page_bytes);
void pack_builder_free(PackBuilder *builder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PackBuilder, pack_builder_free)

/* Offset of the string in the string table; the same string is stored once. */
guint32 pack_builder_string(PackBuilder *builder, const char *string);

/* Adds [offset, offset + length) of a file as ranges of at most PACK_RANGE_MAX. */
void pack_builder_add_range(PackBuilder *builder, guint32 file, guint64 offset, guint64 length);

/* Sorts the metadata, joins what touches, overlaps or is at most `gap_bytes` apart, and returns the
 * pack. Errors: COMMON_ERROR_INPUT (the records make no valid pack). */
GBytes *pack_builder_finish(PackBuilder *builder, guint64 gap_bytes, GError **error);
