// SPDX-License-Identifier: GPL-2.0-or-later
/* From a profile's name to its pack and its replay. */
#include "cli/replay-name.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/quote.h"
#include "common/state.h"

static const char *const order_names[] = {
        [REPLAY_ORDER_AUTO] = "auto",
        [REPLAY_ORDER_TIME] = "time",
        [REPLAY_ORDER_BLOCK] = "block",
};

gboolean
replay_order_parse(const char *text, ReplayOrder *ret)
{
        for (guint i = 0; i < G_N_ELEMENTS(order_names); i++)
                if (strcmp(text, order_names[i]) == 0) {
                        *ret = (ReplayOrder)i;
                        return TRUE;
                }
        return FALSE;
}

gboolean
replay_size_parse(const char *text, guint64 *ret)
{
        static const char units[] = "KMGT";
        guint shift = 0;
        char *end;
        guint64 n;

        if (!g_ascii_isdigit(*text))
                return FALSE;
        errno = 0;
        n = g_ascii_strtoull(text, &end, 10);
        if (*end) {
                const char *unit = strchr(units, g_ascii_toupper(*end));

                if (!unit || end[1])
                        return FALSE;
                shift = 10 * (guint)(unit - units + 1);
        }
        if (errno == ERANGE || n > G_MAXUINT64 >> shift)
                return FALSE;
        *ret = n << shift;
        return TRUE;
}

static gboolean
pack_prove(GBytes *bytes, struct pack *ret, const char **ret_reason)
{
        gsize size;
        const void *data = g_bytes_get_data(bytes, &size);

        return pack_open(data, size, ret, ret_reason) == 0 &&
               pack_prove_rest(ret, size, ret_reason) == 0;
}

static gboolean
order_fits(guint32 flags, ReplayOrder order)
{
        switch (order) {
        case REPLAY_ORDER_AUTO: return (flags & PACK_ORDER_AUTO) != 0;
        case REPLAY_ORDER_TIME: return (flags & PACK_BLOCK_ORDER) == 0;
        case REPLAY_ORDER_BLOCK:
                return (flags & (PACK_BLOCK_ORDER | PACK_ORDER_AUTO)) == PACK_BLOCK_ORDER;
        }
        return FALSE;
}

/* The saved pack when it serves; NULL otherwise, with a note when it is there but damaged. */
static GBytes *
load_saved(const Cli *cli, const char *path, const Profile *profile, ReplayOrder order)
{
        g_autofree gchar *quoted = path_quote(path);
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) bytes = NULL;
        const char *reason = "";
        struct pack pack;

        if (access(path, F_OK) < 0)
                return NULL;
        bytes = file_read(path, PACK_SIZE_MAX, &error);
        if (!bytes) {
                cli_note(cli, "%s, compiling it anew", error->message);
                return NULL;
        }
        if (!pack_prove(bytes, &pack, &reason)) {
                cli_note(cli, "pack %s: %s, compiling it anew", quoted, reason);
                return NULL;
        }
        if (pack.header->profile_created_us != profile->created_us ||
            !order_fits(pack.header->flags, order))
                return NULL;
        return g_steal_pointer(&bytes);
}

static GBytes *
compile_and_save(const Cli *cli, const char *path, const Profile *profile, ReplayOrder order,
                 GError **error)
{
        CompileOptions options = COMPILE_OPTIONS_DEFAULT;
        g_autoptr(GError) saving = NULL;
        g_autoptr(GBytes) bytes = NULL;
        const char *reason;
        struct pack pack;

        options.order = order;
        options.root = cli->root;
        bytes = pack_compile(profile, &options, NULL, NULL, error);
        if (!bytes)
                return NULL;
        if (profile->meta->len > 0 && pack_prove(bytes, &pack, &reason) && pack.n_meta == 0)
                cli_note(cli, "metadata is left out: its block device cannot be read%s",
                         geteuid() != 0 ? " (run as root)" : " or is not mounted");
        if (!state_prepare(cli->state, &saving) || !state_file_check(path, &saving) ||
            !pack_save(bytes, path, &saving))
                cli_note(cli, "the pack is not kept: %s, ignoring", saving->message);
        return g_steal_pointer(&bytes);
}

gboolean
replay_name_load(const Cli *cli, const char *name, ReplayOrder order, GBytes **ret_pack,
                 GError **error)
{
        g_autoptr(Profile) profile = cli_load_profile(cli, name, error);
        g_autofree gchar *path = NULL;
        GBytes *bytes;

        if (!profile)
                return FALSE;
        path = state_pack_path(cli->state, name);
        bytes = load_saved(cli, path, profile, order);
        if (!bytes)
                bytes = compile_and_save(cli, path, profile, order, error);
        if (!bytes)
                return FALSE;
        *ret_pack = bytes;
        return TRUE;
}

gboolean
replay_name_compile(const Cli *cli, const char *name, GError **error)
{
        g_autoptr(Profile) profile = cli_load_profile(cli, name, error);
        g_autofree gchar *path = NULL;
        g_autoptr(GBytes) bytes = NULL;

        if (!profile)
                return FALSE;
        path = state_pack_path(cli->state, name);
        bytes = compile_and_save(cli, path, profile, REPLAY_ORDER_AUTO, error);
        return bytes != NULL;
}

gboolean
replay_name_run(GBytes *bytes, const struct replay_options *options, struct replay_result *ret,
                GError **error)
{
        const char *reason = "";
        struct pack pack;
        int r;

        if (!pack_prove(bytes, &pack, &reason)) {
                g_set_error(error, COMMON_ERROR, COMMON_ERROR_INPUT, "the pack is not usable: %s",
                            reason);
                return FALSE;
        }
        r = replay_run(&pack, g_bytes_get_size(bytes), options, ret);
        if (r < 0) {
                error_set_errno(error, COMMON_ERROR_FAILED, -r, "cannot replay", NULL);
                return FALSE;
        }
        return TRUE;
}
