/* Keys and modules of clients with tasks.  See task_module.h.
 *
 * The loader knows a module by the path of its descriptor, so that one stays open for as long as the module is
 * loaded. */
#include "task_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/option.h"

enum { KEY_DIGITS = 2 * SHOAL_TASK_KEY_BYTES, MODULES_MOST = 64 };

int run_read_task_key(base_secret **out, const char *path)
{
    char text[KEY_DIGITS + 3] = "";
    unsigned char key[SHOAL_TASK_KEY_BYTES];
    size_t got = 0;
    int64_t number = -1; /* a descriptor that whoever started this process handed over: nobody else gets it */
    bool handed = strncmp(path, "fd:", 3) == 0 && base_parse_count(&number, path + 3) && number > 2 && number < 1024;
    int file = handed ? (int)number : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "--task-key: %s can't be read", path);
    int error = base_read_all_at(file, text, sizeof text - 1, 0, &got);
    if (error == ESPIPE)
        error = base_read_all(file, text, sizeof text - 1, &got);
    close(file);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "--task-key: %s can't be read", path);
    text[strcspn(text, "\r\n")] = '\0';
    int status = SHOAL_OK;
    if (!base_hex_is(text, KEY_DIGITS) || !base_hex_read(key, sizeof key, text))
        status = shoal_fail(SHOAL_USAGE, "--task-key: %s does not hold %d hexadecimal digits", path, KEY_DIGITS);
    else
        status = base_secret_set(out, (const char *)key, sizeof key);
    base_wipe(text, sizeof text);
    base_wipe(key, sizeof key);
    return status;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* Those that were loaded, by the hash of their bytes: a client may be served many times. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned char hash[BASE_HASH_SIZE];
    const shoal_task_entry *entry;
} loaded[MODULES_MOST];
static int loaded_count;

static int hash_file(unsigned char hash[BASE_HASH_SIZE], int file)
{
    struct stat about;
    if (fstat(file, &about) < 0 || about.st_size <= 0)
        return shoal_fail(SHOAL_INVALID, "the module is empty");
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "the module can't be read");
    base_hash_of(hash, bytes, (size_t)about.st_size);
    munmap(bytes, (size_t)about.st_size);
    return SHOAL_OK;
}

static int check_table(const shoal_task_table *table)
{
    if (!table)
        return shoal_fail(SHOAL_INVALID, "the module defines no SHOAL_TASKS(...) (shoal/task.h)");
    if (table->version != SHOAL_TASK_VERSION || table->bytes != sizeof *table || !table->entry)
        return shoal_fail(SHOAL_INVALID,
                          "the module was compiled for version %u of shoal/task.h, and this program has version %d: "
                          "compile it again",
                          table->version, SHOAL_TASK_VERSION);
    return SHOAL_OK;
}

static int load_module(const shoal_task_entry **out, int file)
{
    char path[48];
    int kept = fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (kept < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "the module can't be loaded");
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        close(kept);
        return shoal_fail(SHOAL_INVALID, "the module can't be loaded: %s", why ? why : "the loader does not say why");
    }
    const shoal_task_table *table = dlsym(handle, "shoal_task_module");
    int status = check_table(table);
    if (status == SHOAL_OK) {
        *out = table->entry;
        return SHOAL_OK;
    }
    dlclose(handle);
    close(kept);
    return status;
}

int run_load_tasks(const shoal_task_entry **out, int file)
{
    unsigned char hash[BASE_HASH_SIZE];
    int status = hash_file(hash, file), at = 0;
    if (status < 0)
        return status;
    pthread_mutex_lock(&lock);
    while (at < loaded_count && memcmp(loaded[at].hash, hash, sizeof hash) != 0)
        at++;
    if (at == MODULES_MOST)
        status = shoal_fail(SHOAL_INVALID, "this worker has loaded %d modules already: start another", MODULES_MOST);
    if (status == SHOAL_OK && at == loaded_count) {
        status = load_module(&loaded[at].entry, file);
        if (status == SHOAL_OK) {
            memcpy(loaded[at].hash, hash, sizeof hash);
            loaded_count++;
        }
    }
    if (status == SHOAL_OK)
        *out = loaded[at].entry;
    pthread_mutex_unlock(&lock);
    return status;
}
