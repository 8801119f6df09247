// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line of strace's output, taken apart. Pure; slices point into the line. Understood are the
 * prefixes of -f ("[pid N]" and the leading number of -o), -Y, -t, -tt, -ttt, -r, -n and -i, the
 * annotations of -y and -yy, unfinished and resumed calls, exit and signal lines.
 */
#pragma once

#include <glib.h>

#define STRACE_ARGS_MAX 8
#define STRACE_PID_MAX 4194304 /* PID_MAX_LIMIT of 64-bit kernels */

typedef struct {
        const char *p;
        gsize n;
} Slice;

typedef enum {
        STRACE_OTHER, /* a message, a stack frame of -k, rubbish */
        STRACE_CALL,
        STRACE_UNFINISHED,
        STRACE_RESUMED,
        STRACE_EXITED,
        STRACE_SUPERSEDED, /* another thread's execve took over this process */
        STRACE_SIGNAL,
} StraceKind;

typedef enum {
        STRACE_NO_TIME,
        STRACE_TIME_OF_DAY, /* since midnight */
        STRACE_TIME_EPOCH,
        STRACE_TIME_DELTA, /* since the line before */
} StraceTime;

typedef struct {
        StraceKind kind;
        gint64 pid; /* -1 = none on the line; of STRACE_SUPERSEDED see `other` */
        gint64 other;
        Slice comm; /* of -Y; n 0 = none */
        StraceTime time_kind;
        guint64 time_ns;
        Slice name; /* of the system call */
        Slice rest; /* what follows '(' or "resumed>", without " <unfinished ...>" */
} StraceLine;

typedef struct {
        Slice args[STRACE_ARGS_MAX];
        guint n_args;
        gboolean returned; /* there is a number after '=' */
        gint64 value;
        Slice annotation; /* what -y says of the descriptor returned; n 0 = nothing */
        gboolean deleted; /* that file has no name any more */
} StraceCall;

/* FALSE never: what is not understood is STRACE_OTHER. The line has no newline. */
void strace_line_parse(const char *line, gsize length, StraceLine *ret);

/* What stands after the '(' of a whole call. FALSE when it does not end in ") = ". */
gboolean strace_call_parse(const char *text, gsize length, StraceCall *ret);

/* A quoted string's bytes (may hold NUL; the length counts); NULL when the slice is no string.
 * *ret_cut: it ends in "...". */
gchar *strace_string(Slice slice, gsize *ret_length, gboolean *ret_cut);

/* Undoes the escapes of text without quotes (annotations). */
gchar *strace_unescape(Slice slice, gsize *ret_length);

/* A descriptor "3" or "3</path>" or "AT_FDCWD</path>" (-100). FALSE for anything else.
 * *ret_annotation as it stands, n 0 = none. */
gboolean strace_descriptor(Slice slice, gint64 *ret_fd, Slice *ret_annotation,
                           gboolean *ret_deleted);

/* A number, decimal, octal or hexadecimal, also within "[...]". */
gboolean strace_number(Slice slice, gint64 *ret);

/* TRUE when the flag stands in "A|B|C" (or in a structure). */
gboolean strace_has_flag(Slice slice, const char *flag);
