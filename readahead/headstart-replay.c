// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * headstart-replay: the small program that early boot runs. It loads a pack and replays it.
 *
 *         headstart-replay [--pack FILE] [--root DIR] [--budget SIZE] [--deadline S] [-v]
 *
 * Nothing at boot may fail because of it: it exits 0 whatever happens, 2 when its own arguments are
 * wrong. Static, without stdio, so that a cold start reads few pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "readahead/engine.h"

#define USAGE                                                                                      \
        "usage: headstart-replay [--pack FILE] [--root DIR] [--budget SIZE] [--deadline S] [-v]\n"

static const char *const default_packs[] = {
        "/var/lib/headstart/packs/boot.pack",
        "/.headstart/boot.pack",
};

static volatile int stopped;

struct line {
        char text[1024];
        size_t length;
};

/*
 * The C library's allocator would be a fifth of this program, which asks for a dozen blocks and
 * then ends: each gets a mapping of its own. Replacing malloc is for the static program only:
 * engine and pack take no part in it.
 */
struct block {
        size_t bytes; /* of the mapping */
        size_t align[1];
};

void *
malloc(size_t size)
{
        struct block *block;

        if (size > SIZE_MAX / 2) {
                errno = ENOMEM;
                return NULL;
        }
        block = mmap(NULL, size + sizeof *block, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
                return NULL;
        block->bytes = size + sizeof *block;
        return block + 1;
}

void
free(void *memory)
{
        struct block *block = (struct block *)memory - 1;

        if (memory)
                munmap(block, block->bytes);
}

void *
calloc(size_t count, size_t size)
{
        if (size > 0 && count > SIZE_MAX / size) {
                errno = ENOMEM;
                return NULL;
        }
        return malloc(count * size); /* a fresh mapping is zero */
}

void *
realloc(void *memory, size_t size)
{
        void *larger = malloc(size);

        if (larger && memory) {
                size_t had = ((struct block *)memory - 1)->bytes - sizeof(struct block);

                memcpy(larger, memory, had < size ? had : size);
                free(memory);
        }
        return larger;
}

static void
put(struct line *line, const char *text)
{
        while (*text && line->length < sizeof line->text - 1)
                /* paths are untrusted bytes for a terminal */
                line->text[line->length++] =
                        (unsigned char)*text < 32 || *text == 127 ? '?' : *text,
                text++;
}

static void
put_number(struct line *line, uint64_t n, const char *unit)
{
        char digits[24];
        int i = (int)sizeof digits;

        digits[--i] = '\0';
        do
                digits[--i] = (char)('0' + n % 10);
        while ((n /= 10) > 0);
        put(line, digits + i);
        put(line, unit);
}

static void
print(struct line *line)
{
        ssize_t ignored;

        line->text[line->length++] = '\n';
        ignored = write(STDERR_FILENO, line->text, line->length);
        (void)ignored;
}

static int
usage(const char *what, const char *argument)
{
        struct line line = {0};
        ssize_t ignored;

        put(&line, "headstart-replay: ");
        put(&line, what);
        put(&line, argument);
        print(&line);
        ignored = write(STDERR_FILENO, USAGE, sizeof USAGE - 1);
        (void)ignored;
        return 2;
}

/* Digits with at most one K, M, G or T behind; no sign. */
static bool
parse_size(const char *text, uint64_t *ret)
{
        uint64_t n = 0;
        unsigned int shift = 0;

        if (*text < '0' || *text > '9')
                return false;
        for (; *text >= '0' && *text <= '9'; text++) {
                if (n > (UINT64_MAX - 9) / 10)
                        return false;
                n = n * 10 + (uint64_t)(*text - '0');
        }
        switch (*text) {
        case 'T':
        case 't': shift += 10; /* fall through */
        case 'G':
        case 'g': shift += 10; /* fall through */
        case 'M':
        case 'm': shift += 10; /* fall through */
        case 'K':
        case 'k':
                shift += 10;
                text++;
                break;
        default: break;
        }
        if (*text != '\0' || n > UINT64_MAX >> shift)
                return false;
        *ret = n << shift;
        return true;
}

/* Seconds: digits, perhaps with a fraction. */
static bool
parse_seconds(const char *text, double *ret)
{
        double n = 0, unit = 1;
        bool digits = false;

        for (; *text >= '0' && *text <= '9'; text++, digits = true)
                n = n * 10 + (*text - '0');
        if (*text == '.')
                for (text++; *text >= '0' && *text <= '9'; text++, digits = true)
                        n += (unit /= 10) * (*text - '0');
        *ret = n;
        return digits && *text == '\0' && n < 1e6;
}

/* Into memory of our own: a pack that changes under a mapping could not be proven. NULL and errno.
 */
static void *
read_pack(const char *path, size_t *ret_size)
{
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        void *memory = MAP_FAILED;
        size_t size, done = 0;
        struct stat st;

        if (fd < 0)
                return NULL;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
            (uint64_t)st.st_size > PACK_SIZE_MAX) {
                close(fd);
                errno = EBADMSG;
                return NULL;
        }
        size = (size_t)st.st_size;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        while (memory != MAP_FAILED && done < size) {
                ssize_t got = read(fd, (char *)memory + done, size - done);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        break;
                done += (size_t)got;
        }
        close(fd);
        if (memory == MAP_FAILED)
                return NULL;
        *ret_size = done;
        return memory;
}

