/* Loading modules.  See module.h.
 *
 * What is loaded is a sealed copy in memory of what the descriptor holds, so that nobody can change it under the
 * loader, and nobody else's path is ever opened. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "learn/check.h"
#include "learn/module_internal.h"

static const size_t MODULE_BYTES_MOST = (size_t)256 << 20;

/* The module of this process. */
static struct {
    const shoal_module *table; /* NULL: none */
    void *handle;
    int memory; /* the sealed copy, which the loader knows it by */
    unsigned char *bytes;
    size_t size;
    shoal_algorithm whole; /* when the module brings the whole contract */
} current;

const shoal_module *learn_module_current(void)
{
    return current.table;
}

const char *learn_module_summary(void)
{
    return current.table ? current.table->summary : NULL;
}

static void unload(void)
{
    if (!current.table)
        return;
    dlclose(current.handle);
    close(current.memory);
    base_free(&current.bytes);
    memset(&current, 0, sizeof current);
}

/* ---- the whole contract ------------------------------------------------------------------------------------------ */

/* The settings of the module's own table, and the parameters that their texts point into. */
typedef struct own_config {
    void *config;
    shoal_params *params;
} own_config;

static void free_own(own_config *own)
{
    base_free(&own->config);
    learn_params_free(&own->params);
}

/* The options of its table are set by name from the parameters. */
static int make_own(own_config *own, const void *config)
{
    const learn_module_config *asked = config;
    const shoal_algorithm *algorithm = current.table->algorithm;
    int status = learn_params_new(&own->params, asked->params ? asked->params : "{}");
    if (status == SHOAL_OK)
        status = base_alloc(&own->config, algorithm->config_size + 1, 1, "a module's settings");
    if (status == SHOAL_OK && algorithm->options)
        status = shoal_options_default(own->config, algorithm->options);
    return status == SHOAL_OK ? learn_params_set(own->config, algorithm->options, own->params) : status;
}

static int start_whole(shoal_round **out, const void *config, const shoal_shape *shape)
{
    own_config own = {0};
    int status = make_own(&own, config);
    if (status == SHOAL_OK)
        status = current.table->algorithm->start(out, own.config, shape);
    free_own(&own);
    return status;
}

static int strata_whole(const void *config, shoal_shape *shape)
{
    own_config own = {0};
    int status = make_own(&own, config);
    if (status == SHOAL_OK)
        status = current.table->algorithm->strata(own.config, shape);
    free_own(&own);
    return status;
}

/* Settings that are wrong are what `start` will complain about. */
static int64_t rows_per_grain_whole(const void *config, const shoal_shape *shape)
{
    own_config own = {0};
    int64_t rows = make_own(&own, config) == SHOAL_OK ? current.table->algorithm->rows_per_grain(own.config, shape) : 0;
    free_own(&own);
    return rows;
}

static int cost_whole(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    own_config own = {0};
    int status = make_own(&own, config);
    if (status == SHOAL_OK)
        status = current.table->algorithm->cost(out, own.config, shape);
    free_own(&own);
    return status;
}

/* They see their own table as `self`. */
static int check_whole(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const shoal_algorithm *own = current.table->algorithm;
    (void)self;
    return own->check(own, round, shape);
}

static int check_result_whole(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                              const shoal_shape *shape)
{
    const shoal_algorithm *own = current.table->algorithm;
    (void)self;
    return own->check_result ? own->check_result(own, result, first, shape) : SHOAL_OK;
}

