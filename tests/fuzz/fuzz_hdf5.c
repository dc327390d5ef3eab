/* Fuzzes HDF5 files: what is listed, and each array by its name.  Most of what runs is libhdf5, which is not ours; see
 * docs/security.md for what that means. */
#include "fuzz_support.h"

/* libhdf5 loses some memory of files that are broken.  Only by its name in the whole stack can that be told from what
 * we lose. */
const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);

const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}

const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size >= 8 && memcmp(bytes, "\x89HDF", 4) == 0)
        open_members(bytes, size);
    return 0;
}
