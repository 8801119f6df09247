// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout: where the data and metadata of a profile lie now, on which drives. Loaded from the
 * mounted file systems (side effects: opens files, reads metadata through libext2fs); changed and
 * turned into time by pure functions.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "common/ranges.h"
#include "measure/device.h"
#include "measure/extents.h"
#include "measure/model.h"
#include "measure/readahead-sim.h"

#define LAYOUT_NO_DISK G_MAXUINT32

typedef struct {
        dev_t dev; /* of the whole drive */
        DiskModel *model;
        gboolean assumed;  /* the class was chosen by the rotational flag alone */
        gboolean elevator; /* the block layer sorts */
        guint64 readahead_bytes;
} LayoutDisk;

typedef struct {
        guint32 disk;         /* LAYOUT_NO_DISK: left out, see `skipped` */
        guint64 offset_bytes; /* of the file system's device on the drive */
        guint64 size_bytes;
        ExtentMap *map;     /* NULL when left out */
        GArray *executable; /* PageSpan of what is mapped to be executed, or NULL */
} LayoutFile;

typedef struct {
        guint32 disk;           /* LAYOUT_NO_DISK: no longer there, or not known */
        guint32 length_bytes;   /* one block */
        guint64 offset_bytes;   /* of the file system's device on the drive */
        guint64 position_bytes; /* on that device */
        guint64 first_use_us;
        ProfileMetaKind kind;
} LayoutMeta;

typedef struct {
        guint32 page_bytes;
        GPtrArray *disks;    /* LayoutDisk */
        GArray *files;       /* LayoutFile, as the profile's files */
        GArray *meta;        /* LayoutMeta, in order of first use */
        GPtrArray *skipped;  /* Skipped (common/json.h); one line for all of a file system */
        gboolean meta_known; /* FALSE: `meta` lacks what could not be read, see meta_note */
        gchar *meta_note;
        gboolean logical_addresses; /* btrfs, compressed: places are not the drive's */
        guint64 measured;           /* files with a map */
        gboolean not_a_disk;        /* some were left out because they lie on no disk */
        guint64 cached;             /* files taken for cached */
} Layout;

typedef struct {
        const char *root; /* take the files below this directory; NULL: find file systems by UUID */
        const char *const *outside; /* path in this namespace of every file of the profile; NULL:
                                       from root or the mounts */
        const char *model;          /* a class for every disk; NULL: by the rotational flag */
        const char *cached; /* path on a file system whose files are taken for cached, or NULL */
} LayoutOptions;

/* Loads the layout of everything in the profile. Objects of metadata that its files need as they
 * lie now are added to profile->meta. What cannot be measured stands in `skipped`, be it
 * everything. Errors: COMMON_ERROR_USAGE (unknown model), COMMON_ERROR_UNSUPPORTED (no mount
 * table). */
Layout *layout_load(Profile *profile, const LayoutOptions *options, GError **error);

/* An empty layout, for what is filled in by hand (tests). */
Layout *layout_new(guint32 page_bytes);
guint32 layout_add_disk(Layout *layout, DiskModel *model, gboolean elevator,
                        guint64 readahead_bytes);
void layout_free(Layout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Layout, layout_free)

/* Appends to `out` the extents inside a range of a file, with places on the drive (physical_bytes
 * includes the device's offset). */
void layout_clip(const Layout *layout, guint32 file, guint64 offset_bytes, guint64 length_bytes,
                 GArray *out);

/* The drive with most of the ranges' bytes; 0 when there are none. */
guint32 layout_main_disk(const Layout *layout, const GArray *ranges);

/* As if the ranges lay one behind the other from `place_bytes` of their drive on; G_MAXUINT64 = at
 * the middle of where they lie. Files that come to lie in more pieces than an inode holds get an
 * extent-tree block beside the data. Pure. */
Layout *layout_relocate(const Layout *layout, const GArray *ranges, guint64 place_bytes);
