// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System calls by their meaning: opens, reads, maps, and what moves names (chdir, chroot) and
 * descriptors (dup, close, fork) about. Names are kept as they were given, with the directory in
 * front: symbolic links make any tidying of ".." wrong, so that is left to the look-up.
 */
#include "profiler/strace-calls.h"

#include <string.h>

#include "profiler/strace-meaning.h"

#define NO_PATH G_MAXUINT32
/* A working directory is tidied when it gets longer than any the kernel would take. */
#define CWD_MAX 4096

typedef struct {
        TraceState *state;
        TraceProcess *process;
        const StraceCall *call;
        guint64 time_us;
} Call;

static Slice
arg(const Call *c, guint i)
{
        return i < c->call->n_args ? c->call->args[i] : (Slice){"", 0};
}

static void
problem(const Call *c, const char *reason, const char *example)
{
        import_list_problem(c->state->list, reason, example, example ? strlen(example) : 0);
}

static gboolean
is_path(Slice annotation)
{
        return annotation.n > 0 && annotation.p[0] == '/';
}

/* The directory that a relative name begins at, or NULL. */
static gchar *
base_directory(const Call *c, Slice dirfd, const char **ret_why)
{
        gint64 fd = TRACE_CWD;
        Slice annotation = {NULL, 0};
        gboolean deleted = FALSE;
        const TraceFile *file;
        gsize length;

        *ret_why = "a relative name, the working directory is not known (see --cwd)";
        if (dirfd.n > 0 && !strace_descriptor(dirfd, &fd, &annotation, &deleted)) {
                *ret_why = "a descriptor that cannot be read";
                return NULL;
        }
        if (is_path(annotation)) {
                gchar *path = strace_unescape(annotation, &length);

                /* the log tells where the process is */
                if (fd == TRACE_CWD && !c->process->dirs->cwd)
                        c->process->dirs->cwd = g_strdup(path);
                return path;
        }
        if (fd == TRACE_CWD)
                return g_strdup(c->process->dirs->cwd);
        *ret_why = "relative to a descriptor that the log does not tell the directory of";
        file = trace_fd_get(c->process, fd);
        if (!file || file->path == NO_PATH)
                return NULL;
        return g_strdup(g_array_index(c->state->list->paths, ImportPath, file->path).bytes);
}

/* The name that a call means, from the root; NULL (and counted, when `count`) when that is not
 * known. `dirfd` n 0 = the working directory. */
static gchar *
full_name(const Call *c, Slice dirfd, Slice name, gboolean in_root, gboolean count)
{
        g_autofree gchar *base = NULL, *bytes = NULL;
        const char *why = NULL;
        gboolean cut = FALSE;
        gsize length = 0;

        bytes = strace_string(name, &length, &cut);
        if (!bytes || cut || strlen(bytes) != length) {
                if (count)
                        problem(c,
                                cut     ? "a name that strace cut off"
                                : bytes ? "a name that holds a NUL"
                                        : "a name that strace could not read",
                                bytes);
                return NULL;
        }
        if (bytes[0] == '/' && !in_root)
                return c->process->dirs->root ? g_strconcat(c->process->dirs->root, bytes, NULL)
                                              : g_steal_pointer(&bytes);
        base = base_directory(c, dirfd, &why);
        if (!base) {
                if (count)
                        problem(c, why, bytes);
                return NULL;
        }
        if (!*bytes)
                return g_steal_pointer(&base);
        return g_strconcat(base, g_str_has_suffix(base, "/") || bytes[0] == '/' ? "" : "/", bytes,
                           NULL);
}

static void
add_access(const Call *c, guint32 path, ImportKind kind, guint64 offset, guint64 length)
{
        ImportAccess access = {
                .path = path,
                .process = c->process->number,
                .kind = kind,
                .offset_bytes = offset,
                .length_bytes = length,
                .time_us = c->time_us,
        };

        import_list_add(c->state->list, &access);
}

static void
set_written(const Call *c, guint32 path)
{
        g_array_index(c->state->list->paths, ImportPath, path).written = TRUE;
}

/* O_ACCMODE and the others as numbers, for logs of -X raw; the values are x86's and arm64's. */
static gboolean
flag_set(Slice flags, const char *name, gint64 bits)
{
        gint64 number;

        if (flags.n > 0 && g_ascii_isdigit(flags.p[0]))
                return strace_number(flags, &number) && (number & bits) == bits;
        return strace_has_flag(flags, name);
}

