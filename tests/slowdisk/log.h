// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log.h - the write log: every write, discard and flush of a run, with data, in order.
 *
 * The format is described in log.c.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define WRITE_LOG_MAGIC                                                                            \
        "slowdisk-log\0\0\1" /* 16 bytes with the final NUL; the last is the version */

typedef enum {
        LOG_WRITE = 'W',
        LOG_DISCARD = 'D',
        LOG_FLUSH = 'F',      /* a flush arrived */
        LOG_FLUSH_DONE = 'f', /* and was answered; offset: the number of its LOG_FLUSH record */
} LogKind;

typedef struct {
        guint8 magic[16];
        guint64 device_bytes;
        guint64 reserved;
} LogHeader;

typedef struct {
        guint64 number;  /* 0, 1, 2, ... */
        guint64 time_ns; /* since the log was opened */
        guint32 kind;
        guint32 data_bytes; /* that follow; only after LOG_WRITE */
        guint64 offset, bytes;
} LogRecord;

typedef struct WriteLog WriteLog;

/* Creates (truncates) the log of a device of @device_bytes. */
WriteLog *write_log_open(const char *path, guint64 device_bytes, GError **error);
void write_log_close(WriteLog *log);

/*
 * Appends a record; @data only for LOG_WRITE. Not locked: the caller keeps the order. Returns the
 * record's number, or -1 and errno, after which the log takes no more records.
 */
gint64 write_log_append(WriteLog *log, LogKind kind, guint64 offset, guint64 bytes,
                        const void *data);

/* Reading. */
int write_log_open_read(const char *path, LogHeader *ret_header, GError **error);

/* The next record; its data go to @data (enlarged as needed). FALSE at the end or on an error. */
gboolean write_log_next(int fd, LogRecord *ret_record, GByteArray *data, GError **error);
