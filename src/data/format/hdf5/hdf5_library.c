/* Finding and loading libhdf5.  See hdf5_library.h. */
#include "hdf5_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <shoal/error.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hdf5_library library;
static bool loaded;
static struct {
    H5E_auto2_t print;
    void *context;
} printing; /* how errors are told outside of hdf5_begin and hdf5_end */

/* Debian's names, then others'.  Versions 1.10, 1.12 and 1.14, whose identifiers have 64 bits. */
static const char *const names[] = {
    "libhdf5_serial.so.103", "libhdf5_serial.so.200", "libhdf5_serial.so.310", "libhdf5.so.103",
    "libhdf5.so.200",        "libhdf5.so.310",        "libhdf5_serial.so",     "libhdf5.so"};

static bool find_functions(void *handle)
{
    bool all = true;
#define HDF5_FIND(name) all &= (*(void **)&library.name = dlsym(handle, #name)) != NULL;
    HDF5_FUNCTIONS(HDF5_FIND)
#undef HDF5_FIND
    void *link_info = dlsym(handle, "H5Lget_info_by_idx1"), *object_info = dlsym(handle, "H5Oget_info1");
    *(void **)&library.get_link_info = link_info ? link_info : dlsym(handle, "H5Lget_info_by_idx");
    *(void **)&library.get_object_info = object_info ? object_info : dlsym(handle, "H5Oget_info");
    *(void **)&library.H5Pset_file_locking = dlsym(handle, "H5Pset_file_locking");
    *(void **)&library.H5Pcreate = dlsym(handle, "H5Pcreate");
    *(void **)&library.H5Dread_chunk = dlsym(handle, "H5Dread_chunk");
    library.file_access = dlsym(handle, "H5P_CLS_FILE_ACCESS_ID_g");
    return all && library.get_link_info && library.get_object_info;
}

static bool is_new_enough(void)
{
    unsigned major = 0, minor = 0, release = 0;
    return library.H5get_libversion(&major, &minor, &release) >= 0 && (major > 1 || (major == 1 && minor >= 10)) &&
           library.H5open() >= 0;
}

/* It stays loaded, as it registers what is to be done when the process ends. */
static bool load_named(const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    loaded = find_functions(handle) && is_new_enough();
    if (!loaded)
        dlclose(handle);
    return loaded;
}

static bool load(void)
{
    const char *given = getenv("SHOAL_HDF5_LIBRARY");
    if (given)
        return load_named(given);
    for (size_t i = 0; i < sizeof names / sizeof *names && !loaded; i++)
        load_named(names[i]);
    return loaded;
}

/* A child that was forked while another thread was inside the library has it in whatever state that was, and nobody who
 * would give the lock back. */
static bool forked_inside;

static void see_whether_inside(void)
{
    if (pthread_mutex_trylock(&lock) != 0) {
        forked_inside = true; /* in its own children, too */
        lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    } else {
        pthread_mutex_unlock(&lock);
    }
}

static void prepare_for_forks(void)
{
    (void)pthread_atfork(NULL, NULL, see_whether_inside); /* without memory for it a fork is as it was */
}

int hdf5_begin(const hdf5_library **out, const char *path)
{
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    pthread_once(&prepared, prepare_for_forks);
    if (forked_inside)
        return shoal_fail(SHOAL_SYSTEM,
                          "%s can't be read here: this process was forked while another thread was reading an HDF5 "
                          "file, and libhdf5 does not survive that; start processes by spawn, or read it before",
                          path);
    pthread_mutex_lock(&lock);
    if (!loaded && !load()) {
        pthread_mutex_unlock(&lock);
        return shoal_fail(SHOAL_SYSTEM,
                          "%s is an HDF5 file, and the library to read it, libhdf5 1.10 or later, is not installed; "
                          "install libhdf5-103-1, or convert the file in Python: numpy.save('x.npy', "
                          "h5py.File('x.h5')['name'][:])",
                          path);
    }
    library.H5Eget_auto2(H5E_DEFAULT, &printing.print, &printing.context);
    library.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *out = &library;
    return SHOAL_OK;
}

void hdf5_end(const hdf5_library *hdf5)
{
    hdf5->H5Eset_auto2(H5E_DEFAULT, printing.print, printing.context);
    pthread_mutex_unlock(&lock);
}
