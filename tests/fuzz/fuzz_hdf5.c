/* Fuzzes HDF5 files: what is listed, and each array by its name.  Most of what runs is libhdf5, which is not ours; see
 * docs/security.md for what that means. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 8 && memcmp(bytes, "\x89HDF", 4) == 0)
        open_members(bytes, size);
    return 0;
}
