/* zlib's memory, taken where all memory is taken, so that tests can make it fail.  See data_internal.h. */
#include "data_internal.h"

#include <zlib.h>

#include "base/memory.h"

static voidpf allocate_for_zlib(voidpf unused, uInt count, uInt size)
{
    void *block;
    (void)unused;
    base_alloc(&block, count, size, "compression");
    return block;
}

static void free_for_zlib(voidpf unused, voidpf block)
{
    (void)unused;
    base_free(&block);
}

void data_zlib_init(struct z_stream_s *stream)
{
    *stream = (z_stream){.zalloc = allocate_for_zlib, .zfree = free_for_zlib};
}
