// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main.c - slowdisk: a file whose reads and writes take the time of a given drive.
 *
 *      slowdisk [--drive NAME] [--OPTION=VALUE...] BACKING-FILE MOUNTPOINT
 *
 * BACKING-FILE is a raw image; MOUNTPOINT/disk has its contents and MOUNTPOINT/stats the counters.
 * A missing or empty image is made as large as the drive, sparse. The disk is as large as the
 * image; an image smaller than the drive's capacity is the outer part of the drive, as a
 * partition there would be. With --capacity-bytes beyond its size the image is extended, sparse.
 *
 * A loop device makes it a block device:
 *      losetup --find --show --direct-io=on MOUNTPOINT/disk
 *
 * The program goes to the background when the mount is ready (--foreground: never). SIGTERM and
 * SIGINT unmount and end it at once; all that was written is in the image at any time.
 */
#include "fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
        DriveParams params;
        const char *backing, *mountpoint, *pid_file, *write_log;
        gboolean foreground;
        gboolean capacity_given;
        int ready_fd; /* the parent waits here until the mount serves; -1 */
} Settings;

static Settings settings = {.ready_fd = -1};

static void
usage(FILE *out)
{
        fputs("Usage: slowdisk [--drive NAME] [--OPTION=VALUE...] BACKING-FILE MOUNTPOINT\n\n"
              "  --drive NAME            one of the built-in drives (default hdd-2006)\n"
              "  --list-drives           print them\n"
              "  --write-log FILE        log writes, discards and flushes with their data\n"
              "  --pid-file FILE         write the process id there\n"
              "  --foreground            do not go to the background\n\n"
              "Each parameter of the drive can be set, after --drive:\n",
              out);
        drive_options_help(out);
}

static gboolean
fail(GError **error, const char *operation, const char *path)
{
        int errnum = errno;

        g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errnum), "%s %s: %s",
                    operation, path, g_strerror(errnum));
        return FALSE;
}

static gboolean
usage_error(GError **error, const char *text, const char *object)
{
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, text, object);
        return FALSE;
}

/* Without --drive the first drive option says which kind is meant. */
static gboolean
choose_drive(int argc, char **argv, GError **error)
{
        const char *name = NULL;
        unsigned kinds = (1u << DRIVE_HDD) | (1u << DRIVE_FLASH);

        for (int i = 1; i < argc; i++) {
                g_autofree char *option = NULL;
                unsigned option_kinds;

                if (!g_str_has_prefix(argv[i], "--"))
                        continue;
                option = g_strndup(argv[i] + 2, strcspn(argv[i] + 2, "="));
                if (strcmp(option, "drive") == 0)
                        name = strchr(argv[i], '=') != NULL ? strchr(argv[i], '=') + 1
                                                            : argv[i + 1];
                else if (drive_option_known(option, &option_kinds))
                        kinds &= option_kinds;
        }
        if (name == NULL)
                name = (kinds & (1u << DRIVE_HDD)) != 0 ? "hdd-2006" : "ssd-sata";
        if (drive_find(name) == NULL)
                return usage_error(error, "there is no drive \"%s\", see --list-drives", name);
        settings.params = *drive_find(name);
        return TRUE;
}

static gboolean
parse_options(int argc, char **argv, GError **error)
{
        if (!choose_drive(argc, argv, error))
                return FALSE;
        for (int i = 1; i < argc; i++) {
                char *equals = strchr(argv[i], '=');
                g_autofree char *option = NULL;
                const char *value;

                if (!g_str_has_prefix(argv[i], "--")) {
                        if (settings.mountpoint != NULL)
                                return usage_error(error, "unexpected argument \"%s\"", argv[i]);
                        *(settings.backing == NULL ? &settings.backing : &settings.mountpoint) =
                                argv[i];
                        continue;
                }
                option = g_strndup(argv[i] + 2, strcspn(argv[i] + 2, "="));
                if (strcmp(option, "foreground") == 0) {
                        settings.foreground = TRUE;
                        continue;
                }
                if (equals == NULL && i + 1 >= argc)
                        return usage_error(error, "--%s needs a value", option);
                value = equals != NULL ? equals + 1 : argv[++i];
                if (strcmp(option, "pid-file") == 0) {
                        settings.pid_file = value;
                } else if (strcmp(option, "write-log") == 0) {
                        settings.write_log = value;
                } else if (strcmp(option, "drive") != 0) {
                        if (!drive_set_option(&settings.params, option, value, error))
                                return FALSE;
                        settings.capacity_given |= strcmp(option, "capacity-bytes") == 0;
                }
        }
        if (settings.mountpoint == NULL)
                return usage_error(error, "%s", "a backing file and a mount point are needed");
        return drive_check(&settings.params, error);
}

