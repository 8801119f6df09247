// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The compiler: see compile.h. Finds the files as the engine finds them (engine-internal.h), so
 * that what is compiled is what will be read.
 */
#include "readahead/compile.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/file.h"
#include "measure/device.h"
#include "measure/extents.h"
#include "measure/metadata.h"
#include "readahead/engine-internal.h"
#include "readahead/pack-write.h"

#define NEAR_BYTES (64U << 10)

/* ---- ordering (pure) ---- */

static gboolean
follows(const CompilePiece *before, const CompilePiece *piece)
{
        guint64 end = before->physical_bytes + before->length_bytes;

        return piece->fs == before->fs && piece->physical_bytes >= end &&
               piece->physical_bytes - end <= NEAR_BYTES;
}

guint64
compile_count_runs(const GArray *pieces)
{
        const CompilePiece *before = NULL;
        guint64 runs = 0;

        for (guint i = 0; i < pieces->len; i++) {
                const CompilePiece *piece = &g_array_index(pieces, CompilePiece, i);

                if (piece->physical_bytes == COMPILE_NOWHERE)
                        continue;
                if (!before || !follows(before, piece))
                        runs++;
                before = piece;
        }
        return runs;
}

typedef struct {
        CompilePiece piece;
        guint64 bin, physical_bytes;
        guint32 fs;
        guint index;
} SortKey;

static gint
compare_keys(gconstpointer a, gconstpointer b)
{
        const SortKey *x = a, *y = b;

        if (x->bin != y->bin)
                return x->bin < y->bin ? -1 : 1;
        if (x->fs != y->fs)
                return x->fs < y->fs ? -1 : 1;
        if (x->physical_bytes != y->physical_bytes)
                return x->physical_bytes < y->physical_bytes ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
}

void
compile_sort_bins(GArray *pieces, guint64 bin_bytes)
{
        g_autofree SortKey *keys = g_new(SortKey, pieces->len + 1);
        guint64 bin = 0, filled = 0, place = 0;
        guint32 fs = 0;

        for (guint i = 0; i < pieces->len; i++) {
                const CompilePiece *piece = &g_array_index(pieces, CompilePiece, i);

                if (bin_bytes > 0 && filled >= bin_bytes) {
                        bin++;
                        filled = 0;
                }
                filled += piece->length_bytes;
                if (piece->physical_bytes != COMPILE_NOWHERE) {
                        place = piece->physical_bytes;
                        fs = piece->fs;
                }
                keys[i] = (SortKey){
                        .piece = *piece, .bin = bin, .physical_bytes = place, .fs = fs, .index = i};
        }
        qsort(keys, pieces->len, sizeof *keys, compare_keys);
        for (guint i = 0; i < pieces->len; i++)
                g_array_index(pieces, CompilePiece, i) = keys[i].piece;
}

/* Cuts [offset, end) where a new run begins on the disk; `extents` are the parts with a place, in
 * logical order. Cuts fall on page boundaries; holes go with what is before them. */
static void
cut_range(GArray *pieces, CompilePiece whole, const GArray *extents, guint64 page)
{
        guint64 end = whole.offset_bytes + whole.length_bytes;
        CompilePiece piece = whole;
        guint64 next_physical = COMPILE_NOWHERE;

        for (guint i = 0; i < extents->len; i++) {
                const Extent *e = &g_array_index(extents, Extent, i);
                guint64 cut = e->logical_bytes / page * page;

                if (piece.physical_bytes == COMPILE_NOWHERE) {
                        piece.physical_bytes = e->physical_bytes;
                } else if (e->physical_bytes != next_physical && cut > piece.offset_bytes) {
                        piece.length_bytes = cut - piece.offset_bytes;
                        g_array_append_val(pieces, piece);
                        piece.offset_bytes = cut;
                        piece.physical_bytes = e->physical_bytes;
                }
                next_physical = e->physical_bytes + e->length_bytes;
        }
        piece.length_bytes = end - piece.offset_bytes;
        g_array_append_val(pieces, piece);
}

/* ---- the layout (looks at the disk) ---- */

typedef struct {
        const Profile *profile;
        PackBuilder *builder;
        struct places places;
        guint64 page;
        guint stale, missing;
} Compiler;

/* What the file is like now: its map, NULL when it has none that matters. */
static ExtentMap *
load_map(Compiler *c, guint32 index)
{
        const struct pack_file *file = &g_array_index(c->builder->files, struct pack_file, index);
        const struct place *place;
        auto_fd int fd = -1;
        const char *path;

        place = places_for_path(&c->places, file->fs, c->builder->strings->str + file->path, &path);
        switch (place ? place_open_file(place, path, file, &fd) : OPEN_MISSING) {
        case OPEN_SAME: break;
        case OPEN_TOUCHED: c->stale++; break;
        case OPEN_STALE: c->stale++; return NULL;
        case OPEN_MISSING: c->missing++; return NULL;
        case OPEN_REFUSED:
        case OPEN_NO_FD: return NULL;
        }
        return extent_map_load(fd, NULL);
}

