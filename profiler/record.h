// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One recording, of a command or of the whole machine: chooses the source, starts the command,
 * watches until its start has ended and makes the profile. The command itself runs on; whoever
 * calls waits for it.
 */
#pragma once

#include <glib.h>

#include "common/profile.h"
#include "profiler/build.h"
#include "profiler/end.h"
#include "profiler/start.h"
#include "profiler/why-record.h"

/* Text of the mark that a profile gets when the boot has reached its goal. */
#define RECORD_GOAL_MARK "default.target"

typedef struct {
        char *const *argv; /* NULL-ended; NULL = no command, then whole_machine */
        const char *name;
        gboolean exact;
        gboolean whole_machine; /* every process but this one, not only the command */
        const char *root;       /* only what lies on file systems mounted at or below this folder
                                   (absolute, resolved), else on its own and below it; NULL = all;
                                   wants whole_machine */
        gboolean wait_goal;     /* quiet spells count only after the boot has reached its goal */
        gboolean limited_queue; /* of opens: for tests */
        StartEndRule rule;
        const char *until; /* the mark, NULL = none */
        gboolean why;      /* reasons for waiting too */
        WhyWay why_way;
        gboolean stdout_to_stderr; /* of the command */
        guint buffer_kb;           /* per CPU, 0 = by the machine's memory */
        const Profile
                *previous;  /* exact: its files are dropped from the cache first; may be NULL */
        const Rules *rules; /* of paths to leave out; NULL = none */
        void (*note)(const char *text, gpointer data); /* what people should know, escaped */
        gpointer note_data;
} RecordOptions;

typedef struct {
        Started started; /* valid when started.pid > 0, also after an error */
        StartEnd end;
        const char *why_source; /* of the reasons for waiting; NULL = none asked for */
        gboolean access_marks;  /* marks of access() were seen */
        const char *method;     /* how it was recorded, for people; NULL without a profile */
        guint64 goal_us;        /* since the start: the boot's goal was reached; 0 = not seen */
        BuildResult built;
} RecordResult;

/* COMMON_ERROR_UNSUPPORTED naming the capability that is missing. */
gboolean record_check_privilege(GError **error);

/* Errors: START_ERROR (the command), COMMON_ERROR_UNSUPPORTED (no source works here),
 * COMMON_ERROR_INTERRUPTED (a signal ended the command before its start had ended),
 * COMMON_ERROR_FAILED. The profile has no files when the command read none from a disk. Initialises
 * *ret always; clear it with record_result_clear(). */
Profile *record_command(const RecordOptions *options, RecordResult *ret, GError **error);
void record_result_clear(RecordResult *result);
