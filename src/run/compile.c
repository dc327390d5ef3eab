/* Compiling modules.  See compile.h.
 *
 * The compiler finds the public headers in the cache, where this program puts its own copies: a machine needs nothing
 * but a compiler. What is hashed is the text after the preprocessor, so that a change in any file that is included
 * makes another module. */
#include "compile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shoal/error.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/spawn.h"

enum { TEXT_BYTES_MOST = 64 << 20, TEXT_STEP = 1 << 16 };

/* A function of another kind than SHOAL_MODULE asks for would be called all the same, with arguments it does not
 * have. */
static const char *const flags[] = {"-std=gnu11",
                                    "-O2",
                                    "-ffp-contract=off",
                                    "-shared",
                                    "-fPIC",
                                    "-Werror=incompatible-pointer-types",
                                    "-Werror=implicit-function-declaration"};
enum { FLAGS = sizeof flags / sizeof flags[0], ARGUMENTS_MOST = 16 };

static const char *compiler(void)
{
    const char *chosen = getenv("CC");
    return chosen && *chosen ? chosen : "cc";
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* Makes the folders above a path. */
static int make_header_folders(const char *path)
{
    int error = base_make_folders_above(path, 0700, NULL);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "can't make the folder of %s", path) : SHOAL_OK;
}

static int write_header(const char *folder, const run_header *header)
{
    char *path = NULL;
    base_output *output = NULL;
    struct stat there;
    int status = base_format(&path, "%s/%s", folder, header->name);
    bool is_there = status == SHOAL_OK && stat(path, &there) == 0 && (size_t)there.st_size == header->size;
    if (status == SHOAL_OK && !is_there) {
        status = make_header_folders(path);
        if (status == SHOAL_OK)
            status = base_output_open(&output, path);
        if (status == SHOAL_OK)
            status = base_output_write(output, header->bytes, header->size);
        if (status == SHOAL_OK)
            status = base_output_commit(&output);
    }
    base_output_discard(&output);
    base_free(&path);
    return status;
}

/* Where the compiler finds the headers: a folder named by their content. */
static int write_headers(char **out, const char *cache)
{
    unsigned char digest[BASE_HASH_SIZE];
    char hex[BASE_HASH_HEX];
    base_hash hash = {0};
    for (const run_header *header = run_headers; header->name; header++)
        base_hash_add(&hash, header->bytes, header->size);
    base_hash_end(&hash, digest);
    base_hex_write(hex, digest, sizeof digest);
    int status = base_format(out, "%s/include/%.16s", cache, hex);
    for (const run_header *header = run_headers; status == SHOAL_OK && header->name; header++)
        status = write_header(*out, header);
    return status;
}

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

/* Starts it by the shell, since CC may be several words.  `output` becomes its standard output. */
static int start_compiler(pid_t *process, const char *const *arguments, int output)
{
    const char *all[ARGUMENTS_MOST + 4] = {"sh", "-c", "exec ${CC:-cc} \"$@\"", "sh"};
    for (int i = 0; arguments[i]; i++)
        all[4 + i] = arguments[i];
    int error = base_spawn(
        process, &(base_spawning){.words = all, .program = "/bin/sh", .stream = {0, output, 2}, .ignores_too = true});
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "can't start %s", compiler()) : SHOAL_OK;
}

static int wait_compiler(pid_t process, const char *source)
{
    int how;
    base_wait(process, &how);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
        return shoal_fail(SHOAL_SYSTEM,
                          "%s: there is no compiler %s on this machine; set CC to another "
                          "one",
                          source, compiler());
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        return shoal_fail(SHOAL_INVALID, "%s: %s can't compile it", source, compiler());
    return SHOAL_OK;
}

static int hash_output(base_hash *hash, int input)
{
    char text[TEXT_STEP];
    for (size_t total = 0; total < TEXT_BYTES_MOST;) {
        ssize_t got = read(input, text, sizeof text);
        if (got == 0)
            return SHOAL_OK;
        if (got < 0 && errno != EINTR)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't read what %s writes", compiler());
        if (got > 0)
            base_hash_add(hash, text, (size_t)got);
        total += got > 0 ? (size_t)got : 0;
    }
    return shoal_fail(SHOAL_INVALID, "%s writes more than a module can have", compiler());
}

/* Hashes the preprocessed source, with all that may change what becomes of it. */
static int hash_source(char hex[BASE_HASH_HEX], const char *source, const char *include)
{
    const char *arguments[ARGUMENTS_MOST] = {"-E", "-P", "-I", include, source, flags[0], flags[1], flags[2], NULL};
    unsigned char digest[BASE_HASH_SIZE];
    base_hash hash = {0};
    pid_t process = 0;
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't make a pipe");
    base_hash_add(&hash, compiler(), strlen(compiler()) + 1);
    for (int i = 0; i < FLAGS; i++)
        base_hash_add(&hash, flags[i], strlen(flags[i]) + 1);
    int status = start_compiler(&process, arguments, pair[1]);
    close(pair[1]);
    if (status == SHOAL_OK) {
        int heard = hash_output(&hash, pair[0]);
        close(pair[0]);
        status = wait_compiler(process, source);
        status = status == SHOAL_OK ? heard : status;
    } else {
        close(pair[0]);
    }
    base_hash_end(&hash, digest);
    base_hex_write(hex, digest, sizeof digest);
    return status;
}

static int compile(const char *to, const char *source, const char *include)
{
    const char *arguments[ARGUMENTS_MOST] = {NULL};
    char *temporary = NULL;
    pid_t process = 0;
    int count = 0;
    int status = base_format(&temporary, "%s.tmp-%ld-%ld", to, (long)getpid(), (long)gettid());
    if (status < 0)
        return status;
    for (int i = 0; i < FLAGS; i++)
        arguments[count++] = flags[i];
    const char *const rest[] = {"-I", include, "-o", temporary, source, "-lm"};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        arguments[count++] = rest[i];
    status = start_compiler(&process, arguments, STDOUT_FILENO);
    if (status == SHOAL_OK)
        status = wait_compiler(process, source);
    if (status == SHOAL_OK && rename(temporary, to) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", to);
    if (status < 0)
        unlink(temporary);
    base_free(&temporary);
    return status;
}

int run_compile(char **out, const char *source)
{
    char *cache = NULL, *include = NULL, *path = NULL, *from = NULL;
    char hex[BASE_HASH_HEX];
    if (access(source, R_OK) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the module", source);
    int status = base_user_path(&cache, BASE_CACHE, NULL, "a module in C needs a cache");
    if (status == SHOAL_OK)
        status = write_headers(&include, cache);
    if (status == SHOAL_OK) /* so that a name that starts with a dash is not an option */
        status = base_format(&from, "%s%s", source[0] == '-' ? "./" : "", source);
    if (status == SHOAL_OK)
        status = hash_source(hex, from, include);
    if (status == SHOAL_OK)
        status = base_format(&path, "%s/modules/%s.so", cache, hex);
    if (status == SHOAL_OK)
        status = make_header_folders(path);
    if (status == SHOAL_OK && access(path, R_OK) < 0)
        status = compile(path, from, include);
    if (status == SHOAL_OK) {
        *out = path;
        path = NULL;
    }
    base_free(&from);
    base_free(&path);
    base_free(&include);
    base_free(&cache);
    return status;
}
