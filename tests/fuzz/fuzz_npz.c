/* Fuzzes .npz files and the directories of zip files: what is listed, and each array by its name. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 2 && memcmp(bytes, "PK", 2) == 0)
        open_members(bytes, size);
    return 0;
}
