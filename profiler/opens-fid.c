// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens by file handle: the kernel sends the handle of the file, that of its folder and its name,
 * and opens nothing for us. Kept are a few dozen bytes a file; a path is made only when it is
 * asked for. The folder's handle finds the folder also when nothing of it is cached any more.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>

#include "common/fd.h"
#include "profiler/names.h"
#include "profiler/opens-internal.h"

/* Handle types (include/linux/exportfs.h): 32-bit inode and generation, with or without the
 * parent's; 64-bit inode and generation. */
#define HANDLE_INO32_GEN 1
#define HANDLE_INO32_GEN_PARENT 2
#define HANDLE_INO64_GEN 0x81
#define HANDLE_INO64_GEN_PARENT 0x82

typedef struct {
        dev_t dev;
        guint64 inode;
} FidKey;

typedef struct {
        FidKey key;
        guint64 first_ns;
        const struct file_handle *dir; /* of the mount's dirs */
        gchar name[];
} FidEntry;

typedef struct {
        guint64 fsid;
        const Mount *mount;
        int fd;            /* of the mount point, opened on need */
        GHashTable *dirs;  /* struct file_handle -> itself: the folders of opened files */
        GHashTable *paths; /* the same -> gchar *, "" = not found */
} FidMount;

struct FidTable {
        GHashTable *entries; /* FidEntry -> itself */
        GPtrArray *mounts;   /* FidMount */
};

gboolean
fid_type_known(const char *fs_type)
{
        return g_str_equal(fs_type, "xfs") || name_by_handle_works(fs_type);
}

static gboolean
handle_inode(const struct file_handle *handle, guint64 *ret_inode)
{
        guint32 inode32;

        switch (handle->handle_type) {
        case HANDLE_INO32_GEN:
        case HANDLE_INO32_GEN_PARENT:
                if (handle->handle_bytes < sizeof inode32)
                        return FALSE;
                memcpy(&inode32, handle->f_handle, sizeof inode32);
                *ret_inode = inode32;
                return TRUE;
        case HANDLE_INO64_GEN:
        case HANDLE_INO64_GEN_PARENT:
                if (handle->handle_bytes < sizeof *ret_inode)
                        return FALSE;
                memcpy(ret_inode, handle->f_handle, sizeof *ret_inode);
                return TRUE;
        }
        return FALSE;
}

gboolean
fid_open_parse(const struct fanotify_event_metadata *event, FidOpen *ret)
{
        const guint8 *at = (const guint8 *)event + event->metadata_len;
        const guint8 *end = (const guint8 *)event + event->event_len;
        FidOpen found = {0};
        gboolean file = FALSE;

        while ((gsize)(end - at) >=
               sizeof(struct fanotify_event_info_fid) + sizeof(struct file_handle)) {
                const struct fanotify_event_info_fid *info = (const void *)at;
                const struct file_handle *handle = (const void *)info->handle;
                gsize length = info->hdr.len, rest;

                if (length < sizeof *info + sizeof *handle || length > (gsize)(end - at))
                        return FALSE;
                rest = length - sizeof *info - sizeof *handle;
                if (handle->handle_bytes > rest)
                        return FALSE;
                rest -= handle->handle_bytes;
                if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_FID) {
                        file = handle_inode(handle, &found.inode);
                } else if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME) {
                        found.dir = handle;
                        found.name = (const char *)handle->f_handle + handle->handle_bytes;
                        memcpy(&found.fsid, &info->fsid, sizeof found.fsid);
                        if (!memchr(found.name, 0, rest))
                                return FALSE;
                }
                at += length;
        }
        if (!file || !found.dir || !*found.name || g_str_equal(found.name, "."))
                return FALSE;
        *ret = found;
        return TRUE;
}

static guint
entry_hash(gconstpointer data)
{
        const FidKey *key = data;

        return (guint)(key->inode * 31 + key->dev);
}

static gboolean
entry_equal(gconstpointer a, gconstpointer b)
{
        const FidKey *x = a, *y = b;

        return x->inode == y->inode && x->dev == y->dev;
}

static gsize
handle_size(const struct file_handle *handle)
{
        return sizeof *handle + handle->handle_bytes;
}

static guint
handle_hash(gconstpointer data)
{
        const struct file_handle *handle = data;
        guint hash = handle->handle_bytes;

        for (guint i = 0; i < handle->handle_bytes; i++)
                hash = hash * 31 + handle->f_handle[i];
        return hash;
}