static void
opened(const Call *c, Slice dirfd, Slice name, Slice flags, gboolean in_root)
{
        ImportList *list = c->state->list;
        g_autofree gchar *path = NULL;
        gboolean path_only = flag_set(flags, "O_PATH", 010000000);
        gboolean directory = flag_set(flags, "O_DIRECTORY", 0200000);
        gboolean write_only = flag_set(flags, "O_WRONLY", 1);
        gboolean unnamed = strace_has_flag(flags, "O_TMPFILE") || c->call->deleted;
        TraceFile *file = trace_file_new(NO_PATH, TRUE);
        gsize length;

        list->opens++;
        if (is_path(c->call->annotation)) {
                path = strace_unescape(c->call->annotation, &length);
                if (strlen(path) != length)
                        g_clear_pointer(&path, g_free);
        } else if (c->call->annotation.n > 0) {
                list->not_files++;
                trace_fd_set(c->state, c->process, c->call->value, file, FALSE);
                return;
        } else if (!unnamed) {
                path = full_name(c, dirfd, name, in_root, TRUE);
        }
        file->write_only = write_only;
        if (path && !unnamed)
                file->path = import_list_path(list, path, strlen(path));
        file->known = file->path != NO_PATH || unnamed;
        if (directory)
                list->directories++;
        else if (write_only)
                list->write_only++;
        if (unnamed)
                list->not_files++;
        if (file->path != NO_PATH) {
                if (flag_set(flags, "O_TRUNC", 01000) || flag_set(flags, "O_EXCL", 0200))
                        set_written(c, file->path);
                if (!directory && !path_only && !write_only)
                        add_access(c, file->path, IMPORT_OPENED, 0, 0);
        }
        trace_fd_set(c->state, c->process, c->call->value, file,
                     flag_set(flags, "O_CLOEXEC", 02000000));
}

/* The file behind a descriptor argument; NULL when it is none, or not known which (counted). */
static TraceFile *
file_of(const Call *c, Slice slice)
{
        g_autofree gchar *path = NULL;
        gboolean deleted;
        Slice annotation;
        TraceFile *file;
        gint64 fd;
        gsize length;

        if (!strace_descriptor(slice, &fd, &annotation, &deleted) || fd < 0)
                return NULL;
        file = trace_fd_get(c->process, fd);
        if (annotation.n > 0) {
                if (!is_path(annotation) || deleted)
                        return NULL;
                if (file && file->path != NO_PATH) {
                        const char *known =
                                g_array_index(c->state->list->paths, ImportPath, file->path).bytes;

                        /* the usual case, without the cost of a copy */
                        if (strlen(known) == annotation.n &&
                            memcmp(known, annotation.p, annotation.n) == 0)
                                return file;
                }
                path = strace_unescape(annotation, &length);
                if (strlen(path) != length)
                        return NULL;
                if (file && file->path != NO_PATH &&
                    strcmp(g_array_index(c->state->list->paths, ImportPath, file->path).bytes,
                           path) == 0)
                        return file;
                file = trace_file_new(import_list_path(c->state->list, path, length), TRUE);
                trace_fd_set(c->state, c->process, fd, file, FALSE);
                file = trace_fd_get(c->process, fd);
                return file && file->path != NO_PATH ? file : NULL;
        }
        if (!file) {
                /* standard input and output come from outside as a rule */
                if (fd > 2)
                        problem(c, "a read of a descriptor that was opened before the log begins",
                                NULL);
                return NULL;
        }
        if (file->path == NO_PATH) {
                if (!file->known)
                        problem(c, "a read of a file whose name is not known", NULL);
                return NULL;
        }
        return file;
}

static void
read_at(const Call *c, TraceFile *file, guint64 offset)
{
        c->state->list->saw_reads = TRUE;
        if (file && !file->write_only && offset <= G_MAXINT64)
                add_access(c, file->path, IMPORT_READ, offset, (guint64)c->call->value);
}

/* Reads at the descriptor's own offset move it. */
static void
read_on(const Call *c, TraceFile *file)
{
        if (!file)
                return;
        read_at(c, file, file->offset_bytes);
        file->offset_bytes = MIN(file->offset_bytes + (guint64)c->call->value, G_MAXINT64);
}

static void
handle_pread(const Call *c)
{
        TraceFile *file = file_of(c, arg(c, 0));
        gint64 offset;

        if (!file || !strace_number(arg(c, 3), &offset))
                return;
        if (offset == -1)
                read_on(c, file);
        else if (offset >= 0)
                read_at(c, file, (guint64)offset);
}