/* Opens the image, makes or extends it; sets the size of the disk. */
static gboolean
open_backing(SlowdiskFs *fs, GError **error)
{
        guint64 capacity = (guint64)settings.params.capacity_bytes & ~(guint64)4095;
        struct stat st;

        fs->backing_fd = open(settings.backing, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fs->backing_fd < 0 || fstat(fs->backing_fd, &st) != 0)
                return fail(error, "cannot open", settings.backing);
        if (!S_ISREG(st.st_mode))
                return usage_error(error, "%s is not a regular file", settings.backing);
        fs->bytes = (guint64)st.st_size;
        if (capacity > fs->bytes && (fs->bytes == 0 || settings.capacity_given)) {
                if (ftruncate(fs->backing_fd, (off_t)capacity) != 0)
                        return fail(error, "cannot extend", settings.backing);
                fs->bytes = capacity;
        }
        fs->bytes &= ~(guint64)(SECTOR_BYTES - 1);
        if (fs->bytes == 0)
                return usage_error(error, "%s is empty: give --capacity-bytes", settings.backing);
        return TRUE;
}

static void
say_ready(void *user_data)
{
        int null_fd;

        (void)user_data;
        if (settings.ready_fd < 0)
                return;
        /* Until here standard error is where failures were said. */
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd >= 0) {
                dup2(null_fd, STDIN_FILENO);
                dup2(null_fd, STDOUT_FILENO);
                dup2(null_fd, STDERR_FILENO);
                close(null_fd);
        }
        G_GNUC_UNUSED ssize_t told = write(settings.ready_fd, "", 1); /* or the parent is gone */
        close(settings.ready_fd);
        settings.ready_fd = -1;
}

/* The parent ends when the child serves the mount, or with the child. */
static gboolean
go_to_background(GError **error)
{
        int ready[2];
        pid_t child;
        char byte;

        if (pipe2(ready, O_CLOEXEC) != 0)
                return fail(error, "cannot make", "a pipe");
        child = fork();
        if (child < 0)
                return fail(error, "cannot fork", "slowdisk");
        if (child > 0) {
                close(ready[1]);
                _exit(read(ready[0], &byte, 1) == 1 ? 0 : 1);
        }
        close(ready[0]);
        settings.ready_fd = ready[1];
        setsid();
        if (chdir("/") != 0)
                return fail(error, "cannot change to", "/");
        return TRUE;
}

static gboolean
start(SlowdiskFs *fs, GError **error)
{
        g_autofree char *pid = NULL;

        if (!settings.foreground && !go_to_background(error))
                return FALSE;
        pid = g_strdup_printf("%d\n", (int)getpid());
        if (settings.pid_file != NULL && !g_file_set_contents(settings.pid_file, pid, -1, error))
                return FALSE;
        /* The receivers inherit it: a drive does not compete for the CPU with the program under
         * test. Refused without the right to; MNT/stats says so ("realtime 0"). */
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
        fs->queue = queue_new(&settings.params, fs->bytes, fs->backing_fd, slowdisk_fs_request_done,
                              fs);
        return TRUE;
}

static gboolean
run(GError **error)
{
        SlowdiskFs fs = {.backing_fd = -1, .mounted = say_ready};
        g_autofree char *mountpoint = realpath(settings.mountpoint, NULL);
        g_autofree char *pid_file =
                settings.pid_file != NULL ? g_canonicalize_filename(settings.pid_file, NULL) : NULL;
        gboolean ok = FALSE;

        if (mountpoint == NULL)
                return fail(error, "cannot find", settings.mountpoint);
        settings.pid_file = pid_file;
        if (open_backing(&fs, error) &&
            (settings.write_log == NULL ||
             (fs.log = write_log_open(settings.write_log, fs.bytes, error)) != NULL))
                ok = slowdisk_fs_run(&fs, mountpoint, start, error);
        write_log_close(fs.log);
        if (fs.backing_fd >= 0)
                close(fs.backing_fd);
        if (ok && pid_file != NULL)
                unlink(pid_file);
        return ok;
}

int
main(int argc, char **argv)
{
        g_autoptr(GError) error = NULL;

        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--list-drives") == 0) {
                        drives_list(stdout);
                        return 0;
                }
                if (strcmp(argv[i], "--help") == 0) {
                        usage(stdout);
                        return 0;
                }
        }
        if (!parse_options(argc, argv, &error)) {
                fprintf(stderr, "slowdisk: %s\n", error->message);
                return 2;
        }
        if (!run(&error)) {
                fprintf(stderr, "slowdisk: %s\n", error->message);
                return 1;
        }
        return 0;
}
