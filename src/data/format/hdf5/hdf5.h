/* HDF5 files, by libhdf5, which is loaded when the first of them is opened: the program runs, and starts as fast,
 * without it.  Where it was not there when shoal was built, src/portable/no_hdf5.c takes the place of this folder. */
#ifndef DATA_HDF5_H
#define DATA_HDF5_H

#include "data/data_internal.h"
#include "data/format/data_members.h"

/* As data_format has them.  Names begin with '/', but for those of a MATLAB file. */
int hdf5_list(data_members *out, data_source *source);
int hdf5_open_member(shoal_data *data, data_source *source, const data_member *member);

#endif
