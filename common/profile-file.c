// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The profile's file: "HSPROF\r\n", version, reserved, SHA-256 of the body, the body: a GVariant in
 * little-endian normal form. docs/profile-format.md says the same for other readers.
 */
#include "common/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"
#include "common/quote.h"

#define MAGIC "HSPROF\r\n"
#define VERSION 1U
#define SIZE_MAX_BYTES (2ULL << 30)

typedef struct {
        char magic[8];
        guint32 version; /* little-endian, as all that follows */
        guint32 reserved;
        guint8 sha256[32];
} Header;

/* name, argv, created, source, flags, lost, unnamed, elapsed, cpu, warm, page; fs; files; ranges;
 * meta; processes; waits; marks; changing files */
#define FS_TYPE "a(ayayu)"
#define FILES_TYPE "a(uutttttxuay)"
#define RANGES_TYPE "a(uqquuttt)"
#define META_TYPE "a(uqqttt)"
#define PROCESSES_TYPE "a(iuttayay)"
#define WAITS_TYPE "a(uiqnutt)"
#define MARKS_TYPE "a(tuay)"
#define BODY_FORMAT                                                                                \
        "(ayaayxuutttttu" FS_TYPE FILES_TYPE RANGES_TYPE META_TYPE PROCESSES_TYPE WAITS_TYPE       \
                MARKS_TYPE FILES_TYPE ")"

#define FLAG_EXACT (1U << 0)
#define FLAG_COMPLETE (1U << 1)

static GVariant *
bytes_variant(const char *bytes)
{
        return g_variant_new_bytestring(bytes);
}

static GVariant *
fs_build(const Profile *profile)
{
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE(FS_TYPE));
        for (guint i = 0; i < profile->fs->len; i++) {
                const ProfileFs *f = &g_array_index(profile->fs, ProfileFs, i);

                g_variant_builder_add(&builder, "(@ay@ayu)", bytes_variant(f->uuid),
                                      bytes_variant(f->type), f->block_bytes);
        }
        return g_variant_builder_end(&builder);
}

static GVariant *
files_build(const GArray *files)
{
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE(FILES_TYPE));
        for (guint i = 0; i < files->len; i++) {
                const ProfileFile *f = &g_array_index(files, ProfileFile, i);

                g_variant_builder_add(&builder, "(uutttttxu@ay)", f->fs, f->generation, f->inode,
                                      f->size_bytes, f->first_use_us, f->opened_us, f->last_use_us,
                                      f->mtime_ns, f->flags, bytes_variant(f->path));
        }
        return g_variant_builder_end(&builder);
}

/* Elements of a fixed size are laid out in memory as a GVariant lays them out, in the byte order of
 * the machine: nothing is made of each one, which took seconds and a gigabyte for a million ranges.
 * The array is borrowed. */
#define FIXED_BUILD(type, array, element)                                                          \
        g_variant_new_from_data(G_VARIANT_TYPE(type), (array)->data,                               \
                                (gsize)(array)->len * sizeof(element), TRUE, NULL, NULL)

G_STATIC_ASSERT(sizeof(ProfileRange) == 40);
G_STATIC_ASSERT(G_STRUCT_OFFSET(ProfileRange, process) == 8);
G_STATIC_ASSERT(G_STRUCT_OFFSET(ProfileRange, offset_bytes) == 16);
G_STATIC_ASSERT(G_STRUCT_OFFSET(ProfileRange, first_use_us) == 32);
G_STATIC_ASSERT(sizeof(ProfileMeta) == 32);
G_STATIC_ASSERT(G_STRUCT_OFFSET(ProfileMeta, inode) == 8);
G_STATIC_ASSERT(sizeof(ProfileWait) == 32);
G_STATIC_ASSERT(G_STRUCT_OFFSET(ProfileWait, file) == 12);

static GVariant *
processes_build(const Profile *profile)
{
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE(PROCESSES_TYPE));
        for (guint i = 0; i < profile->processes->len; i++) {
                const ProfileProcess *p = &g_array_index(profile->processes, ProfileProcess, i);

                g_variant_builder_add(&builder, "(iutt@ay@ay)", p->pid, p->parent, p->start_us,
                                      p->exit_us, bytes_variant(p->comm),
                                      bytes_variant(p->executable));
        }
        return g_variant_builder_end(&builder);
}

