/* Bringing a job's code to where it runs.  See job_code.h.
 *
 * Every worker has its own folder for the files of its job, since the programs that run there may write beside them.
 * It is below the cache, named after host and process, and removed when the worker ends; what killed workers left is
 * removed by the next worker on that host.  A module is never put in a folder: it is loaded from the very file whose
 * hash was checked. */
#include "engine/store/job_code.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/path.h"
#include "engine/store/job_cache.h"
#include "engine/store/job_keys.h"

enum { HOST_BYTES = 64 };
static const char files[] = "files/", command[] = "command";

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool job_code_name_is_good(const char *name)
{
    if (strlen(name) > JOB_CODE_NAME_MOST)
        return false;
    if (strcmp(name, JOB_CODE_MODULE) == 0 || strcmp(name, command) == 0)
        return true;
    return strncmp(name, files, strlen(files)) == 0 && base_path_stays_below(name + strlen(files));
}

bool job_code_allowed(const char *list, const char *sha256)
{
    size_t length = strlen(sha256);
    for (const char *at = list; *at;) {
        size_t item = strcspn(at, ",");
        if (item == length && strncasecmp(at, sha256, length) == 0)
            return true;
        at += item + (at[item] == ',');
    }
    return false;
}

int job_code_list(job_spec *spec, const shoal_code *code, int codes)
{
    if (codes <= 0)
        return SHOAL_OK;
    if (codes > SHOAL_CODE_MOST)
        return shoal_fail(SHOAL_USAGE, "a job can bring at most %d files, not %d", SHOAL_CODE_MOST, codes);
    int status = base_alloc(&spec->code, (size_t)codes, sizeof *spec->code, "the code of a job");
    for (int i = 0; i < codes && status == SHOAL_OK; i++) {
        job_code *to = &spec->code[spec->codes++];
        if (!job_code_name_is_good(code[i].name))
            return shoal_fail(SHOAL_USAGE, "a job can't bring a file called '%s'", code[i].name);
        if (code[i].size > JOB_CODE_BYTES_MOST)
            return shoal_fail(SHOAL_USAGE, "%s: %zu bytes are more than a job can bring", code[i].name, code[i].size);
        to->size = (int64_t)code[i].size;
        status = base_copy_text(&to->name, code[i].name);
        if (status == SHOAL_OK)
            base_hash_of(to->hash, code[i].bytes, code[i].size);
    }
    return status;
}

/* ---- in the store ------------------------------------------------------------------------------------------------ */

static job_key key_of(const char *id, const unsigned char hash[BASE_HASH_SIZE])
{
    char name[BASE_HASH_HEX + 8] = "code/";
    base_hex_write(name + strlen(name), hash, BASE_HASH_SIZE);
    return job_key_of(id, name);
}

int shoal_job_put_code(shoal_store *store, const char *id, const shoal_code *code, int codes, int64_t deadline)
{
    int status = SHOAL_OK;
    for (int i = 0; i < codes && status == SHOAL_OK; i++) {
        unsigned char hash[BASE_HASH_SIZE];
        base_hash_of(hash, code[i].bytes, code[i].size);
        /* Unconditional: the same bytes are put again, whatever became of an earlier try. */
        status = shoal_store_put(store, key_of(id, hash).text, code[i].bytes, code[i].size, NULL, NULL, deadline);
    }
    return status;
}

/* ---- trust ------------------------------------------------------------------------------------------------------- */

int job_code_check(const job_spec *spec, const shoal_worker_options *options)
{
    char lacking[SHOAL_CODE_MOST * BASE_HASH_HEX] = "";
    const char *first = NULL;
    for (int i = 0; i < spec->codes && !options->spec; i++) {
        char hex[BASE_HASH_HEX];
        base_hex_write(hex, spec->code[i].hash, BASE_HASH_SIZE);
        if (options->allow_code && job_code_allowed(options->allow_code, hex))
            continue;
        size_t length = strlen(lacking);
        snprintf(lacking + length, sizeof lacking - length, "%s%s", first ? "," : "", hex);
        first = first ? first : spec->code[i].name;
    }
    if (!first)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID,
                      "job %s brings code (%s), which this worker was not told to trust: --allow-code %s", spec->id,
                      first, lacking);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* HOST without characters that separate the parts of a folder's name. */
static void own_host(char out[HOST_BYTES])
{
    if (gethostname(out, HOST_BYTES - 1) != 0)
        snprintf(out, HOST_BYTES, "host");
    out[HOST_BYTES - 1] = '\0';
    for (char *at = out; *at; at++)
        if (*at == '/' || *at == '+')
            *at = '_';
}

/* Removes the folders (HOST+PID+RANDOM) of workers of this host that are dead. */
static void sweep(const char *runs, const char *host)
{
    DIR *folder = opendir(runs);
    size_t length = strlen(host);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[4096];
        if (strncmp(entry->d_name, host, length) != 0 || entry->d_name[length] != '+')
            continue;
        long process = strtol(entry->d_name + length + 1, NULL, 10);
        if (process <= 0 || kill((pid_t)process, 0) == 0 || errno != ESRCH)
            continue;
        if (snprintf(path, sizeof path, "%s/%s", runs, entry->d_name) < (int)sizeof path)
            base_remove_folder(path);
    }
    if (folder)
        closedir(folder);
}