static void *
read_default_pack(const char *root, size_t *ret_size)
{
        void *memory = NULL;

        for (size_t i = 0; !memory && i < sizeof default_packs / sizeof default_packs[0]; i++) {
                size_t root_length = root ? strlen(root) : 0;
                char *path = malloc(root_length + strlen(default_packs[i]) + 1);

                if (!path)
                        return NULL;
                memcpy(path, root ? root : "", root_length);
                strcpy(path + root_length, default_packs[i]);
                memory = read_pack(path, ret_size);
                free(path);
        }
        return memory;
}

static void
report(const struct replay_result *result)
{
        struct line line = {0};

        put(&line, "headstart-replay: ");
        put_number(&line, result->files, " files, ");
        put_number(&line, result->ranges, " ranges, ");
        put_number(&line, result->bytes >> 10, " KiB, ");
        put_number(&line, result->metadata_blocks, " metadata blocks, ");
        put_number(&line, result->stale, " stale, ");
        put_number(&line, result->missing, " missing, ");
        put_number(&line, result->skipped, " skipped, ");
        put_number(&line, result->failed, " failed, ");
        put_number(&line, (uint64_t)result->elapsed_ms, " ms by ");
        put(&line, result->method);
        print(&line);
}

static void
on_signal(int number)
{
        stopped = number;
}

static int
replay(const char *pack_path, const struct replay_options *options, bool verbose)
{
        const char *reason = "cannot be read";
        struct replay_result result = {0};
        struct line line = {0};
        struct pack pack;
        size_t size = 0;
        void *memory;
        int r = -1;

        memory = pack_path ? read_pack(pack_path, &size) : read_default_pack(options->root, &size);
        if (memory && (r = pack_open(memory, size, &pack, &reason)) == 0 &&
            (r = pack_prove_rest(&pack, size, &reason)) == 0) {
                reason = "out of memory";
                r = replay_run(&pack, size, options, &result);
        }
        if (!verbose)
                return 0;
        if (r == 0) {
                report(&result);
        } else {
                put(&line, "headstart-replay: pack ");
                put(&line, pack_path ? pack_path : default_packs[0]);
                put(&line, ": ");
                put(&line, reason);
                put(&line, ", ignoring");
                print(&line);
        }
        return 0;
}

int
main(int argc, char **argv)
{
        static const char *const names[] = {"--pack", "--root", "--budget", "--deadline"};
        const char *values[4] = {0};
        struct replay_options options = {.stop = &stopped};
        struct sigaction action = {.sa_handler = on_signal};
        bool verbose = false;

        for (int i = 1; i < argc; i++) {
                size_t option, length = 0;

                if (strcmp(argv[i], "-v") == 0 || strcmp(argv[i], "--verbose") == 0) {
                        verbose = true;
                        continue;
                }
                if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0) {
                        const char *text = argv[i][2] == 'h' ? USAGE
                                                             : "headstart-replay " HEADSTART_VERSION
                                                               "\n";
                        ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));

                        (void)ignored;
                        return 0;
                }
                for (option = 0; option < 4; option++) {
                        length = strlen(names[option]);
                        if (strncmp(argv[i], names[option], length) == 0 &&
                            (argv[i][length] == '\0' || argv[i][length] == '='))
                                break;
                }
                if (option == 4)
                        return usage("unknown argument ", argv[i]);
                if (argv[i][length] == '=')
                        values[option] = argv[i] + length + 1;
                else if (i + 1 < argc)
                        values[option] = argv[++i];
                else
                        return usage("a value is missing after ", argv[i]);
        }
        options.root = values[1];
        if (values[2] && !parse_size(values[2], &options.budget_bytes))
                return usage("--budget takes bytes, or with K, M or G: not ", values[2]);
        if (values[3] && !parse_seconds(values[3], &options.deadline_s))
                return usage("--deadline takes seconds: not ", values[3]);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        return replay(values[0], &options, verbose);
}