/* sendfile, splice, copy_file_range: an offset of its own, or NULL. */
static void
handle_copy(const Call *c, guint in, guint at)
{
        TraceFile *file = file_of(c, arg(c, in));
        gint64 offset;

        if (strace_number(arg(c, at), &offset)) {
                if (offset >= 0)
                        read_at(c, file, (guint64)offset);
        } else {
                read_on(c, file);
        }
}

static void
handle_mmap(const Call *c)
{
        gint64 length, offset;
        TraceFile *file;

        if (arg(c, 4).n == 0 || arg(c, 4).p[0] == '-' ||
            strace_has_flag(arg(c, 3), "MAP_ANONYMOUS"))
                return;
        c->state->list->saw_maps = TRUE;
        file = file_of(c, arg(c, 4));
        if (file && strace_number(arg(c, 1), &length) && strace_number(arg(c, 5), &offset) &&
            length > 0 && offset >= 0 && !strace_has_flag(arg(c, 2), "PROT_NONE"))
                add_access(c, file->path, IMPORT_MAPPED, (guint64)offset, (guint64)length);
}

static void
handle_write(const Call *c)
{
        gboolean deleted;
        Slice annotation;
        TraceFile *file;
        gint64 fd;

        if (!strace_descriptor(arg(c, 0), &fd, &annotation, &deleted) || fd < 0)
                return;
        file = trace_fd_get(c->process, fd);
        if (!file || file->path == NO_PATH)
                return;
        set_written(c, file->path);
        if (c->call->n_args == 3 && c->call->value > 0)
                file->offset_bytes = MIN(file->offset_bytes + (guint64)c->call->value, G_MAXINT64);
}

static void
duplicate(const Call *c, gint64 to, gboolean close_on_exec)
{
        Slice annotation;
        gboolean deleted;
        TraceFile *file;
        gint64 from;

        if (!strace_descriptor(arg(c, 0), &from, &annotation, &deleted) || from < 0 || from == to)
                return;
        file = trace_fd_get(c->process, from);
        if (file) {
                file->refs++;
        } else if (is_path(annotation)) {
                gsize length;
                g_autofree gchar *path = strace_unescape(annotation, &length);

                file = trace_file_new(import_list_path(c->state->list, path, length), TRUE);
        } else if (annotation.n > 0) {
                file = trace_file_new(NO_PATH, TRUE);
        } else {
                /* of what came from outside as well: nothing is known of it */
                trace_fd_close(c->process, to);
                return;
        }
        trace_fd_set(c->state, c->process, to, file, close_on_exec);
}

static void
handle_fcntl(const Call *c)
{
        Slice command = arg(c, 1), annotation;
        gboolean deleted;
        gint64 fd;

        if (strace_has_flag(command, "F_DUPFD"))
                duplicate(c, c->call->value, FALSE);
        else if (strace_has_flag(command, "F_DUPFD_CLOEXEC"))
                duplicate(c, c->call->value, TRUE);
        else if (strace_has_flag(command, "F_SETFD") &&
                 strace_descriptor(arg(c, 0), &fd, &annotation, &deleted))
                trace_fd_set_close_on_exec(c->process, fd,
                                           strace_has_flag(arg(c, 2), "FD_CLOEXEC"));
}

/* "[3, 4]", "[3<pipe:[1]>, 4<pipe:[1]>]": these are no files. */
static void
handle_pair(const Call *c)
{
        Slice slice = {NULL, 0};
        const char *p, *end;

        for (guint i = 0; i < c->call->n_args; i++)
                if (c->call->args[i].n > 1 && c->call->args[i].p[0] == '[')
                        slice = c->call->args[i];
        if (!slice.p)
                return;
        p = slice.p + 1;
        end = slice.p + slice.n;
        for (guint i = 0; i < 2 && p < end; i++) {
                gint64 fd = 0;

                while (p < end && *p == ' ')
                        p++;
                if (p >= end || !g_ascii_isdigit(*p))
                        return;
                while (p < end && g_ascii_isdigit(*p) && fd < G_MAXINT / 10)
                        fd = fd * 10 + (*p++ - '0');
                trace_fd_set(c->state, c->process, fd, trace_file_new(NO_PATH, TRUE), FALSE);
                p = memchr(p, ',', (gsize)(end - p));
                if (!p)
                        return;
                p++;
        }
}

