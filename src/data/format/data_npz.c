/* numpy's .npz: a zip file of .npy arrays, stored (numpy.savez) or deflated (savez_compressed).
 *
 * What is stored is mapped where it lies, if it lies as its type wants it; otherwise it is read straight to its place.
 * The checksum of the directory is compared with all that is read.  Zip files of other programs are named for what they
 * are (data_foreign.h). */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data_foreign.h"
#include "data/data_internal.h"
#include "data_zip.h"

static const char ending[] = ".npy";
enum { ENDING_BYTES = sizeof ending - 1 };

static bool recognise_npz(const data_hint *hint)
{
    return hint->head && data_zip_begins(hint->head, hint->head_size);
}

static bool is_array(const data_zip_member *member)
{
    return member->name_bytes > ENDING_BYTES && !memchr(member->name, '\0', member->name_bytes) &&
           memcmp(member->name + member->name_bytes - ENDING_BYTES, ending, ENDING_BYTES) == 0;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* What the header of a member says; a member that can't be read is listed with the reason. */
static int read_header(data_npy_header *header, char type[DATA_MEMBER_TYPE_BYTES], const data_zip *zip,
                       const data_source *file, const data_zip_member *member)
{
    data_part part;
    data_source source = {.descriptor = -1};
    int status = data_zip_part(&part, zip, file, member);
    if (status == SHOAL_OK)
        status = data_source_of_part(&source, file, file->path, &part);
    if (status == SHOAL_OK)
        status = data_npy_read_header(header, &source);
    data_source_close(&source);
    if (status == SHOAL_OK)
        strcpy(type, header->stored == DATA_STORED_HALF ? "float16" : shoal_type_name(header->type));
    else if (header->refused)
        strcpy(type, data_npy_refused(header->refused));
    else
        strcpy(type, member->is_encrypted ? "encrypted" : "something damaged");
    return status == SHOAL_INVALID ? SHOAL_OK : status;
}

static int add_member(data_members *out, const data_zip *zip, const data_source *file, int64_t index)
{
    const data_zip_member *member = &zip->member[index];
    char type[DATA_MEMBER_TYPE_BYTES];
    data_npy_header header = {0};
    data_member *added = NULL;
    int status = read_header(&header, type, zip, file, member);
    const bool is_read = header.has_shape && header.has_descr && header.has_order && !header.refused;
    if (status == SHOAL_OK)
        status = data_members_add(&added, out, member->name, member->name_bytes - ENDING_BYTES,
                                  is_read ? header.rank : 0, header.shape);
    if (status < 0)
        return status;
    memcpy(added->type, type, sizeof type);
    added->has_rows = is_read && header.rank > 0;
    added->place = (uint64_t)index;
    return SHOAL_OK;
}

static bool has_member(const data_members *members, const char *name)
{
    for (int64_t i = 0; i < members->count; i++)
        if (strcmp(members->member[i].name, name) == 0)
            return true;
    return false;
}

/* The arrays of a sparse matrix make sense together only. */
static int note_sparse(data_members *out, const data_source *file)
{
    if (!has_member(out, "format") || !has_member(out, "shape") || !has_member(out, "data"))
        return SHOAL_OK;
    return base_format(&out->whole,
                       "%s is a sparse matrix of scipy, and sparse rows are not supported; in Python: "
                       "numpy.save('rows.npy', scipy.sparse.load_npz('%s').toarray())",
                       file->path, file->path);
}

static int list_arrays(data_members *out, const data_zip *zip, const data_source *file)
{
    const data_foreign *kind = NULL;
    int status = SHOAL_OK;
    for (int64_t i = 0; i < zip->count && status == SHOAL_OK; i++)
        if (is_array(&zip->member[i]))
            status = add_member(out, zip, file, i);
        else if (!kind)
            kind = data_foreign_of_member(zip->member[i].name, zip->member[i].name_bytes);
    if (status == SHOAL_OK && out->count == 0)
        status = data_foreign_fail(file->path, kind ? kind : &data_foreign_zip);
    return status == SHOAL_OK ? note_sparse(out, file) : status;
}

static int list_npz(data_members *out, data_source *source)
{
    data_zip zip;
    if (!source->mappable)
        return shoal_fail(SHOAL_INVALID,
                          "%s: a zip file such as .npz has its directory at its end, so it is read from a plain file "
                          "that is not compressed as a whole, and not from a pipe",
                          source->path);
    int status = data_zip_open(&zip, source);
    if (status < 0)
        return status;
    status = list_arrays(out, &zip, source);
    data_zip_release(&zip);
    return status;
}

/* ---- one array --------------------------------------------------------------------------------------------------- */

static int describe(shoal_data *data, const data_npy_header *header, const data_member *member, const data_part *part)
{
    char *order = NULL;
    int status = data_npy_detail(&order, header);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "npz, %s%s, %s, %s", member->name, part->coder ? ", deflated" : "", order,
                             data_kept(data));
    base_free(&order);
    if (status == SHOAL_OK)
        base_text_clean(data->detail);
    return status;
}

static int open_part(shoal_data *data, const data_source *file, const data_member *member, const data_part *part)
{
    data_source source = {.descriptor = -1};
    data_npy_header header;
    int status = data_source_of_part(&source, file, data->path, part);
    if (status == SHOAL_OK)
        status = data_npy_open(&header, data, &source);
    if (status == SHOAL_OK)
        status = describe(data, &header, member, part);
    data_source_close(&source);
    return status;
}

static int open_npz(shoal_data *data, data_source *source, const data_member *member)
{
    data_zip zip;
    data_part part;
    int status = data_zip_open(&zip, source);
    if (status < 0)
        return status;
    if (member->place >= (uint64_t)zip.count)
        status = shoal_fail(SHOAL_INVALID, "%s changed while it was read", source->path);
    if (status == SHOAL_OK)
        status = data_zip_part(&part, &zip, source, &zip.member[member->place]);
    if (status == SHOAL_OK)
        status = open_part(data, source, member, &part);
    data_zip_release(&zip);
    return status;
}

const struct data_format data_npz = {
    .name = "npz", .recognise = recognise_npz, .list = list_npz, .open_member = open_npz};
