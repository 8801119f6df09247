// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loading and reading the BPF program: see why-bpf.h. libbpf is opened at run time, so that a start
 * of headstart does not read it from the disk when no reasons are asked for.
 */
#include "profiler/why-bpf.h"

#include "common/error.h"

#ifdef HEADSTART_BPF_OBJECT

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/bpf/why-shared.h"

/* The object is data of this program. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "why_bpf_object:\n"
        ".incbin \"" HEADSTART_BPF_OBJECT "\"\n"
        "why_bpf_object_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const guint8 why_bpf_object[] __attribute__((visibility("hidden")));
extern const guint8 why_bpf_object_end[] __attribute__((visibility("hidden")));

/* Those of marks may be missing: access() is there on some architectures only. */
static const char *const PROGRAMS[] = {
        "on_switch", "on_waking",     "on_fork",      "on_exit",          "on_exec",
        "on_access", "on_access_end", "on_faccessat", "on_faccessat_end",
};
#define MARK_PROGRAMS 5 /* from here on */
#define MARK_PROGRAM_LAST (G_N_ELEMENTS(PROGRAMS) - 1)

/* The functions of libbpf that are used. */
#define FUNCTIONS(F)                                                                               \
        F(libbpf_set_print)                                                                        \
        F(bpf_object__open_mem)                                                                    \
        F(bpf_object__load)                                                                        \
        F(bpf_object__close)                                                                       \
        F(bpf_object__find_map_fd_by_name)                                                         \
        F(bpf_object__find_program_by_name)                                                        \
        F(bpf_program__set_autoload)                                                               \
        F(bpf_program__attach)                                                                     \
        F(bpf_link__destroy)                                                                       \
        F(bpf_map_update_elem)                                                                     \
        F(bpf_map_lookup_elem)                                                                     \
        F(bpf_map_get_next_key)                                                                    \
        F(ring_buffer__new)                                                                        \
        F(ring_buffer__consume)                                                                    \
        F(ring_buffer__free)

typedef struct {
#define DECLARE(name) __typeof__(name) *name;
        FUNCTIONS(DECLARE)
#undef DECLARE
} LibBpf;

struct WhyBpf {
        void *library;
        LibBpf lib;
        struct bpf_object *object;
        struct bpf_link *links[G_N_ELEMENTS(PROGRAMS)];
        struct ring_buffer *ring;
        int tasks_fd, config_fd;
        WhySpellFunc spell;
        WhyMarkFunc mark;
        gpointer data;
};

static int
print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
        (void)level;
        (void)format;
        (void)args;
        return 0;
}

static gboolean
open_library(WhyBpf *bpf, GError **error)
{
        bpf->library = dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!bpf->library) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "libbpf.so.1 is not installed");
                return FALSE;
        }
#define FIND(name)                                                                                 \
        *(void **)&bpf->lib.name = dlsym(bpf->library, #name);                                     \
        if (!bpf->lib.name) {                                                                      \
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,                         \
                            "libbpf.so.1 lacks " #name);                                           \
                return FALSE;                                                                      \
        }
        FUNCTIONS(FIND)
#undef FIND
        bpf->lib.libbpf_set_print(print_nothing);
        return TRUE;
}

/* Returns 0 or a negative errno. */
static int
load_object(WhyBpf *bpf, gboolean with_marks)
{
        LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "headstart");
        struct bpf_program *program;

        bpf->object = bpf->lib.bpf_object__open_mem(
                why_bpf_object, (size_t)(why_bpf_object_end - why_bpf_object), &options);
        if (!bpf->object)
                return -errno;
        for (guint i = MARK_PROGRAMS; !with_marks && i < G_N_ELEMENTS(PROGRAMS); i++) {
                program = bpf->lib.bpf_object__find_program_by_name(bpf->object, PROGRAMS[i]);
                if (program)
                        bpf->lib.bpf_program__set_autoload(program, false);
        }
        return bpf->lib.bpf_object__load(bpf->object);
}

static gboolean
attach(WhyBpf *bpf, gboolean with_marks, GError **error)
{
        for (guint i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
                struct bpf_program *program =
                        bpf->lib.bpf_object__find_program_by_name(bpf->object, PROGRAMS[i]);

                if (i >= MARK_PROGRAMS && !with_marks)
                        continue;
                bpf->links[i] = program ? bpf->lib.bpf_program__attach(program) : NULL;
                if (bpf->links[i] || i >= MARK_PROGRAMS)
                        continue;
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "the kernel does not attach the BPF program %s: %s", PROGRAMS[i],
                            g_strerror(errno));
                return FALSE;
        }
        return TRUE;
}

static void
on_wait(WhyBpf *bpf, const struct why_record *record)
{
        WhySpell spell = {
                .tid = record->tid,
                .syscall = record->syscall,
                .start_ns = record->start_ns,
                .woken_ns = record->woken_ns,
                .end_ns = record->end_ns,
                .arg0 = record->arg0,
                .arg1 = record->arg1,
                .state = record->state,
                .mode = record->mode,
                .rdev = record->rdev,
                .io = record->io ? WHY_IO_YES : WHY_IO_NO,
        };

        bpf->spell(&spell, bpf->data);
}

static int
on_record(void *context, void *data, size_t size)
{
        WhyBpf *bpf = context;
        const struct why_record *record = data;

        if (size < sizeof *record)
                return 0;
        if (record->kind == WHY_RECORD_WAIT) {
                on_wait(bpf, record);
        } else if (record->kind == WHY_RECORD_MARK) {
                g_autofree gchar *text = g_strndup(record->text, sizeof record->text);

                bpf->mark(record->tid, record->start_ns, text, bpf->data);
        }
        return 0;
}

