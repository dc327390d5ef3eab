/* This program as an archive.  See bundle.h.
 *
 * Which libraries it needs nobody has to be asked: they are loaded.  The archive is named after the program's hash, so
 * a new program has a new one; it is written under another name and renamed when it is whole. */
#include "bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include <shoal/error.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

enum { FILE_MOST = 1 << 30, BLOCK = 512 };

static int read_file(char **out, size_t *size, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be opened", path);
    int status = base_read_whole(out, size, file, FILE_MOST, path);
    close(file);
    return status;
}

static int hash_file(char hash[CLOUD_HASH_BYTES], const char *path)
{
    unsigned char bytes[BASE_HASH_SIZE];
    char *text = NULL;
    size_t size = 0;
    int status = read_file(&text, &size, path);
    if (status == SHOAL_OK) {
        base_hash_of(bytes, text, size);
        base_hex_write(hash, bytes, sizeof bytes);
    }
    base_free(&text);
    return status;
}

/* A header of the ustar format: numbers in octal digits, and a sum of its own bytes. */
static void write_header(char header[BLOCK], const char *name, size_t size)
{
    unsigned sum = 0;
    memset(header, 0, BLOCK);
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000755", 8);
    memcpy(header + 108, "0000000", 8);
    memcpy(header + 116, "0000000", 8);
    snprintf(header + 124, 12, "%011zo", size);
    memcpy(header + 136, "00000000000", 12);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar", 6);
    memcpy(header + 263, "00", 2);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
}

static bool write_bytes(gzFile out, const void *bytes, size_t size)
{
    return size == 0 || gzwrite(out, bytes, (unsigned)size) == (int)size;
}

static int add_file(gzFile out, const char *name, const char *path)
{
    static const char zeros[BLOCK];
    char header[BLOCK], *bytes = NULL;
    size_t size = 0;
    int status = read_file(&bytes, &size, path);
    if (status < 0)
        return status;
    write_header(header, name, size);
    if (!write_bytes(out, header, BLOCK) || !write_bytes(out, bytes, size) ||
        !write_bytes(out, zeros, (BLOCK - size % BLOCK) % BLOCK))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "the bundle of this program can't be written");
    base_free(&bytes);
    return status;
}

typedef struct bundling {
    gzFile out;
    int status;
} bundling;

/* The loader has the name that starts programs with it; the kernel's own library is in no file. */
static int add_library(struct dl_phdr_info *info, size_t size, void *context)
{
    bundling *b = context;
    const char *name = strrchr(info->dlpi_name, '/');
    (void)size;
    if (b->status < 0 || !name)
        return 0;
    bool loader = strncmp(name, "/ld-linux", 9) == 0 || strncmp(name, "/ld64", 5) == 0;
    b->status = add_file(b->out, loader ? "ld.so" : name + 1, info->dlpi_name);
    return 0;
}

static int write_bundle(const char *path)
{
    static const char end[2 * BLOCK];
    bundling b = {.out = gzopen(path, "wb1e")};
    if (!b.out)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be made", path);
    b.status = add_file(b.out, "shoal", "/proc/self/exe");
    dl_iterate_phdr(add_library, &b);
    if (b.status == SHOAL_OK && !write_bytes(b.out, end, sizeof end))
        b.status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be written", path);
    if (gzclose(b.out) != Z_OK && b.status == SHOAL_OK)
        b.status = shoal_fail(SHOAL_SYSTEM, "%s can't be written", path);
    return b.status;
}

int cloud_bundle_make(char **path, char hash[CLOUD_HASH_BYTES], const char *folder)
{
    char program[CLOUD_HASH_BYTES], *temporary = NULL;
    int status = hash_file(program, "/proc/self/exe");
    if (status == SHOAL_OK)
        status = base_format(path, "%s/%s.tar.gz", folder, program);
    if (status == SHOAL_OK && access(*path, R_OK) != 0) {
        status = base_format(&temporary, "%s.tmp-%d", *path, (int)getpid());
        if (status == SHOAL_OK)
            status = write_bundle(temporary);
        if (status == SHOAL_OK && rename(temporary, *path) != 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s can't be made", *path);
        if (status < 0 && temporary)
            unlink(temporary);
    }
    if (status == SHOAL_OK)
        status = hash_file(hash, *path);
    base_free(&temporary);
    return status;
}