static const shoal_algorithm *make_algorithm(void)
{
    const shoal_algorithm *own = current.table->algorithm;
    if (!own)
        return &learn_module;
    current.whole = *own;
    current.whole.name = learn_module.name;
    current.whole.options = learn_module_options;
    current.whole.config_size = sizeof(learn_module_config);
    current.whole.runs_code = false; /* it is the code: crew->code has nothing for it */
    current.whole.start = start_whole;
    current.whole.strata = own->strata ? strata_whole : NULL;
    current.whole.rows_per_grain = own->rows_per_grain ? rows_per_grain_whole : NULL;
    current.whole.cost = own->cost ? cost_whole : NULL;
    current.whole.check = check_whole;
    current.whole.check_result = check_result_whole;
    return &current.whole;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static int read_module_file(unsigned char **out, size_t *size, int file)
{
    struct stat info;
    if (fstat(file, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "the module can't be read");
    if (!S_ISREG(info.st_mode) || info.st_size == 0 || (size_t)info.st_size > MODULE_BYTES_MOST)
        return shoal_fail(SHOAL_INVALID, "the module is no file of 1 byte to 256 MiB");
    *size = (size_t)info.st_size;
    int status = base_alloc_unset(out, *size, 1, "a module");
    if (status < 0)
        return status;
    size_t got;
    int error = base_read_all_at(file, *out, *size, 0, &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "the module can't be read");
    return got < *size ? shoal_fail(SHOAL_INVALID, "the module became shorter while it was read") : SHOAL_OK;
}

static int seal(int *out, const unsigned char *bytes, size_t size)
{
    *out = memfd_create("shoal-module", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = *out < 0 ? errno : base_write_all(*out, bytes, size);
    if (!error && fcntl(*out, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        error = errno;
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "the module can't be copied into memory") : SHOAL_OK;
}

/* The loader's sentence without the path, which means nothing to people. */
static int fail_load(const char *path)
{
    const char *why = dlerror();
    size_t length = strlen(path);
    why = why ? why : "the loader does not say why";
    if (strncmp(why, path, length) == 0 && strncmp(why + length, ": ", 2) == 0)
        why += length + 2;
    return shoal_fail(SHOAL_INVALID, "the module can't be loaded: %s", why);
}

static int check_table(const shoal_module *table)
{
    if (!table)
        return shoal_fail(SHOAL_INVALID, "the module defines no SHOAL_MODULE(...) (shoal/module.h)");
    if (table->version != SHOAL_MODULE_VERSION || table->bytes != sizeof *table)
        return shoal_fail(SHOAL_INVALID,
                          "the module was compiled for version %u of shoal/module.h, and this program has version %d: "
                          "compile it again",
                          table->version, SHOAL_MODULE_VERSION);
    if (!table->map && !table->algorithm)
        return shoal_fail(SHOAL_INVALID, "the module's SHOAL_MODULE(...) has neither .map nor .algorithm");
    if (table->algorithm && learn_algorithm_check(table->algorithm) < 0)
        return shoal_fail(SHOAL_INVALID, "the module's .algorithm: %s", shoal_error());
    return SHOAL_OK;
}

static int open_module(const unsigned char *bytes, size_t size)
{
    char path[48];
    int memory = -1;
    void *handle = NULL;
    const shoal_module *table = NULL;
    int status = seal(&memory, bytes, size);
    if (status == SHOAL_OK) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        status = handle ? SHOAL_OK : fail_load(path);
    }
    if (status == SHOAL_OK) {
        table = dlsym(handle, "shoal_module_table");
        status = check_table(table);
    }
    if (status == SHOAL_OK) {
        unload();
        current.table = table;
        current.handle = handle;
        current.memory = memory;
        return SHOAL_OK;
    }
    if (handle)
        dlclose(handle);
    if (memory >= 0)
        close(memory);
    return status;
}

int learn_module_load(const shoal_algorithm **out, int file)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    int status = read_module_file(&bytes, &size, file);
    bool same = status == SHOAL_OK && current.table && current.size == size && memcmp(current.bytes, bytes, size) == 0;
    if (status == SHOAL_OK && !same) {
        status = open_module(bytes, size);
        if (status == SHOAL_OK) {
            current.bytes = bytes;
            current.size = size;
            bytes = NULL;
        }
    }
    base_free(&bytes);
    if (status == SHOAL_OK)
        *out = make_algorithm();
    return status;
}
