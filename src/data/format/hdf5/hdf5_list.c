/* The data sets of an HDF5 file, those in groups below groups, too.
 *
 * Only hard links are followed, and each group is entered once, so that links that go in circles end.  Links to other
 * files or to other names are listed as what they are and never followed: a file must not make us read another one. */
#include "hdf5.h"

#include <string.h>

#include "base/memory.h"
#include "hdf5_dataset.h"

enum { DEPTH_MOST = 32, GROUPS_MOST = 4096, LINKS_MOST = 1 << 17, NAME_BYTES = 1024 };

typedef struct listing {
    const hdf5_library *hdf5;
    const data_source *source;
    data_members *out;
    haddr_t *entered; /* the groups that were entered, by their addresses */
    int groups, links;
    bool matlab;
    char path[NAME_BYTES];
} listing;

static bool enter_group(listing *self, haddr_t address)
{
    for (int i = 0; i < self->groups; i++)
        if (self->entered[i] == address)
            return false;
    if (self->groups == GROUPS_MOST)
        return false;
    self->entered[self->groups++] = address;
    return true;
}

static int add_member(listing *self, int rank, const hsize_t *shape, const hdf5_type *type)
{
    uint64_t sizes[H5S_MAX_RANK] = {0};
    data_member *member = NULL;
    const char *name = self->path + self->matlab; /* variables of MATLAB have no '/' */
    for (int i = 0; i < rank; i++)
        sizes[i] = shape[self->matlab ? rank - 1 - i : i];
    int status = data_members_add(&member, self->out, name, strlen(name), rank > 0 ? rank : 0, sizes);
    if (status < 0)
        return status;
    memcpy(member->type, type->name, sizeof member->type);
    member->has_rows = type->is_number && rank > 0;
    return SHOAL_OK;
}

/* Something that has a name and no rows. */
static int add_other(listing *self, const char *what)
{
    hdf5_type type = {0};
    strcpy(type.name, what);
    return add_member(self, 0, NULL, &type);
}

static int add_dataset(listing *self, hid_t dataset)
{
    hsize_t shape[H5S_MAX_RANK];
    hdf5_type type = hdf5_type_of(self->hdf5, dataset);
    const int rank = hdf5_shape_of(shape, self->hdf5, dataset);
    if (rank < 0)
        return add_other(self, "nothing: it is empty");
    return add_member(self, rank, shape, &type);
}

static int list_group(listing *self, hid_t group, int depth);

/* MATLAB keeps sparse matrices and structs in groups. */
static int list_object(listing *self, hid_t object, haddr_t address, int depth)
{
    const H5I_type_t kind = self->hdf5->H5Iget_type(object);
    if (kind == H5I_DATASET)
        return add_dataset(self, object);
    if (kind != H5I_GROUP)
        return SHOAL_OK;
    if (self->matlab && hdf5_has_attribute(self->hdf5, object, "MATLAB_sparse"))
        return add_other(self, "a sparse matrix");
    if (self->matlab && hdf5_has_attribute(self->hdf5, object, "MATLAB_class"))
        return add_other(self, "a struct");
    return depth < DEPTH_MOST && enter_group(self, address) ? list_group(self, object, depth + 1) : SHOAL_OK;
}

static int list_link(listing *self, hid_t group, hsize_t index, int depth)
{
    const hdf5_library *hdf5 = self->hdf5;
    const size_t before = strlen(self->path), room = sizeof self->path - before;
    H5L_info_t link;
    self->path[before] = '/';
    const ssize_t length = hdf5->H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index,
                                                    self->path + before + 1, room - 1, H5P_DEFAULT);
    int status = SHOAL_OK;
    if (length <= 0 || (size_t)length >= room - 1 ||
        hdf5->get_link_info(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, &link, H5P_DEFAULT) < 0) {
        self->path[before] = '\0';
        return SHOAL_OK; /* a name that nobody can give */
    }
    if (link.type == H5L_TYPE_EXTERNAL) {
        status = add_other(self, "a link to another file");
    } else if (link.type == H5L_TYPE_SOFT) {
        status = add_other(self, "a link to another name");
    } else if (link.type == H5L_TYPE_HARD && !(self->matlab && strcmp(self->path, "/#refs#") == 0)) {
        hid_t object = hdf5->H5Oopen(group, self->path + before + 1, H5P_DEFAULT);
        status = object < 0 ? add_other(self, "something damaged") : list_object(self, object, link.u.address, depth);
        hdf5_close(hdf5, &object);
    }
    self->path[before] = '\0';
    return status;
}

static int list_group(listing *self, hid_t group, int depth)
{
    H5G_info_t info;
    int status = SHOAL_OK;
    if (self->hdf5->H5Gget_info(group, &info) < 0)
        return shoal_fail(SHOAL_INVALID, "%s: the HDF5 file is damaged: the group %s/ can't be read",
                          self->source->path, self->path);
    for (hsize_t i = 0; i < info.nlinks && status == SHOAL_OK && self->links < LINKS_MOST; i++, self->links++)
        status = list_link(self, group, i, depth);
    return status;
}

int hdf5_list(data_members *out, data_source *source)
{
    listing self = {.source = source, .out = out, .matlab = hdf5_is_matlab(source)};
    hid_t file = -1, root = -1;
    int status = base_alloc(&self.entered, GROUPS_MOST, sizeof *self.entered, "groups");
    if (status == SHOAL_OK)
        status = hdf5_begin(&self.hdf5, source->path);
    if (status < 0) {
        base_free(&self.entered);
        return status;
    }
    status = hdf5_open_file(&file, self.hdf5, source);
    if (status == SHOAL_OK) {
        H5O_info_t info;
        root = self.hdf5->H5Oopen(file, "/", H5P_DEFAULT);
        status = root >= 0 && self.hdf5->get_object_info(root, &info) >= 0 && enter_group(&self, info.addr)
                     ? list_group(&self, root, 0)
                     : shoal_fail(SHOAL_INVALID, "%s: the HDF5 file is cut off or damaged", source->path);
    }
    hdf5_close(self.hdf5, &root);
    hdf5_close(self.hdf5, &file);
    hdf5_end(self.hdf5);
    base_free(&self.entered);
    return status;
}
