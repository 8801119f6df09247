// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log.c - the write log.
 *
 * FORMAT. Little-endian, no padding. A 32-byte header:
 *      0  16  magic "slowdisk-log", NUL, NUL, version 1, NUL
 *     16   8  size of the device in bytes
 *     24   8  0
 * then records, each 40 bytes and its data:
 *      0   8  number of the record, counted from 0
 *      8   8  time in ns since the log was opened
 *     16   4  kind: 'W' write, 'D' discard (reads as zeros), 'F' flush, 'f' flush answered
 *     20   4  bytes of data that follow (write: as many as written; else 0)
 *     24   8  offset in bytes ('f': the number of the 'F' record it answers)
 *     32   8  length in bytes (0 for 'F' and 'f')
 * A log cut off inside a record is whole up to the record before.
 *
 * MEANING. A record is appended when its request arrives, in the order in which data reach the
 * backing file. Replaying the records before any number N onto the image as it was before the run
 * gives the state of a device that lost power then, having kept its writes in order. A device may
 * also have lost any of the writes after the last flush: when an 'f' with offset F lies before N,
 * all writes before record F are durable, and a reader may drop any subset of those after it. A
 * write is torn at sector boundaries at most.
 */
#include "log.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

G_STATIC_ASSERT(sizeof(LogHeader) == 32);
G_STATIC_ASSERT(sizeof(LogRecord) == 40);

/* Larger than any request: a larger claim in a file is damage. */
#define DATA_MAX (64u << 20)

struct WriteLog {
        int fd;
        gboolean failed;
        guint64 next;
        guint64 origin_ns;
};

static guint64
clock_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (guint64)now.tv_sec * 1000000000u + (guint64)now.tv_nsec;
}

static void
set_error(GError **error, const char *operation, const char *path)
{
        int errnum = errno;

        g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errnum), "%s %s: %s",
                    operation, path, g_strerror(errnum));
}

WriteLog *
write_log_open(const char *path, guint64 device_bytes, GError **error)
{
        LogHeader header = {.device_bytes = GUINT64_TO_LE(device_bytes)};
        auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        WriteLog *log;

        memcpy(header.magic, WRITE_LOG_MAGIC, sizeof header.magic);
        if (fd < 0 || write(fd, &header, sizeof header) != (ssize_t)sizeof header) {
                set_error(error, "cannot write", path);
                return NULL;
        }
        log = g_new0(WriteLog, 1);
        log->fd = fd_steal(&fd);
        log->origin_ns = clock_ns();
        return log;
}

void
write_log_close(WriteLog *log)
{
        if (log == NULL)
                return;
        close(log->fd);
        g_free(log);
}

gint64
write_log_append(WriteLog *log, LogKind kind, guint64 offset, guint64 bytes, const void *data)
{
        guint32 data_bytes = data != NULL ? (guint32)bytes : 0;
        LogRecord record = {
                .number = GUINT64_TO_LE(log->next),
                .time_ns = GUINT64_TO_LE(clock_ns() - log->origin_ns),
                .kind = GUINT32_TO_LE((guint32)kind),
                .data_bytes = GUINT32_TO_LE(data_bytes),
                .offset = GUINT64_TO_LE(offset),
                .bytes = GUINT64_TO_LE(bytes),
        };
        struct iovec parts[2] = {{&record, sizeof record}, {(void *)(guintptr)data, data_bytes}};
        ssize_t written;

        if (log->failed) {
                errno = EIO;
                return -1;
        }
        written = writev(log->fd, parts, data_bytes > 0 ? 2 : 1);
        if (written != (ssize_t)(sizeof record + data_bytes)) {
                log->failed = TRUE;
                errno = written < 0 ? errno : ENOSPC;
                return -1;
        }
        return (gint64)log->next++;
}

/* 1: all read; 0: the end, perhaps within; -1: errno. */
static int
read_all(int fd, void *buffer, size_t bytes)
{
        size_t done = 0;

        while (done < bytes) {
                ssize_t n = read(fd, (char *)buffer + done, bytes - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return (int)n;
                done += (size_t)n;
        }
        return 1;
}

int
write_log_open_read(const char *path, LogHeader *ret_header, GError **error)
{
        auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        LogHeader header;

        if (fd < 0) {
                set_error(error, "cannot open", path);
                return -1;
        }
        if (read_all(fd, &header, sizeof header) != 1 ||
            memcmp(header.magic, WRITE_LOG_MAGIC, sizeof header.magic) != 0) {
                g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s is no write log", path);
                return -1;
        }
        header.device_bytes = GUINT64_FROM_LE(header.device_bytes);
        *ret_header = header;
        return fd_steal(&fd);
}

gboolean
write_log_next(int fd, LogRecord *ret_record, GByteArray *data, GError **error)
{
        LogRecord record;
        int got = read_all(fd, &record, sizeof record);

        if (got < 0)
                set_error(error, "cannot read", "the log");
        if (got <= 0)
                return FALSE;
        record.number = GUINT64_FROM_LE(record.number);
        record.time_ns = GUINT64_FROM_LE(record.time_ns);
        record.kind = GUINT32_FROM_LE(record.kind);
        record.data_bytes = GUINT32_FROM_LE(record.data_bytes);
        record.offset = GUINT64_FROM_LE(record.offset);
        record.bytes = GUINT64_FROM_LE(record.bytes);
        if (record.data_bytes > DATA_MAX ||
            record.data_bytes != (record.kind == LOG_WRITE ? record.bytes : 0)) {
                g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                            "record %" G_GUINT64_FORMAT " of the log is damaged", record.number);
                return FALSE;
        }
        g_byte_array_set_size(data, record.data_bytes);
        got = read_all(fd, data->data, record.data_bytes);
        if (got < 0)
                set_error(error, "cannot read", "the log");
        if (got <= 0)
                return FALSE;
        *ret_record = record;
        return TRUE;
}
