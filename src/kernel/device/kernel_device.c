/* Which device to compute on: finds and loads the plug-in (libshoal-cuda.so, src/cuda), once a process.  Nothing here
 * calls CUDA. */
#include "kernel/device/kernel_device.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shoal/error.h>

#define PLUGIN "libshoal-cuda.so"

/* The build passes on where plug-ins are installed, seen from the folder of an installed program. */
#ifndef SHOAL_PLUGINS_FROM_PROGRAM
#define SHOAL_PLUGINS_FROM_PROGRAM "../lib/shoal"
#endif

enum { DEVICES_MOST = 64 };

static kernel_device *opened[DEVICES_MOST];
static kernel_device *pretended;
static kernel_device_entry *entry;
static char where[PATH_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void kernel_device_pretend(kernel_device *device)
{
    pretended = device;
}

/* In a build folder or beside a program that was copied, then where it is installed; false: nowhere. */
static bool find_plugin(void)
{
    static const char *const places[] = {"cuda/" PLUGIN, PLUGIN, SHOAL_PLUGINS_FROM_PROGRAM "/cuda/" PLUGIN};
    char program[PATH_MAX];
    const char *named = getenv("SHOAL_CUDA_PLUGIN");
    if (named && *named)
        return realpath(named, where) != NULL;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", program, places[i]);
        if (realpath(path, where))
            return true;
    }
    return false;
}

static int load_plugin(void)
{
    const char *named = getenv("SHOAL_CUDA_PLUGIN");
    if (entry)
        return SHOAL_OK;
    if (!find_plugin())
        return named && *named
                   ? shoal_fail_errno(SHOAL_ABSENT, errno, "%s: the CUDA plug-in can't be loaded", named)
                   : shoal_fail(SHOAL_ABSENT, PLUGIN " is not here: install it, build shoal where nvcc is, or name the "
                                                     "file in SHOAL_CUDA_PLUGIN");
    void *handle = dlopen(where, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return shoal_fail(SHOAL_ABSENT, "%s: the CUDA plug-in can't be loaded: %s", where, dlerror());
    void *symbol = dlsym(handle, KERNEL_DEVICE_ENTRY);
    if (!symbol)
        return shoal_fail(SHOAL_ABSENT, "%s: not a CUDA plug-in of shoal: it has no " KERNEL_DEVICE_ENTRY, where);
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from an object to a function */
    return SHOAL_OK;
}

static int open_device(kernel_device **out, int index)
{
    char message[256] = "";
    if (!opened[index]) {
        int status = load_plugin();
        if (status < 0)
            return status;
        kernel_device *device = NULL;
        if (entry(&device, KERNEL_DEVICE_VERSION, index, message, sizeof message) != 0)
            return shoal_fail(SHOAL_ABSENT, "cuda:%d: %s", index, message);
        if (device->version != KERNEL_DEVICE_VERSION || device->bytes != sizeof *device)
            return shoal_fail(SHOAL_ABSENT, "%s: it belongs to another version of shoal", where);
        opened[index] = device;
    }
    *out = opened[index];
    return SHOAL_OK;
}

static bool is_any(const char *name)
{
    return !name || !*name || strcmp(name, "auto") == 0;
}

/* The number behind "cuda:"; -1 for what is none. */
static int index_of(const char *name)
{
    char *end = NULL;
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    const long index = strtol(name + 5, &end, 10);
    return *end != '\0' ? -1 : index < DEVICES_MOST ? (int)index : DEVICES_MOST;
}

int kernel_device_check(const char *name)
{
    if (is_any(name) || strcmp(name, "cpu") == 0)
        return SHOAL_OK;
    const int index = index_of(name);
    if (index == DEVICES_MOST)
        return shoal_fail(SHOAL_USAGE, "--device: '%s' is beyond cuda:%d", name, DEVICES_MOST - 1);
    return index >= 0 ? SHOAL_OK : shoal_fail(SHOAL_USAGE, "--device: '%s' is not auto, cpu, cuda or cuda:N", name);
}

int kernel_device_choose(kernel_device **out, const char *name)
{
    const bool any = is_any(name);
    *out = NULL;
    int status = kernel_device_check(name);
    if (status < 0 || (!any && strcmp(name, "cpu") == 0))
        return status;
    const int index = any ? 0 : index_of(name);
    if (pretended) {
        *out = pretended;
        return SHOAL_OK;
    }
    pthread_mutex_lock(&lock);
    status = any && !find_plugin() ? SHOAL_OK : open_device(out, index);
    pthread_mutex_unlock(&lock);
    return any ? SHOAL_OK : status;
}