static gboolean
start(WhyBpf *bpf, pid_t pid, GError **error)
{
        struct why_config config = {.every_process = pid <= 0, .own_tgid = (guint32)getpid()};
        guint32 zero = 0, tid = (guint32)pid;
        struct why_off_cpu fresh = {.syscall = -1};
        int ring_fd;

        bpf->config_fd = bpf->lib.bpf_object__find_map_fd_by_name(bpf->object, "config");
        bpf->tasks_fd = bpf->lib.bpf_object__find_map_fd_by_name(bpf->object, "tasks");
        ring_fd = bpf->lib.bpf_object__find_map_fd_by_name(bpf->object, "ring");
        if (bpf->config_fd >= 0 && bpf->tasks_fd >= 0 && ring_fd >= 0)
                bpf->ring = bpf->lib.ring_buffer__new(ring_fd, on_record, bpf, NULL);
        if (bpf->ring &&
            bpf->lib.bpf_map_update_elem(bpf->config_fd, &zero, &config, BPF_ANY) == 0 &&
            (pid <= 0 || bpf->lib.bpf_map_update_elem(bpf->tasks_fd, &tid, &fresh, BPF_ANY) == 0))
                return TRUE;
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED, "BPF maps do not work: %s",
                    g_strerror(errno));
        return FALSE;
}

WhyBpf *
why_bpf_new(pid_t pid, GError **error)
{
        g_autoptr(WhyBpf) bpf = g_new0(WhyBpf, 1);
        gboolean with_marks = TRUE;
        int result;

        if (!open_library(bpf, error))
                return NULL;
        result = load_object(bpf, TRUE);
        if (result != 0) {
                g_clear_pointer(&bpf->object, bpf->lib.bpf_object__close);
                with_marks = FALSE;
                result = load_object(bpf, FALSE);
        }
        if (result != 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                            "the kernel does not take the BPF program: %s", g_strerror(-result));
                return NULL;
        }
        if (!start(bpf, pid, error) || !attach(bpf, with_marks, error))
                return NULL;
        return g_steal_pointer(&bpf);
}

void
why_bpf_free(WhyBpf *bpf)
{
        if (!bpf)
                return;
        for (guint i = 0; i < G_N_ELEMENTS(bpf->links); i++)
                if (bpf->links[i])
                        bpf->lib.bpf_link__destroy(bpf->links[i]);
        if (bpf->ring)
                bpf->lib.ring_buffer__free(bpf->ring);
        if (bpf->object)
                bpf->lib.bpf_object__close(bpf->object);
        if (bpf->library)
                dlclose(bpf->library);
        g_free(bpf);
}

gboolean
why_bpf_has_marks(const WhyBpf *bpf)
{
        return bpf->links[MARK_PROGRAM_LAST] != NULL;
}

void
why_bpf_read(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data)
{
        bpf->spell = spell;
        bpf->mark = mark;
        bpf->data = data;
        bpf->lib.ring_buffer__consume(bpf->ring);
}

/* Those that are off the CPU still. */
static void
hand_on_unfinished(WhyBpf *bpf)
{
        guint32 tid, next;
        gboolean first = TRUE;
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        while (bpf->lib.bpf_map_get_next_key(bpf->tasks_fd, first ? NULL : &tid, &next) == 0) {
                struct why_off_cpu off;
                struct why_record record = {.kind = WHY_RECORD_WAIT};

                first = FALSE;
                tid = next;
                if (bpf->lib.bpf_map_lookup_elem(bpf->tasks_fd, &tid, &off) != 0 || !off.off_ns)
                        continue;
                record.tid = (gint32)tid;
                record.start_ns = off.off_ns;
                record.woken_ns = off.woken_ns;
                record.end_ns = (guint64)now.tv_sec * 1000000000U + (guint64)now.tv_nsec;
                record.arg0 = off.arg0;
                record.arg1 = off.arg1;
                record.state = off.state;
                record.mode = off.mode;
                record.rdev = off.rdev;
                record.syscall = off.syscall;
                record.io = off.io;
                on_wait(bpf, &record);
        }
}

guint64
why_bpf_stop(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data)
{
        struct why_config config = {0};
        guint32 zero = 0;

        for (guint i = 0; i < G_N_ELEMENTS(bpf->links); i++) {
                if (bpf->links[i])
                        bpf->lib.bpf_link__destroy(bpf->links[i]);
                bpf->links[i] = NULL;
        }
        why_bpf_read(bpf, spell, mark, data);
        hand_on_unfinished(bpf);
        bpf->lib.bpf_map_lookup_elem(bpf->config_fd, &zero, &config);
        return config.lost;
}

#else /* built without clang or libbpf's headers */

WhyBpf *
why_bpf_new(pid_t pid, GError **error)
{
        (void)pid;
        g_set_error(error, COMMON_ERROR, COMMON_ERROR_UNSUPPORTED,
                    "this headstart was built without BPF");
        return NULL;
}

void
why_bpf_free(WhyBpf *bpf)
{
        (void)bpf;
}

gboolean
why_bpf_has_marks(const WhyBpf *bpf)
{
        (void)bpf;
        return FALSE;
}

void
why_bpf_read(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data)
{
        (void)bpf;
        (void)spell;
        (void)mark;
        (void)data;
}

guint64
why_bpf_stop(WhyBpf *bpf, WhySpellFunc spell, WhyMarkFunc mark, gpointer data)
{
        why_bpf_read(bpf, spell, mark, data);
        return 0;
}

#endif