/* "." and ".." resolved by the letters: only to keep a very long name within bounds. */
static gchar *
tidy(gchar *path)
{
        gchar *result;

        if (strlen(path) < CWD_MAX)
                return path;
        result = g_canonicalize_filename(path, "/");
        g_free(path);
        if (strlen(result) > IMPORT_NAME_MAX)
                g_clear_pointer(&result, g_free);
        return result;
}

static void
set_cwd(const Call *c, gchar *path)
{
        g_free(c->process->dirs->cwd);
        c->process->dirs->cwd = path ? tidy(path) : NULL;
}

static void
handle_getcwd(const Call *c)
{
        gboolean cut;
        gsize length;
        gchar *path = strace_string(arg(c, 0), &length, &cut);

        /* within a chroot the name is one from there */
        if (path && !cut && path[0] == '/' && strlen(path) == length && !c->process->dirs->root)
                set_cwd(c, path);
        else
                g_free(path);
}

static void
handle_chroot(const Call *c)
{
        gchar *path = full_name(c, (Slice){"", 0}, arg(c, 0), FALSE, TRUE);

        if (!path)
                return;
        g_free(c->process->dirs->root);
        c->process->dirs->root = tidy(path);
}

static void
handle_exec(const Call *c, Slice dirfd, Slice name)
{
        g_autofree gchar *path = full_name(c, dirfd, name, FALSE, TRUE);
        guint32 index;

        trace_table_exec(c->process);
        c->state->list->opens++;
        if (!path)
                return;
        index = import_list_path(c->state->list, path, strlen(path));
        if (index == NO_PATH)
                return;
        add_access(c, index, IMPORT_EXECUTED, 0, IMPORT_WHOLE);
        if (c->process->number) {
                ImportProcess *entry = &g_array_index(c->state->list->processes, ImportProcess,
                                                      c->process->number - 1);

                g_free(entry->executable);
                entry->executable = g_strdup(path);
        }
}

/* access("MARK: text"), as the profilers of GNOME used: the file never exists. */
static void
handle_mark(const Call *c, Slice name)
{
        ImportMark mark = {.time_us = c->time_us, .process = c->process->number};
        gboolean cut;
        gsize length;
        g_autofree gchar *text = NULL;

        if (name.n < 6 || memcmp(name.p, "\"MARK:", 6) != 0)
                return;
        text = strace_string(name, &length, &cut);
        if (!text || strlen(text) != length || c->state->list->marks->len >= 100000)
                return;
        mark.text = g_strdup(g_strchug(text + 5));
        g_array_append_val(c->state->list->marks, mark);
}

static void
handle_close_range(const Call *c)
{
        gint64 first, last;

        if (!strace_number(arg(c, 0), &first) || !strace_number(arg(c, 1), &last) || first < 0)
                return;
        if (strace_has_flag(arg(c, 2), "CLOSE_RANGE_UNSHARE"))
                trace_table_unshare(c->process);
        trace_fd_close_range(c->process, first, last < 0 ? G_MAXINT : last,
                             strace_has_flag(arg(c, 2), "CLOSE_RANGE_CLOEXEC"));
}

static void
handle_seek(const Call *c, Slice result)
{
        gboolean deleted;
        Slice annotation;
        TraceFile *file;
        gint64 fd, offset = c->call->value;

        if (!strace_descriptor(arg(c, 0), &fd, &annotation, &deleted) ||
            (result.n > 0 && !strace_number(result, &offset)))
                return;
        file = trace_fd_get(c->process, fd);
        if (!file && is_path(annotation) && !deleted)
                file = file_of(c, arg(c, 0));
        if (file && offset >= 0)
                file->offset_bytes = (guint64)offset;
}

/* The flags of clone stand in its arguments; a slice over all of them holds them. */
static Slice
all_args(const StraceCall *call)
{
        Slice last;

        if (call->n_args == 0)
                return (Slice){"", 0};
        last = call->args[call->n_args - 1];
        return (Slice){call->args[0].p, (gsize)(last.p + last.n - call->args[0].p)};
}

static gboolean
is_open(Meaning meaning)
{
        return meaning == AT_OPEN || meaning == AT_OPENAT || meaning == AT_OPENAT2 ||
               meaning == AT_CREAT || meaning == AT_HANDLE;
}