static GVariant *
marks_build(const Profile *profile)
{
        GVariantBuilder builder;

        g_variant_builder_init(&builder, G_VARIANT_TYPE(MARKS_TYPE));
        for (guint i = 0; i < profile->marks->len; i++) {
                const ProfileMark *m = &g_array_index(profile->marks, ProfileMark, i);

                g_variant_builder_add(&builder, "(tu@ay)", m->time_us, m->process,
                                      bytes_variant(m->text));
        }
        return g_variant_builder_end(&builder);
}

static GVariant *
body_build(const Profile *profile)
{
        guint32 flags = (profile->exact ? FLAG_EXACT : 0) | (profile->complete ? FLAG_COMPLETE : 0);
        GVariantBuilder argv;

        g_variant_builder_init(&argv, G_VARIANT_TYPE("aay"));
        for (guint i = 0; i < profile->argv->len; i++)
                g_variant_builder_add_value(&argv, bytes_variant(profile->argv->pdata[i]));
        return g_variant_new(
                "(@ayaayxuutttttu@" FS_TYPE "@" FILES_TYPE "@" RANGES_TYPE "@" META_TYPE
                "@" PROCESSES_TYPE "@" WAITS_TYPE "@" MARKS_TYPE "@" FILES_TYPE ")",
                bytes_variant(profile->name), &argv, profile->created_us, (guint32)profile->source,
                flags, profile->lost_events, profile->unnamed_files, profile->elapsed_us,
                profile->cpu_us, profile->warm_us, profile->page_bytes, fs_build(profile),
                files_build(profile->files),
                FIXED_BUILD(RANGES_TYPE, profile->ranges, ProfileRange),
                FIXED_BUILD(META_TYPE, profile->meta, ProfileMeta), processes_build(profile),
                FIXED_BUILD(WAITS_TYPE, profile->waits, ProfileWait), marks_build(profile),
                files_build(profile->changing));
}

static GBytes *
body_bytes(GVariant *body)
{
        g_autoptr(GVariant) owned = g_variant_ref_sink(body);
        g_autoptr(GVariant) little = NULL;

#if G_BYTE_ORDER == G_BIG_ENDIAN
        little = g_variant_byteswap(owned);
#else
        little = g_variant_ref(owned);
#endif
        return g_variant_get_data_as_bytes(little);
}

static void
digest(GBytes *body, guint8 out[32])
{
        g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
        gsize size, length = 32;
        gconstpointer data = g_bytes_get_data(body, &size);

        g_checksum_update(sum, data, size);
        g_checksum_get_digest(sum, out, &length);
}

gboolean
profile_save(const Profile *profile, const char *path, GError **error)
{
        g_autoptr(GBytes) body = NULL;
        g_autoptr(GByteArray) whole = NULL;
        Header header = {.version = GUINT32_TO_LE(VERSION)};

        if (!profile_validate(profile, error))
                return FALSE;
        body = body_bytes(body_build(profile));
        memcpy(header.magic, MAGIC, sizeof header.magic);
        digest(body, header.sha256);
        whole = g_byte_array_sized_new(sizeof header + g_bytes_get_size(body));
        g_byte_array_append(whole, (const guint8 *)&header, sizeof header);
        g_byte_array_append(whole, g_bytes_get_data(body, NULL), g_bytes_get_size(body));
        return file_replace(path, whole->data, whole->len, 0644, error);
}

/* A byte string of a tuple; NULL when it is not NUL-ended without a NUL inside. */
static gchar *
take_bytes(GVariant *tuple, gsize child)
{
        g_autoptr(GVariant) value = g_variant_get_child_value(tuple, child);
        gsize length;
        const char *data = g_variant_get_fixed_array(value, &length, 1);

        if (length == 0 || length > PROFILE_PATH_MAX + 1 || data[length - 1] != '\0' ||
            memchr(data, 0, length - 1))
                return NULL;
        return g_memdup2(data, length);
}

static gboolean
files_parse(GVariant *files, GArray *ret)
{
        gsize n = g_variant_n_children(files);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) t = g_variant_get_child_value(files, i);
                ProfileFile f = {.path = take_bytes(t, 9)};

                g_variant_get_child(t, 0, "u", &f.fs);
                g_variant_get_child(t, 1, "u", &f.generation);
                g_variant_get_child(t, 2, "t", &f.inode);
                g_variant_get_child(t, 3, "t", &f.size_bytes);
                g_variant_get_child(t, 4, "t", &f.first_use_us);
                g_variant_get_child(t, 5, "t", &f.opened_us);
                g_variant_get_child(t, 6, "t", &f.last_use_us);
                g_variant_get_child(t, 7, "x", &f.mtime_ns);
                g_variant_get_child(t, 8, "u", &f.flags);
                g_array_append_val(ret, f);
                if (!f.path)
                        return FALSE;
        }
        return TRUE;
}