/* The ranges in order of first use, whole pages of this machine, clipped to the file. */
static GArray *
pieces_in_time_order(Compiler *c, const RangesOptions *options)
{
        g_autoptr(GArray) ranges = ranges_from_profile(c->profile, options);
        GArray *pieces = g_array_new(FALSE, TRUE, sizeof(CompilePiece));

        for (guint i = 0; i < ranges->len; i++) {
                const OrderedRange *r = &g_array_index(ranges, OrderedRange, i);
                const ProfileFile *file = &g_array_index(c->profile->files, ProfileFile, r->file);
                guint64 start = r->offset_bytes / c->page * c->page;
                guint64 end = MIN(r->offset_bytes + r->length_bytes, file->size_bytes);
                CompilePiece piece = {.file = r->file,
                                      .fs = file->fs,
                                      .offset_bytes = start,
                                      .physical_bytes = COMPILE_NOWHERE};

                end = (end + c->page - 1) / c->page * c->page;
                if (end <= start)
                        continue;
                piece.length_bytes = end - start;
                g_array_append_val(pieces, piece);
        }
        return pieces;
}

static GArray *
pieces_with_places(Compiler *c, const GArray *pieces)
{
        GArray *placed = g_array_new(FALSE, TRUE, sizeof(CompilePiece));
        g_autofree ExtentMap **maps = g_new0(ExtentMap *, c->profile->files->len + 1);
        g_autofree gboolean *asked = g_new0(gboolean, c->profile->files->len + 1);
        g_autoptr(GArray) extents = g_array_new(FALSE, TRUE, sizeof(Extent));

        for (guint i = 0; i < pieces->len; i++) {
                const CompilePiece *piece = &g_array_index(pieces, CompilePiece, i);

                if (!asked[piece->file])
                        maps[piece->file] = load_map(c, piece->file);
                asked[piece->file] = TRUE;
                g_array_set_size(extents, 0);
                if (maps[piece->file])
                        extent_map_clip(maps[piece->file], piece->offset_bytes, piece->length_bytes,
                                        extents);
                cut_range(placed, *piece, extents, c->page);
        }
        for (guint i = 0; i < c->profile->files->len; i++)
                g_clear_pointer(&maps[i], extent_map_free);
        return placed;
}

static void
add_metadata(Compiler *c, guint32 fs)
{
        const struct place *place = places_for_device(&c->places, fs);
        auto_fd int fd = place ? place_open_device(place) : -1;
        g_autoptr(MetadataReader) reader = NULL;
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) objects = NULL;
        g_autofree gchar *node = NULL;
        Profile now;

        if (fd < 0)
                return;
        /* the very device that was checked, whatever its node is called */
        node = g_strdup_printf("/proc/self/fd/%d", fd);
        reader = metadata_reader_open(node, NULL);
        if (!reader)
                return;
        g_array_index(c->builder->fs, struct pack_fs, fs).block_bytes =
                metadata_reader_block_bytes(reader);
        /* What the files need now: a relocation gives them extent trees that the recording did not
         * see. */
        now = *c->profile;
        now.meta = objects = g_array_copy(c->profile->meta);
        if (!metadata_compute(reader, &now, fs, &error))
                g_debug("metadata of %s: %s, ignoring", place->source, error->message);
        for (guint i = 0; i < objects->len; i++) {
                const ProfileMeta *object = &g_array_index(objects, ProfileMeta, i);
                struct pack_meta meta = {.fs = fs, .length = metadata_reader_block_bytes(reader)};

                if (object->fs == fs && metadata_resolve(reader, object, &meta.offset))
                        g_array_append_val(c->builder->meta, meta);
        }
}

/* 16 bytes from a UUID's usual text; all zero for other texts (FAT's, NTFS's), which the engine
 * finds by type. */
static void
parse_uuid(const char *text, uint8_t uuid[16])
{
        guint digits = 0;

        memset(uuid, 0, 16);
        for (; *text; text++) {
                int value = g_ascii_xdigit_value(*text);

                if (*text == '-')
                        continue;
                if (value < 0 || digits == 32)
                        break;
                uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
                digits++;
        }
        if (*text || digits != 32)
                memset(uuid, 0, 16);
}

static void
add_tables(Compiler *c)
{
        for (guint i = 0; i < c->profile->fs->len; i++) {
                const ProfileFs *fs = &g_array_index(c->profile->fs, ProfileFs, i);
                guint32 block = fs->block_bytes;
                struct pack_fs record = {.type = pack_builder_string(c->builder, fs->type)};

                if (block >= 512 && block <= PACK_RANGE_MAX && (block & (block - 1)) == 0)
                        record.block_bytes = block;
                parse_uuid(fs->uuid, record.uuid);
                g_array_append_val(c->builder->fs, record);
        }
        for (guint i = 0; i < c->profile->files->len; i++) {
                const ProfileFile *file = &g_array_index(c->profile->files, ProfileFile, i);
                struct pack_file record = {
                        .inode = file->inode,
                        .size = file->size_bytes,
                        .mtime_ns = file->mtime_ns,
                        .generation = file->generation,
                        .fs = file->fs,
                        .path = pack_builder_string(c->builder, file->path),
                };

                g_array_append_val(c->builder->files, record);
        }
}

