/* Fuzzes HDF5 files: what is listed, and each array by its name.  Most of what runs is libhdf5, which is not ours; see
 * docs/security.md for what that means. */
#include "fuzz_support.h"

#include "data/data_members.h"

static void open_members(const char *file)
{
    enum { OPENED = 8 };
    char address[4096];
    data_members members = {0};
    if (data_members_find(&members, file) < 0 && shoal_error()[0] == '\0')
        abort();
    for (int64_t i = 0; i < members.count && i < OPENED; i++) {
        shoal_data *data = NULL;
        snprintf(address, sizeof address, "%s:%s", file, members.member[i].name);
        if (shoal_data_open(&data, address, &(shoal_data_options){.memory = 1 << 28}) == SHOAL_OK)
            read_all(data, 1 << 16);
        else if (data || shoal_error()[0] == '\0')
            abort();
    }
    data_members_release(&members);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    int descriptor = memfd_create("input", 0);
    if (size < 8 || memcmp(bytes, "\x89HDF", 4) != 0) {
        close(descriptor);
        return 0;
    }
    if (descriptor < 0 || write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    open_members(path);
    close(descriptor);
    return 0;
}
