/* Fuzzes MATLAB files of versions 5 to 7: what is listed, and each array by its name. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 6 && memcmp(bytes, "MATLAB", 6) == 0)
        open_members(bytes, size);
    return 0;
}
