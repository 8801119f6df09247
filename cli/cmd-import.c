// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * import: make a profile from somebody else's list, log or pack. The format's parser
 * (profiler/import-*.c) takes the bytes apart, profiler/resolve.c looks the names up. What cannot
 * be taken is counted and named; the rest goes on.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/progress.h"
#include "common/quote.h"
#include "common/state.h"
#include "profiler/import.h"
#include "profiler/resolve.h"

/* Of lists and packs, which are taken in whole; strace logs are read in pieces. */
#define INPUT_BYTES_MAX (1ULL << 30)
#define PIECE_BYTES (1 << 20)

typedef gboolean (*ParseFunc)(ImportList *list, const char *data, gsize size, GError **error);

static const struct {
        const char *name;
        ParseFunc parse; /* NULL = list or strace */
        ProfileSource source;
} formats[] = {
        {"list", NULL, PROFILE_SOURCE_OPENS},
        {"strace", NULL, PROFILE_SOURCE_OPENS},
        {"e4rat", import_parse_e4rat, PROFILE_SOURCE_OPENS},
        {"ureadahead", import_parse_ureadahead, PROFILE_SOURCE_READ_IN},
        {"systemd-readahead", import_parse_systemd, PROFILE_SOURCE_READ_IN},
};

typedef struct {
        const Cli *cli;
        guint format; /* index into formats */
        const char *file, *cwd;
        ImportList *list;
        Profile *profile;
        ResolveResult result;
} Import;

static gboolean
is_format(const Import *import, const char *name)
{
        return strcmp(formats[import->format].name, name) == 0;
}

/* A regular file, a pipe, or standard input for "-". A FIFO without a writer is not waited for. */
static int
open_input(const char *file, guint64 *ret_bytes, GError **error)
{
        auto_fd int fd = strcmp(file, "-") == 0
                                 ? dup(STDIN_FILENO)
                                 : open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0) {
                error_set_errno(error, COMMON_ERROR_INPUT, errno, "cannot read", file);
                return -1;
        }
        if (strcmp(file, "-") != 0 && !S_ISREG(st.st_mode)) {
                error_set_errno(error, COMMON_ERROR_INPUT, S_ISDIR(st.st_mode) ? EISDIR : ENODEV,
                                "cannot read", file);
                return -1;
        }
        *ret_bytes = S_ISREG(st.st_mode) ? (guint64)st.st_size : 0;
        return fd_steal(&fd);
}

/* Hands the input on in pieces. */
static gboolean
read_pieces(const Import *import, void (*take)(gpointer data, const char *bytes, gsize size),
            gpointer data, GError **error)
{
        g_autofree char *buffer = g_malloc(PIECE_BYTES);
        guint64 total = 0, done = 0;
        auto_fd int fd = open_input(import->file, &total, error);
        g_autoptr(Progress) progress =
                progress_new("reading", !import->cli->quiet && !import->cli->json);

        if (fd < 0)
                return FALSE;
        for (;;) {
                ssize_t got = read(fd, buffer, PIECE_BYTES);

                if (cli_interrupted) {
                        g_set_error_literal(error, COMMON_ERROR, COMMON_ERROR_INTERRUPTED,
                                            "interrupted, nothing saved");
                        return FALSE;
                }
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        error_set_errno(error, COMMON_ERROR_INPUT, errno, "cannot read",
                                        import->file);
                        return FALSE;
                }
                if (got == 0)
                        return TRUE;
                take(data, buffer, (gsize)got);
                done += (guint64)got;
                progress_update(progress, done, total, "bytes");
        }
}

typedef struct {
        GByteArray *all;
        gboolean too_large;
} Whole;

static void
take_whole(gpointer data, const char *bytes, gsize size)
{
        Whole *whole = data;

        if (whole->too_large || whole->all->len + (guint64)size > INPUT_BYTES_MAX)
                whole->too_large = TRUE;
        else
                g_byte_array_append(whole->all, (const guint8 *)bytes, (guint)size);
}

static void
take_strace(gpointer data, const char *bytes, gsize size)
{
        strace_import_feed(data, bytes, size);
}