static gboolean
processes_parse(GVariant *processes, Profile *profile)
{
        gsize n = g_variant_n_children(processes);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) t = g_variant_get_child_value(processes, i);
                ProfileProcess p = {.comm = take_bytes(t, 4), .executable = take_bytes(t, 5)};

                g_variant_get_child(t, 0, "i", &p.pid);
                g_variant_get_child(t, 1, "u", &p.parent);
                g_variant_get_child(t, 2, "t", &p.start_us);
                g_variant_get_child(t, 3, "t", &p.exit_us);
                g_array_append_val(profile->processes, p);
                if (!p.comm || !p.executable)
                        return FALSE;
        }
        return TRUE;
}

static gboolean
marks_parse(GVariant *marks, Profile *profile)
{
        gsize n = g_variant_n_children(marks);

        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) t = g_variant_get_child_value(marks, i);
                ProfileMark m = {.text = take_bytes(t, 2)};

                g_variant_get_child(t, 0, "t", &m.time_us);
                g_variant_get_child(t, 1, "u", &m.process);
                g_array_append_val(profile->marks, m);
                if (!m.text)
                        return FALSE;
        }
        return TRUE;
}

/* Ranges, objects and waits are of fixed size: the array is used in place. */
static void
fixed_parse(GVariant *ranges, GVariant *meta, GVariant *waits, Profile *profile)
{
        struct {
                guint32 file;
                guint16 cause, flags;
                guint32 process, stall;
                guint64 offset, length, first_use;
        } const *r;
        struct {
                guint32 fs;
                guint16 kind, flags;
                guint64 inode, index, first_use;
        } const *m;
        struct {
                guint32 process;
                gint32 tid;
                guint16 reason;
                gint16 syscall;
                guint32 file;
                guint64 start, length;
        } const *w;
        gsize n;

        r = g_variant_get_fixed_array(ranges, &n, sizeof *r);
        g_array_set_size(profile->ranges, n);
        for (gsize i = 0; i < n; i++)
                g_array_index(profile->ranges, ProfileRange, i) = (ProfileRange){
                        .file = r[i].file,
                        .cause = r[i].cause,
                        .flags = r[i].flags,
                        .process = r[i].process,
                        .stall_us = r[i].stall,
                        .offset_bytes = r[i].offset,
                        .length_bytes = r[i].length,
                        .first_use_us = r[i].first_use,
                };
        m = g_variant_get_fixed_array(meta, &n, sizeof *m);
        g_array_set_size(profile->meta, n);
        for (gsize i = 0; i < n; i++)
                g_array_index(profile->meta, ProfileMeta, i) = (ProfileMeta){
                        m[i].fs, m[i].kind, m[i].flags, m[i].inode, m[i].index, m[i].first_use};
        w = g_variant_get_fixed_array(waits, &n, sizeof *w);
        g_array_set_size(profile->waits, n);
        for (gsize i = 0; i < n; i++)
                g_array_index(profile->waits, ProfileWait, i) =
                        (ProfileWait){w[i].process, w[i].tid,   w[i].reason, w[i].syscall,
                                      w[i].file,    w[i].start, w[i].length};
}

