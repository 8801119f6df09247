// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The profile: what one start (of the machine or of a program) reads, in order of first use.
 *
 * It says nothing of where anything lies. Files are known by (file-system UUID, path inside that
 * file system, inode, generation, size, mtime); metadata by object (inode N, block K of directory
 * N,
 * ...), never by block number. Times are microseconds since the start of the recording.
 *
 * Invariants, checked by profile_validate() and by every load:
 *  - every ProfileFile.fs < fs->len, every ProfileRange.file < files->len, every ProfileMeta.fs <
 * fs->len;
 *  - ranges are in order of first use, have length > 0, begin and end on page boundaries (the end
 * may lie up to a page beyond the file's size), and no page of a file stands in two of them;
 *  - offset + length does not exceed G_MAXINT64;
 *  - files are in order of first use; paths are absolute, without NUL, "." or ".." parts.
 */
#pragma once

#include <glib.h>

#define PROFILE_PATH_MAX 65536    /* bytes; longer paths are refused */
#define PROFILE_FILES_MAX 4000000 /* limits of what a profile file may claim */
#define PROFILE_RANGES_MAX 64000000

/* How the page ranges were learned. Names in JSON: "used-pages", "read-in", "opens". */
typedef enum {
        PROFILE_SOURCE_USED_PAGES, /* page-cache look-ups and faults: pages used, cached or not */
        PROFILE_SOURCE_READ_IN,    /* pages added to the page cache, readahead included */
        PROFILE_SOURCE_OPENS,      /* only which files were opened; ranges are whole files */
} ProfileSource;

typedef enum {
        PROFILE_CAUSE_READ,    /* read(2) and kin */
        PROFILE_CAUSE_FAULT,   /* page fault in a mapping */
        PROFILE_CAUSE_MAP,     /* mapped by fault-around beside a fault: perhaps not used */
        PROFILE_CAUSE_READ_IN, /* read in by the kernel, use not seen */
        PROFILE_CAUSE_OPEN,    /* opened; use not seen */
} ProfileCause;

typedef struct {
        gchar *uuid;         /* lower case, as libblkid prints it; "" when there is none */
        gchar *type;         /* as in mountinfo: "ext4" */
        guint32 block_bytes; /* 0 = unknown */
} ProfileFs;

typedef struct {
        guint32 fs;         /* index into Profile.fs */
        guint32 generation; /* FS_IOC_GETVERSION, 0 = unknown */
        guint64 inode;
        guint64 size_bytes;
        gint64 mtime_ns;
        guint64 first_use_us;
        gchar *path; /* bytes; absolute, inside the file system ("/usr/bin/x") */
} ProfileFile;

typedef struct {
        guint32 file;  /* index into Profile.files */
        guint32 cause; /* ProfileCause of the first use */
        guint64 offset_bytes;
        guint64 length_bytes;
        guint64 first_use_us;
} ProfileRange;

typedef enum {
        PROFILE_META_INODE,         /* the inode-table block that holds inode N */
        PROFILE_META_DIR_BLOCK,     /* logical block `index` of directory N */
        PROFILE_META_EXTENT_NODE,   /* extent-tree node of inode N, number `index` in depth-first
                                       (pre-order) order, the root in the inode not counted */
        PROFILE_META_XATTR_BLOCK,   /* the external attribute block of inode N */
        PROFILE_META_SYMLINK_BLOCK, /* block `index` of a slow symbolic link N */
        PROFILE_META_BLOCK_BITMAP,  /* of group `index` */
        PROFILE_META_INODE_BITMAP,  /* of group `index` */
} ProfileMetaKind;

#define PROFILE_META_SEEN (1U << 0)     /* its read was seen in the recording */
#define PROFILE_META_COMPUTED (1U << 1) /* the files recorded need it */

typedef struct {
        guint32 fs;
        guint16 kind;  /* ProfileMetaKind */
        guint16 flags; /* PROFILE_META_SEEN | PROFILE_META_COMPUTED */
        guint64 inode;
        guint64 index;
        guint64 first_use_us;
} ProfileMeta;

typedef struct {
        gchar *name;
        GPtrArray *argv;   /* gchar *, bytes; the command recorded, empty for --boot */
        gint64 created_us; /* wall clock, microseconds since the epoch */
        ProfileSource source;
        gboolean exact;    /* recorded with the kernel's readahead off */
        gboolean complete; /* no event was lost */
        guint64 lost_events;
        guint64 unnamed_files; /* inodes seen that no name was found for */
        guint64 elapsed_us;    /* the start, from exec to its end */
        guint64 cpu_us;        /* user + system time of the command within it; 0 = unknown */
        gboolean cpu_warm;     /* cpu_us is of starts that read next to nothing from a disk */
        guint32 page_bytes;
        GArray *fs;     /* ProfileFs */
        GArray *files;  /* ProfileFile */
        GArray *ranges; /* ProfileRange */
        GArray *meta;   /* ProfileMeta */
} Profile;

Profile *profile_new(const char *name);
void profile_free(Profile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)

/* TRUE for a name that may be a file name and an option value: 1 to 100 bytes of letters, digits
 * and
 * "._+@:-", not beginning with '.' or '-'. */
gboolean profile_name_valid(const char *name);

/* A name from a command: the base name of argv[0], other bytes than the allowed ones as '_'. */
gchar *profile_name_from_command(const char *command);

/* Adds, taking copies of the strings; return the index. */
guint32 profile_add_fs(Profile *profile, const char *uuid, const char *type, guint32 block_bytes);
guint32 profile_add_file(Profile *profile, const ProfileFile *file);

/* Recording again under a name: what an earlier recording of the same command knows of its CPU time
 * when nothing has to be read is kept (reading costs CPU time too, most of all page by page), and
 * averaged when both know it. */
void profile_keep_cpu(Profile *profile, const Profile *earlier);

/* Sum over ranges, clipped to each file's size. */
guint64 profile_used_bytes(const Profile *profile);
/* Sum of the files' sizes. */
guint64 profile_file_bytes(const Profile *profile);

const char *profile_source_name(ProfileSource source);
const char *profile_cause_name(ProfileCause cause);
const char *profile_meta_kind_name(ProfileMetaKind kind);

/* Checks every invariant. Errors: COMMON_ERROR_INPUT. */
gboolean profile_validate(const Profile *profile, GError **error);

/* The profile's file: see docs/profile-format.md. Saving writes a temporary name in the same
 * folder, fsyncs, renames, fsyncs the folder. Loading checks magic, version, SHA-256, normal form
 * and the invariants. Errors: COMMON_ERROR_INPUT (damaged, cut off, too new), COMMON_ERROR_FAILED
 * (I/O). */
gboolean profile_save(const Profile *profile, const char *path, GError **error);
Profile *profile_load(const char *path, GError **error);