static gboolean
parse(Import *import, GError **error)
{
        g_autoptr(GByteArray) all = g_byte_array_new();
        Whole whole = {.all = all};
        const char *data;

        if (is_format(import, "strace")) {
                g_autoptr(StraceImport) strace = strace_import_new(import->list, import->cwd);

                return read_pieces(import, take_strace, strace, error) &&
                       strace_import_finish(strace, error);
        }
        if (!read_pieces(import, take_whole, &whole, error))
                return FALSE;
        if (whole.too_large) {
                error_set_errno(error, COMMON_ERROR_INPUT, EFBIG, "cannot read", import->file);
                return FALSE;
        }
        data = all->len ? (const char *)all->data : "";
        if (formats[import->format].parse)
                return formats[import->format].parse(import->list, data, all->len, error);
        import_parse_list(import->list, data, all->len, import->cli->null);
        return TRUE;
}

static guint64
n_problems(const Import *import)
{
        guint64 n = 0;

        for (guint i = 0; i < import->list->problems->len; i++)
                n += g_array_index(import->list->problems, ImportProblem, i).count;
        return n;
}

static void
print_messages(const Import *import)
{
        const ResolveResult *result = &import->result;

        cli_print_skipped(import->cli, result->skipped);
        if (import->cli->verbose)
                for (guint i = 0; i < result->left_out->len; i++) {
                        const Skipped *entry = result->left_out->pdata[i];
                        g_autofree gchar *quoted = path_quote(entry->path);

                        cli_note(import->cli, "left out %s: %s", quoted, entry->reason);
                }
        for (guint i = 0; i < result->notes->len; i++)
                cli_note(import->cli, "%s", (const char *)result->notes->pdata[i]);
        if (result->replaced)
                cli_note(import->cli,
                         "%" G_GUINT64_FORMAT " files have another inode than in the recording: "
                         "replaced since, taken as they are now",
                         result->replaced);
        for (guint i = 0; i < import->list->problems->len; i++) {
                const ImportProblem *problem =
                        &g_array_index(import->list->problems, ImportProblem, i);
                g_autofree gchar *quoted = problem->example ? path_quote(problem->example) : NULL;

                cli_note(import->cli, "not resolved: %" G_GUINT64_FORMAT " x %s%s%s",
                         problem->count, problem->reason, quoted ? ", the first: " : "",
                         quoted ? quoted : "");
        }
}

static gboolean
print_json(const Import *import, GError **error)
{
        const Profile *p = import->profile;
        g_autoptr(JsonBuilder) builder = json_builder_new();

        json_builder_begin_object(builder);
        json_add_string(builder, "name", p->name);
        json_add_string(builder, "format", formats[import->format].name);
        json_add_string(builder, "source", profile_source_name(p->source));
        json_add_int(builder, "files", p->files->len);
        json_add_int(builder, "ranges", p->ranges->len);
        json_add_int(builder, "used_bytes", (gint64)profile_used_bytes(p));
        json_add_int(builder, "file_bytes", (gint64)profile_file_bytes(p));
        json_add_int(builder, "metadata_blocks", p->meta->len);
        json_add_int(builder, "processes", p->processes->len);
        json_add_double(builder, "elapsed_ms", (double)p->elapsed_us / 1000);
        if (is_format(import, "strace")) {
                json_add_int(builder, "opens", (gint64)import->list->opens);
                json_add_int(builder, "failed_opens", (gint64)import->list->failed);
                json_add_int(builder, "directory_opens", (gint64)import->list->directories);
                json_add_int(builder, "write_only_opens", (gint64)import->list->write_only);
                json_add_int(builder, "not_file_opens", (gint64)import->list->not_files);
        }
        json_add_int(builder, "replaced", (gint64)import->result.replaced);
        json_add_skipped(builder, "skipped", import->result.skipped);
        json_add_skipped(builder, "left_out", import->result.left_out);
        json_builder_set_member_name(builder, "unresolved");
        json_builder_begin_array(builder);
        for (guint i = 0; i < import->list->problems->len; i++) {
                const ImportProblem *problem =
                        &g_array_index(import->list->problems, ImportProblem, i);

                json_builder_begin_object(builder);
                json_add_string(builder, "reason", problem->reason);
                json_add_int(builder, "count", (gint64)problem->count);
                if (problem->example)
                        json_add_path(builder, "example", problem->example);
                json_builder_end_object(builder);
        }
        json_builder_end_array(builder);
        json_builder_end_object(builder);
        return json_print(builder, error);
}