static void
add_ranges(Compiler *c, const GArray *pieces)
{
        CompilePiece joined = {0};

        for (guint i = 0; i < pieces->len; i++) {
                const CompilePiece *piece = &g_array_index(pieces, CompilePiece, i);

                if (joined.length_bytes > 0 && piece->file == joined.file &&
                    piece->offset_bytes == joined.offset_bytes + joined.length_bytes) {
                        joined.length_bytes += piece->length_bytes;
                        continue;
                }
                pack_builder_add_range(c->builder, joined.file, joined.offset_bytes,
                                       joined.length_bytes);
                joined = *piece;
        }
        pack_builder_add_range(c->builder, joined.file, joined.offset_bytes, joined.length_bytes);
}

/* TRUE when a file system of the pack is on a drive that says it turns. It errs on the side of
 * sorting: many virtual disks say so, where sorting costs little. */
static gboolean
on_rotational(const Compiler *c)
{
        for (guint32 fs = 0; fs < c->builder->fs->len; fs++) {
                const struct place *place = places_for_device(&c->places, fs);
                g_autoptr(Device) device = NULL;

                if (place)
                        device = device_load(makedev(place->major, place->minor), NULL);
                if (device && device->rotational)
                        return TRUE;
        }
        return FALSE;
}

/* AUTO: what was relocated is read in order of first use. Everything else is sorted inside bins,
 * which leaves the parts that lie in order of first use as they are. */
static void
order_pieces(Compiler *c, GArray *placed, const CompileOptions *options)
{
        guint64 bin_bytes = 0; /* BLOCK: one for all */

        if (options->order == REPLAY_ORDER_AUTO) {
                c->builder->flags |= PACK_ORDER_AUTO;
                if (compile_count_runs(placed) <= placed->len / 8 + 2) {
                        c->builder->flags |= PACK_RELOCATED;
                        return;
                }
        }
        c->builder->flags |= PACK_BLOCK_ORDER;
        if (options->order == REPLAY_ORDER_AUTO)
                bin_bytes = options->bin_bytes > 0 ? options->bin_bytes
                            : on_rotational(c)     ? COMPILE_BIN_BYTES_ROTATIONAL
                                                   : COMPILE_BIN_BYTES_FLASH;
        compile_sort_bins(placed, bin_bytes);
}

GBytes *
pack_compile(const Profile *profile, const CompileOptions *options, guint *ret_stale,
             guint *ret_missing, GError **error)
{
        const CompileOptions defaults = COMPILE_OPTIONS_DEFAULT;
        guint64 page = (guint64)sysconf(_SC_PAGESIZE);
        g_autoptr(PackBuilder) builder = pack_builder_new(profile->created_us, (guint32)page);
        Compiler c = {.profile = profile, .builder = builder, .page = page};
        g_autoptr(GArray) pieces = NULL;
        g_autoptr(GArray) placed = NULL;
        GBytes *pack;

        if (!options)
                options = &defaults;
        add_tables(&c);
        if (places_find((const struct pack_fs *)(void *)builder->fs->data, builder->fs->len,
                        builder->strings->str, options->root, &c.places) < 0)
                g_error("out of memory");
        for (guint32 fs = 0; fs < profile->fs->len; fs++)
                add_metadata(&c, fs);
        pieces = pieces_in_time_order(&c, &options->ranges);
        if (options->order != REPLAY_ORDER_TIME || ret_stale || ret_missing) {
                placed = pieces_with_places(&c, pieces);
                if (options->order != REPLAY_ORDER_TIME)
                        order_pieces(&c, placed, options);
        }
        /* in order of time nothing is gained by cutting ranges where the disk does */
        add_ranges(&c, builder->flags & PACK_BLOCK_ORDER ? placed : pieces);
        places_free(&c.places);
        pack = pack_builder_finish(builder,
                                   options->meta_gap_bytes > 0 ? options->meta_gap_bytes
                                                               : COMPILE_META_GAP_BYTES_DEFAULT,
                                   error);
        if (!pack)
                return NULL;
        if (ret_stale)
                *ret_stale = c.stale;
        if (ret_missing)
                *ret_missing = c.missing;
        return pack;
}

gboolean
pack_save(GBytes *pack, const char *path, GError **error)
{
        gsize size;
        const void *data = g_bytes_get_data(pack, &size);

        return file_replace(path, data, size, 0600, error);
}
