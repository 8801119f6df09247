// SPDX-License-Identifier: GPL-2.0-or-later
/* Names to descriptors and types. */
#include "profiler/resolve-open.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAD_BYTES 4096

int
resolve_open(int root_fd, const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int fd;

        if (root_fd < 0)
                return open(path, O_PATH | O_CLOEXEC);
        do
                fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
        while (fd < 0 && (errno == EAGAIN || errno == EINTR));
        return fd;
}

const char *
resolve_type_name(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFDIR: return "a folder, not a file";
        case S_IFIFO: return "a FIFO, not a file";
        case S_IFSOCK: return "a socket, not a file";
        case S_IFCHR:
        case S_IFBLK: return "a device, not a file";
        default: return "not a regular file";
        }
}

gboolean
resolve_is_memory(const char *fs_type)
{
        static const char *const types[] = {"tmpfs",     "ramfs",    "devtmpfs",   "proc",
                                            "sysfs",     "devpts",   "cgroup2",    "cgroup",
                                            "debugfs",   "tracefs",  "securityfs", "mqueue",
                                            "hugetlbfs", "configfs", "efivarfs",   "bpf"};

        for (guint i = 0; i < G_N_ELEMENTS(types); i++)
                if (strcmp(fs_type, types[i]) == 0)
                        return TRUE;
        return FALSE;
}

int
resolve_reopen(int path_fd)
{
        g_autofree gchar *link = g_strdup_printf("/proc/self/fd/%d", path_fd);

        return open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

guint32
resolve_generation(int fd)
{
        long generation = 0;

        return ioctl(fd, FS_IOC_GETVERSION, &generation) == 0 ? (guint32)generation : 0;
}

/* "#! /bin/sh -e": the kernel takes the first word of the first 256 bytes. */
static gchar *
script_interpreter(const char *head, gsize length)
{
        const char *p = head + 2, *end = head + MIN(length, 256), *begin;

        while (p < end && (*p == ' ' || *p == '\t'))
                p++;
        begin = p;
        while (p < end && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\0')
                p++;
        return p > begin && *begin == '/' ? g_strndup(begin, (gsize)(p - begin)) : NULL;
}

static gchar *
elf_interpreter(const char *head, gsize length)
{
        const gboolean wide = (unsigned char)head[EI_CLASS] == ELFCLASS64;
        guint64 table, record, count;
        Elf64_Ehdr header64;
        Elf32_Ehdr header32;

        if ((unsigned char)head[EI_DATA] !=
            (G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB))
                return NULL;
        if (wide ? length < sizeof header64 : length < sizeof header32)
                return NULL;
        memcpy(&header64, head, MIN(length, sizeof header64));
        memcpy(&header32, head, sizeof header32);
        table = wide ? header64.e_phoff : header32.e_phoff;
        record = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
        count = wide ? header64.e_phnum : header32.e_phnum;
        if ((wide ? header64.e_phentsize : header32.e_phentsize) != record || table > length ||
            count > (length - table) / record)
                return NULL;
        for (guint64 i = 0; i < count; i++) {
                guint64 type, offset, size;
                Elf64_Phdr segment64;
                Elf32_Phdr segment32;
                const char *text;

                memcpy(wide ? (void *)&segment64 : (void *)&segment32, head + table + i * record,
                       record);
                type = wide ? segment64.p_type : segment32.p_type;
                offset = wide ? segment64.p_offset : segment32.p_offset;
                size = wide ? segment64.p_filesz : segment32.p_filesz;
                if (type != PT_INTERP || offset >= length || size < 2 || size > length - offset)
                        continue;
                text = head + offset;
                return *text == '/' ? g_strndup(text, size - 1) : NULL;
        }
        return NULL;
}

gchar *
resolve_interpreter_parse(const void *head, gsize length)
{
        if (length > 2 && memcmp(head, "#!", 2) == 0)
                return script_interpreter(head, length);
        if (length > EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0)
                return elf_interpreter(head, length);
        return NULL;
}

gchar *
resolve_interpreter(int fd)
{
        char head[HEAD_BYTES];
        ssize_t got = pread(fd, head, sizeof head, 0);

        return got > 0 ? resolve_interpreter_parse(head, (gsize)got) : NULL;
}