static gboolean
print_result(const Import *import, GError **error)
{
        const Profile *p = import->profile;

        if (import->cli->json)
                return print_json(import, error);
        print_messages(import);
        if (!import->cli->quiet)
                printf("%s: %u files, %u ranges, %u metadata objects, %u entries skipped, "
                       "%" G_GUINT64_FORMAT " not resolved\n",
                       p->name, p->files->len, p->ranges->len, p->meta->len,
                       import->result.skipped->len, n_problems(import));
        return TRUE;
}

static gboolean
import_file(Import *import, GError **error)
{
        const ResolveOptions options = {
                .root = import->cli->root,
                .trace = is_format(import, "strace"),
                .interrupted = &cli_interrupted,
        };
        g_autofree gchar *path = NULL;

        if (!parse(import, error) ||
            !resolve_profile(import->list, &options, import->profile, &import->result, error))
                return FALSE;
        if (import->profile->files->len == 0) {
                print_messages(import);
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "it names no file that can be taken (%u skipped, %" G_GUINT64_FORMAT
                            " not resolved); nothing saved",
                            import->result.skipped->len, n_problems(import));
                return FALSE;
        }
        import->profile->complete = n_problems(import) == 0;
        import->profile->lost_events = n_problems(import);
        path = state_profile_path(import->cli->state, import->profile->name);
        return state_prepare(import->cli->state, error) &&
               profile_save(import->profile, path, error);
}

/* The name of the profile when none is given: that of the file, without its last extension. */
static gchar *
name_from_file(const char *file)
{
        g_autofree gchar *base = g_path_get_basename(file);
        gchar *dot = strrchr(base, '.');

        if (strcmp(file, "-") == 0)
                return NULL;
        if (dot && dot != base)
                *dot = '\0';
        return profile_name_from_command(base);
}

int
cmd_import(Cli *cli, int argc, char **argv)
{
        g_autofree gchar *name = NULL, *format = NULL, *cwd = NULL;
        g_autoptr(GError) error = NULL;
        Import import = {.cli = cli, .format = G_N_ELEMENTS(formats)};
        const GOptionEntry entries[] = {
                {"format", 0, 0, G_OPTION_ARG_STRING, &format,
                 "list, strace, e4rat, ureadahead or systemd-readahead", "F"},
                {"name", 0, 0, G_OPTION_ARG_STRING, &name,
                 "Name of the profile (default: from FILE)", "N"},
                {"cwd", 0, 0, G_OPTION_ARG_FILENAME, &cwd,
                 "strace: the folder in which the traced command was started", "DIR"},
                {NULL, 0, 0, 0, NULL, NULL, NULL},
        };
        int status;

        if (!cli_parse(cli, &argc, &argv, entries, "FILE", FALSE, &error))
                return cli_fail(cli, error);
        for (guint i = 0; format && i < G_N_ELEMENTS(formats); i++)
                if (strcmp(format, formats[i].name) == 0)
                        import.format = i;
        if (import.format == G_N_ELEMENTS(formats))
                return cli_usage(cli, "--format wants list, strace, e4rat, ureadahead or "
                                      "systemd-readahead");
        if (argc != 2)
                return cli_usage(cli, "which file? headstart import --format F --name N FILE");
        if (cwd && (cwd[0] != '/' || !is_format(&import, "strace")))
                return cli_usage(cli, cwd[0] != '/' ? "--cwd wants an absolute path"
                                                    : "--cwd is for --format strace");
        if (cli->null && !is_format(&import, "list"))
                return cli_usage(cli, "--null is for --format list");
        if (!name)
                name = name_from_file(argv[1]);
        if (!name || !profile_name_valid(name))
                return cli_usage(cli, "--name wants letters, digits and ._+@:- only, at most 100");

        import.file = argv[1];
        import.cwd = cwd;
        import.profile = profile_new(name);
        import.profile->created_us = g_get_real_time();
        import.profile->source = formats[import.format].source;
        import.profile->page_bytes = (guint32)sysconf(_SC_PAGESIZE);
        import.list = import_list_new(import.profile->page_bytes);
        resolve_result_init(&import.result);
        if (import_file(&import, &error) && print_result(&import, &error))
                status = import.result.skipped->len > 0 || n_problems(&import) > 0
                                 ? EXIT_STATUS_PARTIAL
                                 : EXIT_STATUS_DONE;
        else
                status = cli_fail(cli, error);
        resolve_result_clear(&import.result);
        import_list_free(import.list);
        profile_free(import.profile);
        return status;
}
