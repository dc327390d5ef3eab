/* Takes the place of src/data/hdf5 in the portable programs, and where shoal was built without libhdf5. */
#include "data/format/hdf5/hdf5.h"

static int refuse(const data_source *source)
{
    return shoal_fail(
        SHOAL_USAGE,
        "%s is an HDF5 file, and this shoal was built without libhdf5; use a build that has it, or convert "
        "the file in Python: numpy.save('x.npy', h5py.File('x.h5')['name'][:])",
        source->path);
}

int hdf5_list(data_members *out, data_source *source)
{
    (void)out;
    return refuse(source);
}

int hdf5_open_member(shoal_data *data, data_source *source, const data_member *member)
{
    (void)data, (void)member;
    return refuse(source);
}
