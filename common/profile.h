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
 *  - processes come after their parents; what refers to a process or file refers to one that
 * exists, or to none; waits and marks are in order of time;
 *  - files are in order of first use (those of `changing` in any); paths are absolute, without NUL,
 * "." or ".." parts.
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

#define PROFILE_FILE_EXECUTED (1U << 0) /* a process executed it */
/* Not seen in the last start, but in one of the two before: late in the order. */
#define PROFILE_FILE_LOW (1U << 1)
/* Which of the last three starts used a file or a metadata object, in the flags of either: the bit
 * at PROFILE_SEEN_SHIFT is the last start. None is set in a profile that was never merged. */
#define PROFILE_SEEN_SHIFT 8
#define PROFILE_SEEN_MASK (7U << PROFILE_SEEN_SHIFT)

typedef struct {
        guint32 fs;         /* index into Profile.fs */
        guint32 generation; /* FS_IOC_GETVERSION, 0 = unknown */
        guint64 inode;
        guint64 size_bytes;
        gint64 mtime_ns;
        guint64 first_use_us;
        guint64 opened_us;   /* first open seen; 0 = not known */
        guint64 last_use_us; /* last read of it that was seen; 0 = not known */
        guint32 flags;       /* PROFILE_FILE_... */
        gchar *path;         /* bytes; absolute, inside the file system ("/usr/bin/x") */
} ProfileFile;

#define PROFILE_RANGE_MISS (1U << 0)  /* it had to be read from the disk */
#define PROFILE_RANGE_HIT (1U << 1)   /* it was cached; neither: not known */
#define PROFILE_RANGE_EXACT (1U << 2) /* learned with the kernel's readahead off */
/* References that may be missing are numbers from 1 on: 1 = index 0; 0 = none, so that records that
 * are set to zero refer to nothing. */

typedef struct {
        guint32 file;     /* index into Profile.files */
        guint16 cause;    /* ProfileCause of the first use */
        guint16 flags;    /* PROFILE_RANGE_... */
        guint32 process;  /* number in Profile.processes: who used it first; 0 = not known */
        guint32 stall_us; /* how long that thread waited for it */
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
        gint32 pid;
        guint32 parent;    /* number in Profile.processes, less than its own; 0 = none */
        guint64 start_us;  /* forked; 0 = before the recording */
        guint64 exit_us;   /* 0 = still running at the end */
        gchar *comm;       /* bytes; the name at the end */
        gchar *executable; /* bytes; what it executed last, as far as known, else "" */
} ProfileProcess;

/* Why a thread was not on a CPU. */
typedef enum {
        PROFILE_WAIT_RUNNABLE, /* waited for a CPU */
        PROFILE_WAIT_DISK,
        PROFILE_WAIT_LOCK, /* futex and kin */
        PROFILE_WAIT_PIPE, /* pipe, socket, poll on them */
        PROFILE_WAIT_TERMINAL,
        PROFILE_WAIT_SLEEP, /* a timer of its own */
        PROFILE_WAIT_CHILD, /* wait4 and kin */
        PROFILE_WAIT_OTHER,
} ProfileWaitReason;

typedef struct {
        guint32 process; /* number in Profile.processes; 0 = not known */
        gint32 tid;
        guint16 reason; /* ProfileWaitReason */
        gint16 syscall; /* number on the recording's architecture, -1 = a fault or not known */
        guint32 file;   /* number in Profile.files: waited for it; 0 = none */
        guint64 start_us, length_us;
} ProfileWait;

typedef struct {
        guint64 time_us;
        guint32 process; /* number in Profile.processes; 0 = from outside */
        gchar *text;     /* bytes */
} ProfileMark;

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
        guint64 warm_us; /* a start that reads next to nothing from a disk, from exec to its end;
                            0 = none was recorded */
        guint32 page_bytes;
        GArray *fs;       /* ProfileFs */
        GArray *files;    /* ProfileFile */
        GArray *changing; /* ProfileFile, without ranges: left out because every start found another
                             inode, size or time; kept to be compared again */
        GArray *ranges;   /* ProfileRange */
        GArray *meta;     /* ProfileMeta */
        GArray *processes; /* ProfileProcess, in order of start */
        GArray *waits;     /* ProfileWait, in order of start; only with --why */
        GArray *marks;     /* ProfileMark, in order of time */
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
/* Returns its number (index + 1). */
guint32 profile_add_process(Profile *profile, const ProfileProcess *process);
void profile_add_mark(Profile *profile, const ProfileMark *mark);

/* Recording again under a name: what an earlier recording of the same command knows of the time of
 * a warm start is kept, and averaged when both know it. */
void profile_keep_warm(Profile *profile, const Profile *earlier);

/* Sum over ranges, clipped to each file's size. */
guint64 profile_used_bytes(const Profile *profile);
/* Sum of the files' sizes. */
guint64 profile_file_bytes(const Profile *profile);

const char *profile_source_name(ProfileSource source);
const char *profile_cause_name(ProfileCause cause);
const char *profile_wait_reason_name(ProfileWaitReason reason);
const char *profile_meta_kind_name(ProfileMetaKind kind);

/* Checks every invariant. Errors: COMMON_ERROR_INPUT. */
gboolean profile_validate(const Profile *profile, GError **error);

/* The profile's file: see docs/profile-format.md. Saving writes a temporary name in the same
 * folder, fsyncs, renames, fsyncs the folder. Loading checks magic, version, SHA-256, normal form
 * and the invariants. Errors: COMMON_ERROR_INPUT (damaged, cut off, too new), COMMON_ERROR_FAILED
 * (I/O). */
gboolean profile_save(const Profile *profile, const char *path, GError **error);
Profile *profile_load(const char *path, GError **error);