static gboolean
body_parse(GVariant *body, Profile *profile)
{
        g_autoptr(GVariant) argv = g_variant_get_child_value(body, 1);
        g_autoptr(GVariant) fs = g_variant_get_child_value(body, 11);
        g_autoptr(GVariant) files = g_variant_get_child_value(body, 12);
        g_autoptr(GVariant) ranges = g_variant_get_child_value(body, 13);
        g_autoptr(GVariant) meta = g_variant_get_child_value(body, 14);
        g_autoptr(GVariant) processes = g_variant_get_child_value(body, 15);
        g_autoptr(GVariant) waits = g_variant_get_child_value(body, 16);
        g_autoptr(GVariant) marks = g_variant_get_child_value(body, 17);
        g_autoptr(GVariant) changing = g_variant_get_child_value(body, 18);
        guint32 source, flags;
        gsize n;

        g_clear_pointer(&profile->name, g_free);
        profile->name = take_bytes(body, 0);
        if (!profile->name)
                return FALSE;
        g_variant_get_child(body, 2, "x", &profile->created_us);
        g_variant_get_child(body, 3, "u", &source);
        g_variant_get_child(body, 4, "u", &flags);
        g_variant_get_child(body, 5, "t", &profile->lost_events);
        g_variant_get_child(body, 6, "t", &profile->unnamed_files);
        g_variant_get_child(body, 7, "t", &profile->elapsed_us);
        g_variant_get_child(body, 8, "t", &profile->cpu_us);
        g_variant_get_child(body, 9, "t", &profile->warm_us);
        g_variant_get_child(body, 10, "u", &profile->page_bytes);
        profile->source = source;
        profile->exact = (flags & FLAG_EXACT) != 0;
        profile->complete = (flags & FLAG_COMPLETE) != 0;

        n = g_variant_n_children(argv);
        for (gsize i = 0; i < n; i++) {
                gchar *word = take_bytes(argv, i);

                if (!word)
                        return FALSE;
                g_ptr_array_add(profile->argv, word);
        }
        n = g_variant_n_children(fs);
        for (gsize i = 0; i < n; i++) {
                g_autoptr(GVariant) t = g_variant_get_child_value(fs, i);
                ProfileFs f = {.uuid = take_bytes(t, 0), .type = take_bytes(t, 1)};

                g_variant_get_child(t, 2, "u", &f.block_bytes);
                g_array_append_val(profile->fs, f);
                if (!f.uuid || !f.type)
                        return FALSE;
        }
        fixed_parse(ranges, meta, waits, profile);
        return files_parse(files, profile->files) && processes_parse(processes, profile) &&
               marks_parse(marks, profile) && files_parse(changing, profile->changing);
}

static Profile *
profile_parse(GBytes *bytes, GError **error)
{
        g_autoptr(Profile) profile = profile_new("");
        g_autoptr(GBytes) body_part = NULL;
        g_autoptr(GVariant) raw = NULL, body = NULL;
        gsize size;
        const guint8 *data = g_bytes_get_data(bytes, &size);
        guint8 sum[32];
        Header header;

        if (size < sizeof header || memcmp(data, MAGIC, 8) != 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            size > 0 && size < sizeof header &&
                                            memcmp(data, MAGIC, MIN(size, 8)) == 0
                                    ? "the profile is cut off"
                                    : "not a headstart profile");
                return NULL;
        }
        memcpy(&header, data, sizeof header);
        if (header.version == 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the profile is damaged (format 0)");
                return NULL;
        }
        if (GUINT32_FROM_LE(header.version) != VERSION) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "made by a newer headstart (format %u, this one reads up to %u)",
                            GUINT32_FROM_LE(header.version), VERSION);
                return NULL;
        }
        body_part = g_bytes_new_from_bytes(bytes, sizeof header, size - sizeof header);
        digest(body_part, sum);
        if (memcmp(sum, header.sha256, sizeof sum) != 0) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the profile is damaged or cut off (its SHA-256 does not match)");
                return NULL;
        }
        /* g_variant_new_from_bytes() copies when the data is not aligned as the type needs */
        raw = g_variant_ref_sink(
                g_variant_new_from_bytes(G_VARIANT_TYPE(BODY_FORMAT), body_part, FALSE));
        if (!g_variant_is_normal_form(raw)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the profile's body is not in normal form");
                return NULL;
        }
#if G_BYTE_ORDER == G_BIG_ENDIAN
        body = g_variant_byteswap(raw);
#else
        body = g_variant_ref(raw);
#endif
        if (!body_parse(body, profile)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT,
                            "the profile holds a name that is not a byte string");
                return NULL;
        }
        if (!profile_validate(profile, error))
                return NULL;
        return g_steal_pointer(&profile);
}

Profile *
profile_load(const char *path, GError **error)
{
        g_autoptr(GBytes) bytes = file_read(path, SIZE_MAX_BYTES, error);
        Profile *profile;

        if (!bytes)
                return NULL;
        profile = profile_parse(bytes, error);
        if (!profile) {
                g_autofree gchar *quoted = path_quote(path);

                g_prefix_error(error, "%s: ", quoted);
        }
        return profile;
}