static gboolean
handle_equal(gconstpointer a, gconstpointer b)
{
        const struct file_handle *x = a, *y = b;

        return x->handle_bytes == y->handle_bytes && memcmp(x, y, handle_size(x)) == 0;
}

static void
fid_mount_free(gpointer data)
{
        FidMount *mount = data;

        fd_close(&mount->fd);
        g_hash_table_unref(mount->paths);
        g_hash_table_unref(mount->dirs);
        g_free(mount);
}

FidTable *
fid_table_new(void)
{
        FidTable *table = g_new0(FidTable, 1);

        table->entries = g_hash_table_new_full(entry_hash, entry_equal, NULL, g_free);
        table->mounts = g_ptr_array_new_with_free_func(fid_mount_free);
        return table;
}

void
fid_table_free(FidTable *table)
{
        if (!table)
                return;
        g_hash_table_unref(table->entries);
        g_ptr_array_unref(table->mounts);
        g_free(table);
}

gboolean
fid_table_add_mount(FidTable *table, const Mount *mount)
{
        FidMount *entry;
        struct statfs fs;
        guint64 fsid;

        if (statfs(mount->dir, &fs) != 0)
                return FALSE;
        memcpy(&fsid, &fs.f_fsid, sizeof fsid);
        if (fsid == 0)
                return FALSE;
        entry = g_new(FidMount, 1);
        *entry = (FidMount){.fsid = fsid, .mount = mount, .fd = -1};
        entry->dirs = g_hash_table_new_full(handle_hash, handle_equal, g_free, NULL);
        entry->paths = g_hash_table_new_full(handle_hash, handle_equal, NULL, g_free);
        g_ptr_array_add(table->mounts, entry);
        return TRUE;
}

static FidMount *
find_fsid(const FidTable *table, guint64 fsid)
{
        for (guint i = 0; i < table->mounts->len; i++)
                if (((FidMount *)table->mounts->pdata[i])->fsid == fsid)
                        return table->mounts->pdata[i];
        return NULL;
}

void
fid_table_add(FidTable *table, const FidOpen *open, guint64 now_ns)
{
        const FidMount *mount = find_fsid(table, open->fsid);
        FidKey key = {.inode = open->inode};
        struct file_handle *dir;
        FidEntry *entry;
        gsize length = strlen(open->name) + 1;

        if (!mount)
                return;
        key.dev = mount->mount->dev;
        if (g_hash_table_contains(table->entries, &key))
                return;
        dir = g_hash_table_lookup(mount->dirs, open->dir);
        if (!dir) {
                dir = g_memdup2(open->dir, handle_size(open->dir));
                g_hash_table_insert(mount->dirs, dir, dir);
        }
        entry = g_malloc(sizeof *entry + length);
        entry->key = key;
        entry->first_ns = now_ns;
        entry->dir = dir;
        memcpy(entry->name, open->name, length);
        g_hash_table_insert(table->entries, entry, entry);
}

guint
fid_table_size(const FidTable *table)
{
        return g_hash_table_size(table->entries);
}

static const gchar *
dir_path(FidMount *mount, const struct file_handle *dir)
{
        const gchar *known = g_hash_table_lookup(mount->paths, dir);
        auto_fd int fd = -1;
        gchar *path;

        if (known)
                return known;
        if (mount->fd < 0)
                mount->fd = open(mount->mount->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (mount->fd >= 0)
                fd = open_by_handle_at(mount->fd, (struct file_handle *)dir, O_PATH | O_CLOEXEC);
        path = fd >= 0 ? name_of_fd(fd) : NULL;
        if (!path)
                path = g_strdup("");
        g_hash_table_insert(mount->paths, (gpointer)dir, path);
        return path;
}

gchar *
fid_table_path(FidTable *table, dev_t dev, guint64 inode)
{
        FidKey key = {.dev = dev, .inode = inode};
        const FidEntry *entry = g_hash_table_lookup(table->entries, &key);
        FidMount *mount = NULL;
        const gchar *dir;

        for (guint i = 0; entry && i < table->mounts->len; i++)
                if (((FidMount *)table->mounts->pdata[i])->mount->dev == dev)
                        mount = table->mounts->pdata[i];
        if (!mount)
                return NULL;
        dir = dir_path(mount, entry->dir);
        if (!*dir)
                return NULL;
        return g_strconcat(g_str_equal(dir, "/") ? "" : dir, "/", entry->name, NULL);
}