/* A folder that nobody else has, below the cache, or below the usual place for temporary files. */
static int make_folder(char **out, const char *cache)
{
    char host[HOST_BYTES];
    char *runs = NULL;
    own_host(host);
    int status = cache ? base_format(&runs, "%s/run", cache) : base_copy_text(&runs, base_temporary_folder());
    if (status == SHOAL_OK && cache) {
        (void)base_make_folders(runs, 0700, NULL); /* a failure shows below */
        sweep(runs, host);
    }
    if (status == SHOAL_OK)
        status = base_format(out, "%s/%s+%ld+XXXXXX", runs, host, (long)getpid());
    if (status == SHOAL_OK && !mkdtemp(*out)) {
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't make a folder for the job's code", runs);
        base_free(out);
    }
    base_free(&runs);
    return status;
}

static int write_all(int file, const char *name, const void *bytes, size_t size)
{
    int error = base_write_all(file, bytes, size);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't write", name) : SHOAL_OK;
}

static int write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path = NULL;
    int status = base_format(&path, "%s/%s", folder, name);
    int error = status == SHOAL_OK ? base_make_folders_above(path, 0700, NULL) : 0;
    if (error)
        status = shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make its folder", path);
    if (status == SHOAL_OK) { /* programs among the files may be started */
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
        if (file < 0)
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path);
        else
            status = write_all(file, path, bytes, size);
        if (file >= 0 && close(file) < 0 && status == SHOAL_OK) /* network disks report here that they are full */
            status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't write", path);
    }
    base_free(&path);
    return status;
}

int job_code_in_memory(int *out, const void *bytes, size_t size)
{
    *out = memfd_create("shoal-module", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*out < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "can't keep a module in memory");
    int status = write_all(*out, "a module in memory", bytes, size);
    if (status == SHOAL_OK && fcntl(*out, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "can't seal a module in memory");
    return status;
}

/* ---- bringing ---------------------------------------------------------------------------------------------------- */

static int place_code(job_code_here *here, const job_code *code, const void *bytes, const char *cache)
{
    if (strcmp(code->name, JOB_CODE_MODULE) == 0)
        return here->module < 0 ? job_code_in_memory(&here->module, bytes, (size_t)code->size) : SHOAL_OK;
    int status = here->folder ? SHOAL_OK : make_folder(&here->folder, cache);
    return status == SHOAL_OK ? write_file(here->folder, code->name, bytes, (size_t)code->size) : status;
}

static int check_code(const job_spec *spec, const job_code *code, const void *bytes, size_t size)
{
    unsigned char found[BASE_HASH_SIZE];
    base_hash_of(found, bytes, size);
    if (size != (size_t)code->size || memcmp(found, code->hash, BASE_HASH_SIZE) != 0)
        return shoal_fail(SHOAL_INVALID, "job %s: the code that it brings (%s) is not what its spec says", spec->id,
                          code->name);
    return SHOAL_OK;
}

/* The cache is checked like the store: by hash. */
static int bring_one(job_code_here *here, const job_spec *spec, const job_code *code, shoal_store *store,
                     job_cache *cache, const char *folder, int64_t deadline)
{
    job_cached cached = {0};
    shoal_blob blob = {0};
    int status = SHOAL_ABSENT;
    if (cache && job_cache_get(&cached, cache, code->hash, (size_t)code->size)) {
        status = check_code(spec, code, cached.data, (size_t)code->size);
        if (status == SHOAL_OK)
            status = place_code(here, code, cached.data, folder);
        else
            status = SHOAL_ABSENT;
        job_cached_release(&cached);
    }
    if (status != SHOAL_ABSENT)
        return status;
    status = shoal_store_get(store, key_of(spec->id, code->hash).text, &blob, deadline);
    if (status == SHOAL_ABSENT)
        return shoal_fail(SHOAL_AGAIN, "job %s: the code that it brings (%s) is not in the store (yet)", spec->id,
                          code->name);
    if (status == SHOAL_OK)
        status = check_code(spec, code, blob.data, blob.size);
    if (status == SHOAL_OK && cache)
        job_cache_put(cache, code->hash, blob.data, blob.size);
    if (status == SHOAL_OK)
        status = place_code(here, code, blob.data, folder);
    shoal_blob_release(&blob);
    return status;
}

int job_code_bring(job_code_here *out, const job_spec *spec, shoal_store *store, const shoal_worker_options *options,
                   int64_t deadline)
{
    job_cache *cache = NULL;
    int status = SHOAL_OK;
    *out = (job_code_here){.module = -1};
    if (spec->codes > 0 && options->cache)
        status = job_cache_new(&cache, options->cache, options->cache_bytes);
    for (int i = 0; i < spec->codes && status == SHOAL_OK; i++)
        status = bring_one(out, spec, &spec->code[i], store, cache, options->cache, deadline);
    job_cache_free(&cache);
    if (status < 0)
        job_code_release(out);
    return status;
}

void job_code_release(job_code_here *here)
{
    if (here->module >= 0)
        close(here->module);
    if (here->folder)
        base_remove_folder(here->folder);
    base_free(&here->folder);
    here->module = -1;
}