static void
handle(const Call *c, Meaning meaning)
{
        const Slice here = {"", 0};
        Slice annotation;
        gboolean deleted;
        gint64 number;

        switch (meaning) {
        case AT_OPEN: opened(c, here, arg(c, 0), arg(c, 1), FALSE); break;
        case AT_CREAT: {
                const Slice flags = {"O_WRONLY|O_TRUNC", 16};

                opened(c, here, arg(c, 0), flags, FALSE);
                break;
        }
        case AT_OPENAT: opened(c, arg(c, 0), arg(c, 1), arg(c, 2), FALSE); break;
        case AT_OPENAT2:
                opened(c, arg(c, 0), arg(c, 1), arg(c, 2),
                       strace_has_flag(arg(c, 2), "RESOLVE_IN_ROOT"));
                break;
        case AT_HANDLE:
                if (c->call->annotation.n == 0) {
                        c->state->list->opens++;
                        problem(c, "an open by handle: the log does not tell the name", NULL);
                        trace_fd_set(c->state, c->process, c->call->value,
                                     trace_file_new(NO_PATH, FALSE), FALSE);
                } else {
                        opened(c, here, here, arg(c, 2), FALSE);
                }
                break;
        case AT_EXECVE: handle_exec(c, here, arg(c, 0)); break;
        case AT_EXECVEAT: handle_exec(c, arg(c, 0), arg(c, 1)); break;
        case AT_READ:
                c->state->list->saw_reads = TRUE;
                if (c->call->value > 0)
                        read_on(c, file_of(c, arg(c, 0)));
                break;
        case AT_PREAD:
                c->state->list->saw_reads = TRUE;
                if (c->call->value > 0)
                        handle_pread(c);
                break;
        case AT_MMAP: handle_mmap(c); break;
        case AT_SENDFILE:
                if (c->call->value > 0)
                        handle_copy(c, 1, 2);
                break;
        case AT_SPLICE:
                if (c->call->value > 0)
                        handle_copy(c, 0, 1);
                break;
        case AT_WRITE: handle_write(c); break;
        case AT_LSEEK: handle_seek(c, here); break;
        case AT_LLSEEK: handle_seek(c, arg(c, 3)); break;
        case AT_CLOSE:
                if (strace_descriptor(arg(c, 0), &number, &annotation, &deleted))
                        trace_fd_close(c->process, number);
                break;
        case AT_CLOSE_RANGE: handle_close_range(c); break;
        case AT_DUP: duplicate(c, c->call->value, FALSE); break;
        case AT_DUP2: duplicate(c, c->call->value, strace_has_flag(arg(c, 2), "O_CLOEXEC")); break;
        case AT_FCNTL: handle_fcntl(c); break;
        case AT_PAIR: handle_pair(c); break;
        case AT_OTHER_FD:
                if (c->call->value >= 0)
                        trace_fd_set(c->state, c->process, c->call->value,
                                     trace_file_new(NO_PATH, TRUE), FALSE);
                break;
        case AT_CHDIR: set_cwd(c, full_name(c, here, arg(c, 0), FALSE, TRUE)); break;
        case AT_FCHDIR: {
                const char *why;

                set_cwd(c, base_directory(c, arg(c, 0), &why));
                break;
        }
        case AT_GETCWD: handle_getcwd(c); break;
        case AT_CHROOT: handle_chroot(c); break;
        case AT_PIVOT: problem(c, "a change of the root (pivot_root)", NULL); break;
        case AT_UNSHARE:
                if (strace_has_flag(arg(c, 0), "CLONE_FILES"))
                        trace_table_unshare(c->process);
                if (strace_has_flag(arg(c, 0), "CLONE_FS"))
                        trace_dirs_unshare(c->process);
                break;
        case AT_FORK:
                trace_process_fork(c->state, c->process, c->call->value, all_args(c->call),
                                   c->time_us);
                break;
        case AT_URING:
                if (c->call->value > 0)
                        problem(c, "requests by io_uring, whose files no log tells", NULL);
                break;
        default: break;
        }
}

void
trace_call(TraceState *state, TraceProcess *process, Slice name, const StraceCall *call,
           guint64 time_us)
{
        Call c = {.state = state, .process = process, .call = call, .time_us = time_us};
        Meaning meaning;

        if (!trace_meaning(name, &meaning))
                return;
        if (meaning == AT_ACCESS)
                handle_mark(&c, arg(&c, 0));
        else if (meaning == AT_ACCESSAT)
                handle_mark(&c, arg(&c, 1));
        else if (call->returned && call->value >= 0)
                handle(&c, meaning);
        else if (is_open(meaning) && call->returned)
                state->list->failed++;
}
