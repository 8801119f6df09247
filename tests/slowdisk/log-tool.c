// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * log-tool.c - slowdisk-log: prints a write log, or replays it up to a cut.
 *
 *      slowdisk-log list LOG
 *      slowdisk-log replay LOG BASE OUT [--until N]
 *
 * replay copies the image BASE (as it was before the run; holes stay holes) to OUT and applies the
 * records before number N, all without --until. See log.c for the format and what a cut means.
 */
#include "log.h"

#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean
fail(GError **error, const char *operation, const char *path)
{
        int errnum = errno;

        g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errnum), "%s %s: %s",
                    operation, path, g_strerror(errnum));
        return FALSE;
}

static gboolean
list(const char *path, GError **error)
{
        g_autoptr(GByteArray) data = g_byte_array_new();
        GError *local = NULL;
        LogHeader header;
        LogRecord record;
        auto_fd int fd = write_log_open_read(path, &header, error);

        if (fd < 0)
                return FALSE;
        printf("device %" PRIu64 "\n", header.device_bytes);
        while (write_log_next(fd, &record, data, &local)) {
                printf("%" PRIu64 " %.6f ", record.number, (double)record.time_ns / 1e9);
                switch (record.kind) {
                case LOG_WRITE:
                        printf("write %" PRIu64 " %" PRIu64 "\n", record.offset, record.bytes);
                        break;
                case LOG_DISCARD:
                        printf("discard %" PRIu64 " %" PRIu64 "\n", record.offset, record.bytes);
                        break;
                case LOG_FLUSH: puts("flush"); break;
                case LOG_FLUSH_DONE: printf("flush-done %" PRIu64 "\n", record.offset); break;
                default: printf("unknown %" PRIu32 "\n", record.kind); break;
                }
        }
        if (local != NULL) {
                g_propagate_error(error, local);
                return FALSE;
        }
        return TRUE;
}

static gboolean
write_all(int fd, const guint8 *data, size_t bytes, guint64 offset)
{
        while (bytes > 0) {
                ssize_t n = pwrite(fd, data, bytes, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return FALSE;
                data += n;
                bytes -= (size_t)n;
                offset += (guint64)n;
        }
        return TRUE;
}

/* Copies the data of @base to the empty @out, and no holes. */
static gboolean
copy_sparse(int base, int out, off_t size)
{
        g_autofree guint8 *buffer = g_malloc(1 << 20);
        off_t at = 0;

        if (ftruncate(out, size) != 0)
                return FALSE;
        while (at < size) {
                off_t begin = lseek(base, at, SEEK_DATA), end;

                if (begin < 0)
                        return errno == ENXIO;
                end = lseek(base, begin, SEEK_HOLE);
                for (at = begin; at < end;) {
                        ssize_t n = pread(base, buffer, (size_t)MIN(end - at, 1 << 20), at);

                        if (n < 0 && errno == EINTR)
                                continue;
                        if (n < 0 || !write_all(out, buffer, (size_t)n, (guint64)at))
                                return FALSE;
                        if (n == 0)
                                break;
                        at += n;
                }
                at = end;
        }
        return TRUE;
}

static gboolean
replay(const char *log_path, const char *base_path, const char *out_path, guint64 until,
       GError **error)
{
        g_autoptr(GByteArray) data = g_byte_array_new();
        GError *local = NULL;
        LogHeader header;
        LogRecord record;
        guint64 applied = 0;
        struct stat st;
        auto_fd int log = write_log_open_read(log_path, &header, error);
        auto_fd int base = open(base_path, O_RDONLY | O_CLOEXEC);
        auto_fd int out = -1;

        if (log < 0)
                return FALSE;
        if (base < 0 || fstat(base, &st) != 0)
                return fail(error, "cannot open", base_path);
        out = open(out_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (out < 0)
                return fail(error, "cannot create", out_path);
        if (!copy_sparse(base, out, MAX(st.st_size, (off_t)header.device_bytes)))
                return fail(error, "cannot copy to", out_path);
        while (applied < until && write_log_next(log, &record, data, &local)) {
                if (record.kind == LOG_WRITE || record.kind == LOG_DISCARD) {
                        if (record.offset > header.device_bytes ||
                            record.bytes > header.device_bytes - record.offset) {
                                g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                                            "record %" PRIu64 " lies outside the device",
                                            record.number);
                                return FALSE;
                        }
                        if (record.kind == LOG_WRITE
                                    ? !write_all(out, data->data, data->len, record.offset)
                                    : fallocate(out, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                                (off_t)record.offset, (off_t)record.bytes) != 0)
                                return fail(error, "cannot write", out_path);
                }
                applied++;
        }
        if (local != NULL) {
                g_propagate_error(error, local);
                return FALSE;
        }
        printf("%" PRIu64 " records applied\n", applied);
        return TRUE;
}

static gboolean
run(int argc, char **argv, GError **error)
{
        guint64 until = G_MAXUINT64;

        if (argc == 3 && strcmp(argv[1], "list") == 0)
                return list(argv[2], error);
        if ((argc == 5 || (argc == 7 && strcmp(argv[5], "--until") == 0)) &&
            strcmp(argv[1], "replay") == 0) {
                if (argc == 7 &&
                    !g_ascii_string_to_unsigned(argv[6], 10, 0, G_MAXUINT64, &until, error))
                        return FALSE;
                return replay(argv[2], argv[3], argv[4], until, error);
        }
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                            "usage: slowdisk-log list LOG | replay LOG BASE OUT [--until N]");
        return FALSE;
}

int
main(int argc, char **argv)
{
        g_autoptr(GError) error = NULL;

        if (run(argc, argv, &error))
                return 0;
        fprintf(stderr, "slowdisk-log: %s\n", error->message);
        return g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED) ? 2 : 1;
}
