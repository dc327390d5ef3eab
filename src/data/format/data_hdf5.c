/* HDF5, and MATLAB 7.3, which is HDF5 behind a page of text.  See hdf5/hdf5.h. */
#include <string.h>

#include "hdf5/hdf5.h"

/* The signature is at the start, or behind a block of the writer's own of 512, 1024, ... bytes. */
static bool recognise_hdf5(const data_hint *hint)
{
    static const char signature[8] = "\x89HDF\r\n\x1a\n";
    for (size_t at = 0; hint->head && at + sizeof signature <= hint->head_size; at = at ? 2 * at : 512)
        if (memcmp(hint->head + at, signature, sizeof signature) == 0)
            return true;
    return false;
}

const struct data_format data_hdf5 = {
    .name = "hdf5", .recognise = recognise_hdf5, .list = hdf5_list, .open_member = hdf5_open_member};
