/* What a run brings along.  See code.h. */
#include "code.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "engine/store/job_code.h"
#include "learn/module.h"
#include "compile.h"

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int read_open(char **out, size_t *size, int file, const char *path)
{
    struct stat about;
    if (fstat(file, &about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (!S_ISREG(about.st_mode))
        return shoal_fail(SHOAL_USAGE, "%s is not a plain file", path);
    if (about.st_size > JOB_CODE_BYTES_MOST)
        return shoal_fail(SHOAL_USAGE, "%s: %lld bytes are more than can be sent", path, (long long)about.st_size);
    int status = base_alloc(out, (size_t)about.st_size + 1, 1, path);
    if (status < 0)
        return status;
    int error = base_read_all(file, *out, (size_t)about.st_size, size);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path) : SHOAL_OK;
}

/* Adds a file that is called `name`, whose bytes are lent. */
static int add_lent(run_code *code, const char *name, const void *bytes, size_t size)
{
    if (code->count == SHOAL_CODE_MOST)
        return shoal_fail(SHOAL_USAGE, "a run can bring at most %d files", SHOAL_CODE_MOST);
    char **own = &code->owned[2 * code->count];
    int status = base_copy_text(&own[0], name);
    if (status == SHOAL_OK)
        code->file[code->count++] = (shoal_code){.name = own[0], .bytes = bytes, .size = size};
    return status;
}

/* The same; takes the bytes, also on failure. */
static int add_code(run_code *code, const char *name, char *bytes, size_t size)
{
    int status = add_lent(code, name, bytes, size);
    if (status == SHOAL_OK)
        code->owned[2 * code->count - 1] = bytes;
    else
        base_free(&bytes);
    return status;
}

static int add_code_file(run_code *code, const char *name, const char *path)
{
    char *bytes = NULL;
    size_t size = 0;
    for (int i = 0; i < code->count; i++)
        if (strcmp(code->file[i].name, name) == 0)
            return SHOAL_OK; /* a word of the command may be sent twice */
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    int status = read_open(&bytes, &size, file, path);
    close(file);
    if (status < 0)
        base_free(&bytes);
    return status == SHOAL_OK ? add_code(code, name, bytes, size) : status;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

int run_code_module(run_code *code, const shoal_algorithm **out, const char *path)
{
    char *compiled = NULL, *bytes = NULL;
    size_t size = 0;
    int status = base_text_ends(path, ".c") ? run_compile(&compiled, path) : SHOAL_OK;
    if (status < 0)
        return status;
    int file = open(compiled ? compiled : path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read the module", path);
    } else {
        status = learn_module_load(out, file);
        if (status < 0)
            status = shoal_fail(status, "%s: %s", path, shoal_error());
        if (status == SHOAL_OK)
            status = read_open(&bytes, &size, file, path);
        if (status == SHOAL_OK)
            status = add_code(code, JOB_CODE_MODULE, bytes, size);
        else
            base_free(&bytes);
        close(file);
    }
    base_free(&compiled);
    return status;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static bool leads_up(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

/* The path below files/: as it is when it stays below this folder, otherwise its last name. */
static int name_below(char **out, const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (path[0] == '/' || leads_up(path))
        path = base_path_name(path);
    return base_format(out, "files/%s", path);
}

static int fail_name(const char *path)
{
    return shoal_fail(SHOAL_USAGE, "%s: such a name can't be sent", path);
}

static int send_file(run_code *code, const char *path)
{
    char *name = NULL;
    int status = name_below(&name, path);
    if (status == SHOAL_OK && !job_code_name_is_good(name))
        status = fail_name(path);
    if (status == SHOAL_OK)
        status = add_code_file(code, name, path);
    base_free(&name);
    return status;
}

static int send_memory(run_code *code, const shoal_code *file)
{
    char *name = NULL;
    int status = base_format(&name, "files/%s", file->name);
    if (status == SHOAL_OK && !job_code_name_is_good(name))
        status = fail_name(file->name);
    if (status == SHOAL_OK && file->size > JOB_CODE_BYTES_MOST)
        status = shoal_fail(SHOAL_USAGE, "%s: %zu bytes are more than can be sent", file->name, file->size);
    if (status == SHOAL_OK)
        status = add_lent(code, name, file->bytes, file->size);
    base_free(&name);
    return status;
}

/* Whether a word of the command is a file that has to be sent along for it to be found. */
static bool is_file_here(const char *word)
{
    struct stat about;
    return word[0] && word[0] != '/' && !leads_up(word) && stat(word, &about) == 0 && S_ISREG(about.st_mode);
}

/* Words as a shell has them, but for variables and the like: only files are sent. */
static int send_words(run_code *code, const char *command)
{
    char *word = NULL;
    size_t length = 0;
    char quote = 0;
    int status = base_alloc(&word, strlen(command) + 1, 1, "a command");
    for (const char *at = command; status == SHOAL_OK; at++) {
        if (quote && *at == quote) {
            quote = 0;
        } else if (!quote && *at && strchr("'\"", *at)) {
            quote = *at;
        } else if (*at && (quote || !strchr(" \t\n;|&<>()", *at))) {
            at += *at == '\\' && at[1] && quote != '\'';
            word[length++] = *at;
        } else {
            word[length] = '\0';
            length = 0;
            if (is_file_here(word))
                status = send_file(code, word);
        }
        if (!*at)
            break;
    }
    base_free(&word);
    return status;
}

int run_code_command(run_code *code, const run_function *function, bool for_workers)
{
    const char *command = function->exec;
    int status = add_lent(code, "command", command, strlen(command));
    for (int i = 0; status == SHOAL_OK && i < function->files; i++)
        status = send_memory(code, &function->file[i]);
    for (int i = 0; status == SHOAL_OK && i < function->send.count; i++)
        status = send_file(code, function->send.text[i]);
    return status == SHOAL_OK && for_workers && function->files == 0 ? send_words(code, command) : status;
}

void run_code_name(run_code *code)
{
    base_hash hash = {0};
    unsigned char bytes[BASE_HASH_SIZE];
    for (int i = 0; i < code->count; i++) {
        const uint64_t size = code->file[i].size;
        base_hash_add(&hash, code->file[i].name, strlen(code->file[i].name) + 1);
        base_hash_add(&hash, &size, sizeof size);
        base_hash_add(&hash, code->file[i].bytes, code->file[i].size);
    }
    base_hash_end(&hash, bytes);
    base_hex_write(code->hash, bytes, sizeof bytes);
}

/* ---- a folder without workers ------------------------------------------------------------------------------------ */

static const char *const entries[RUN_CODE_LEFTOVERS] = {"command", "files", ""};
static const char folder_name[] = "shoal-run"; /* then a dash and what mkdtemp makes of six X */
enum { FOLDER_LENGTH = sizeof folder_name - 1 + 7 };

static int write_folder(const run_code *code)
{
    char *here = getcwd(NULL, 0);
    int status = here ? SHOAL_OK : shoal_fail_errno(SHOAL_SYSTEM, errno, "there is no current folder");
    int file = status == SHOAL_OK ? open(code->leftovers[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (status == SHOAL_OK &&
        (file < 0 || (errno = base_write_all(file, code->file[0].bytes, code->file[0].size)) != 0 ||
         symlink(here, code->leftovers[1]) < 0))
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", code->folder);
    if (file >= 0)
        close(file);
    free(here);
    return status;
}

/* Removes folders of this user whose process was killed: nobody holds their locks any more. */
static void sweep_code_folders(void)
{
    DIR *parent = opendir(base_temporary_folder());
    for (struct dirent *entry; parent && (entry = readdir(parent)) != NULL;) {
        struct stat about;
        const char *random = entry->d_name + strlen(folder_name) + 1;
        if (strncmp(entry->d_name, folder_name, strlen(folder_name)) != 0 || strlen(entry->d_name) != FOLDER_LENGTH ||
            random[-1] != '-' || strchr(random, '-'))
            continue;
        int folder = openat(dirfd(parent), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        if (fstat(folder, &about) == 0 && about.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0) {
            for (int i = 0; entries[i][0]; i++)
                unlinkat(folder, entries[i], 0);
            unlinkat(dirfd(parent), entry->d_name, AT_REMOVEDIR);
        }
        close(folder);
    }
    if (parent)
        closedir(parent);
}

/* Makes a folder and locks it, so that no other process takes it for one that is left over; one that does so between
 * the two removes it, and another is made. */
static int make_locked_folder(run_code *code)
{
    enum { ATTEMPTS = 100 };
    for (int i = 0; i < ATTEMPTS; i++) {
        struct stat about;
        int status = base_make_temporary_folder(&code->folder, folder_name);
        if (status < 0)
            return status;
        code->lock = open(code->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (code->lock >= 0)
            (void)flock(code->lock, LOCK_EX); /* a file system without locks sweeps nothing */
        if (code->lock >= 0 && fstat(code->lock, &about) == 0 && about.st_nlink > 0)
            return SHOAL_OK;
        base_close(&code->lock);
        base_free(&code->folder);
    }
    return shoal_fail(SHOAL_SYSTEM, "%s: folders vanish as fast as they are made", base_temporary_folder());
}

int run_code_folder(run_code *code, const shoal_watcher *watch)
{
    sweep_code_folders();
    int status = make_locked_folder(code);
    for (int i = 0; status == SHOAL_OK && i < RUN_CODE_LEFTOVERS; i++)
        status = base_format(&code->leftovers[i], "%s%s%s", code->folder, entries[i][0] ? "/" : "", entries[i]);
    if (status == SHOAL_OK) {
        if (watch->leftovers)
            watch->leftovers(watch->context, (const char *const *)code->leftovers);
        status = write_folder(code);
    }
    return status;
}

void run_code_release(run_code *code, const shoal_watcher *watch)
{
    if (watch->leftovers)
        watch->leftovers(watch->context, NULL);
    for (int i = 0; i < RUN_CODE_LEFTOVERS; i++) {
        if (code->leftovers[i])
            remove(code->leftovers[i]);
        base_free(&code->leftovers[i]);
    }
    for (int i = 0; i < 2 * code->count; i++)
        base_free(&code->owned[i]);
    if (code->folder)
        base_close(&code->lock);
    base_free(&code->folder);
    code->count = 0;
}
