// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What somebody else's recording says was accessed, before anything is looked up: names as bytes,
 * ranges, times. Parsers fill it from bytes and know no file system; profiler/resolve.h turns it
 * into a profile. All input is hostile until proven whole. The formats: docs/formats.md.
 *
 * Memory grows with the distinct names and ranges, not with the length of the log: what was named
 * before adds nothing.
 */
#pragma once

#include <glib.h>

#define IMPORT_WHOLE G_MAXUINT64 /* as length: to the end of the file */
#define IMPORT_NAME_MAX 65536    /* bytes of one name */

typedef enum {
        IMPORT_OPENED,   /* opened; what was read of it may follow */
        IMPORT_EXECUTED, /* whole, as far as anybody can tell */
        IMPORT_MAPPED,   /* a range was mapped; which pages of it were used is not known */
        IMPORT_READ,     /* a range was read */
        IMPORT_RESIDENT, /* a range was in the page cache after the start */
        IMPORT_LISTED,   /* named, to be read whole */
} ImportKind;

typedef struct {
        guint32 path;    /* index into ImportList.paths */
        guint32 process; /* number in ImportList.processes; 0 = not known */
        ImportKind kind;
        guint64 offset_bytes, length_bytes;
        guint64 time_us; /* since the start; its rank where the format has no times */
} ImportAccess;

typedef struct {
        gchar *bytes;  /* as found, absolute or not */
        guint64 inode; /* what it had then; 0 = not known */
        guint kinds;   /* 1 << ImportKind: the whole-file kinds already there */
        gboolean written;
        gpointer pages; /* private */
} ImportPath;

typedef struct {
        gint64 pid;
        guint32 parent; /* number, less than its own; 0 = none */
        guint64 start_us, exit_us;
        gchar *comm, *executable; /* bytes, NULL = not known */
} ImportProcess;

typedef struct {
        guint64 time_us;
        guint32 process;
        gchar *text;
} ImportMark;

typedef struct {
        const char *reason; /* static */
        guint64 count;
        gchar *example; /* bytes of the first one, NULL = none */
} ImportProblem;

typedef struct {
        GArray *paths;       /* ImportPath */
        GArray *accesses;    /* ImportAccess */
        GArray *processes;   /* ImportProcess */
        GArray *marks;       /* ImportMark */
        GArray *problems;    /* ImportProblem: what could not be resolved, counted */
        guint64 opens;       /* successful opens found */
        guint64 directories; /* of these: of directories, by their flags */
        guint64 not_files;   /* of these: of pipes, sockets and the like, as the log says */
        guint64 write_only;  /* of these: for writing only */
        guint64 failed;      /* opens that failed */
        guint64 end_us;      /* of the last line; 0 where there are no times */
        gboolean has_times;
        gboolean saw_reads, saw_maps; /* a file without either was opened and not used */
        guint32 page_bytes;
        GHashTable *index; /* private: bytes -> number */
} ImportList;

ImportList *import_list_new(guint32 page_bytes);
void import_list_free(ImportList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ImportList, import_list_free)

/* The index of the name, which is added when new. G_MAXUINT32 (and a problem is counted) when it is
 * empty, holds a NUL, or is too long. */
guint32 import_list_path(ImportList *list, const char *bytes, gsize length);

/* Adds what of it is new; a piece that continues the last one lengthens it. */
void import_list_add(ImportList *list, const ImportAccess *access);

/* Counts what could not be resolved; `reason` is static text, `bytes` an example or NULL. */
void import_list_problem(ImportList *list, const char *reason, const char *bytes, gsize length);

/* One format a file, pure; `data` need not end in NUL. Errors: COMMON_ERROR_INPUT, saying where.
 * list: a name a line, '#' and empty lines are comments; with `null` each ends in NUL, no comments.
 */
void import_parse_list(ImportList *list, const char *data, gsize size, gboolean null);
gboolean import_parse_e4rat(ImportList *list, const char *data, gsize size, GError **error);
gboolean import_parse_ureadahead(ImportList *list, const char *data, gsize size, GError **error);
gboolean import_parse_systemd(ImportList *list, const char *data, gsize size, GError **error);

/* strace logs are fed in pieces of any size, in one pass. `cwd` is where the traced command was
 * started, NULL = not known (relative names are then counted as such until the log tells). */
typedef struct StraceImport StraceImport;
StraceImport *strace_import_new(ImportList *list, const char *cwd);
void strace_import_feed(StraceImport *strace, const char *data, gsize size);
/* To be called once, after the last piece. COMMON_ERROR_INPUT when there was no call at all. */
gboolean strace_import_finish(StraceImport *strace, GError **error);
void strace_import_free(StraceImport *strace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StraceImport, strace_import_free)
