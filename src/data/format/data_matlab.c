/* MATLAB's .mat files of versions 5 to 7, which Octave, scipy and R write, too; those of 7.3 are HDF5.
 *
 *     128 bytes of header, then elements: type, bytes, content, to a multiple of 8
 *     a matrix is an element of elements: flags and class, dimensions, name, values; it may be compressed by zlib
 *
 * Values lie column by column, and may be stored in a smaller type than their class, in either byte order.  It is a
 * reader of our own, since this is all there is to know of matrices of numbers, and all else is only named: nothing of
 * it is followed.  Format: "MAT-File Format", The MathWorks. */
#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/data_internal.h"

enum { HEADER_BYTES = 128, TAG_BYTES = 8, NAME_BYTES = 1024, RANK_MOST = 64, VARIABLES_MOST = 1 << 17 };
enum { TYPE_INT8 = 1, TYPE_INT32 = 5, TYPE_UINT32 = 6, TYPE_MATRIX = 14, TYPE_COMPRESSED = 15 };
enum { CLASS_SPARSE = 5, CLASS_DOUBLE = 6, CLASS_UINT8 = 9, CLASS_UINT64 = 15, CLASS_OPAQUE = 17 };
enum { FLAG_LOGICAL = 2, FLAG_COMPLEX = 8 };

static bool recognise_matlab(const data_hint *hint)
{
    const unsigned char *head = hint->head;
    if (!head || hint->head_size < HEADER_BYTES || memcmp(head, "MATLAB", 6) != 0)
        return false;
    return memcmp(head + 124, "\0\1IM", 4) == 0 || memcmp(head + 124, "\1\0MI", 4) == 0;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* A stream of elements: the file's, or the content of one of them. */
typedef struct mat_stream {
    data_source *source;
    bool is_big; /* big-endian */
} mat_stream;

typedef struct mat_tag {
    uint32_t type, bytes;
    bool is_small; /* the content is in the second half of the tag */
} mat_tag;

static int fail_damaged(const char *path, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "%s: the MATLAB file is cut off or damaged: %s", path, why);
}

static uint32_t get32(const unsigned char *at, bool is_big)
{
    return is_big ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                  : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static int read_exactly(mat_stream *in, void *out, size_t size)
{
    size_t got;
    int status = data_source_read(&got, in->source, out, size);
    if (status == SHOAL_OK && got < size)
        status = fail_damaged(in->source->path, "a variable ends early");
    return status;
}

/* The source is at the content then. */
static int read_tag(mat_tag *out, mat_stream *in)
{
    unsigned char bytes[TAG_BYTES];
    *out = (mat_tag){0};
    int status = read_exactly(in, bytes, 4);
    if (status < 0)
        return status;
    const uint32_t first = get32(bytes, in->is_big);
    if (first >> 16) {
        *out = (mat_tag){first & 0xffff, first >> 16, true};
        return out->bytes <= 4 ? SHOAL_OK : fail_damaged(in->source->path, "a short element is too long");
    }
    if ((status = read_exactly(in, bytes + 4, 4)) == SHOAL_OK)
        *out = (mat_tag){first, get32(bytes + 4, in->is_big), false};
    return status;
}

/* One whole element of at most `room` bytes. */
static int read_element(unsigned char *out, size_t room, mat_tag *tag, mat_stream *in)
{
    unsigned char padding[TAG_BYTES];
    int status = read_tag(tag, in);
    if (status == SHOAL_OK && tag->bytes > room)
        status = fail_damaged(in->source->path, "a name or a list of dimensions is too long");
    if (status == SHOAL_OK)
        status = read_exactly(in, out, tag->bytes);
    const uint32_t whole = tag->is_small ? 4 : TAG_BYTES;
    if (status == SHOAL_OK && tag->bytes % whole != 0)
        status = read_exactly(in, padding, whole - tag->bytes % whole);
    else if (status == SHOAL_OK && tag->is_small && tag->bytes == 0)
        status = read_exactly(in, padding, whole);
    return status;
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* What stands before the values of a variable. */
typedef struct mat_matrix {
    uint32_t class, flags;
    int rank;
    uint64_t shape[RANK_MOST];
    char name[NAME_BYTES + 1];
} mat_matrix;

static int read_dimensions(mat_matrix *out, mat_stream *in)
{
    unsigned char bytes[4 * RANK_MOST];
    mat_tag tag;
    int status = read_element(bytes, sizeof bytes, &tag, in);
    if (status < 0)
        return status;
    if (tag.type != TYPE_INT32 || tag.bytes % 4 != 0 || tag.bytes < 8)
        return fail_damaged(in->source->path, "a variable has no dimensions");
    out->rank = (int)(tag.bytes / 4);
    for (int i = 0; i < out->rank; i++) {
        const int32_t size = (int32_t)get32(bytes + (size_t)4 * (size_t)i, in->is_big);
        if (size < 0)
            return fail_damaged(in->source->path, "a dimension is negative");
        out->shape[i] = (uint64_t)size;
    }
    return SHOAL_OK;
}

static int read_name(mat_matrix *out, mat_stream *in)
{
    mat_tag tag;
    int status = read_element((unsigned char *)out->name, NAME_BYTES, &tag, in);
    if (status == SHOAL_OK && (tag.type != TYPE_INT8 || memchr(out->name, '\0', tag.bytes)))
        status = fail_damaged(in->source->path, "a variable has no name");
    out->name[status == SHOAL_OK ? tag.bytes : 0] = '\0';
    return status;
}

/* Everything before the values; objects have no dimensions. */
static int read_matrix(mat_matrix *out, mat_stream *in)
{
    unsigned char flags[8];
    mat_tag tag;
    *out = (mat_matrix){0};
    int status = read_element(flags, sizeof flags, &tag, in);
    if (status < 0)
        return status;
    if (tag.type != TYPE_UINT32 || tag.bytes != sizeof flags)
        return fail_damaged(in->source->path, "a variable has no flags");
    out->class = get32(flags, in->is_big) & 0xff;
    out->flags = get32(flags, in->is_big) >> 8 & 0xff;
    if (out->class != CLASS_OPAQUE)
        status = read_dimensions(out, in);
    return status == SHOAL_OK ? read_name(out, in) : status;
}

/* The type that rows of a class have. */
static bool type_of_class(shoal_type *out, const mat_matrix *matrix)
{
    static const shoal_type types[] = {SHOAL_FLOAT64, SHOAL_FLOAT32, SHOAL_INT8,   SHOAL_UINT8, SHOAL_INT16,
                                       SHOAL_UINT16,  SHOAL_INT32,   SHOAL_UINT32, SHOAL_INT64, SHOAL_UINT64};
    if (matrix->class < CLASS_DOUBLE || matrix->class > CLASS_UINT64 || matrix->flags & FLAG_COMPLEX)
        return false;
    *out = matrix->flags & FLAG_LOGICAL ? SHOAL_BOOL : types[matrix->class - CLASS_DOUBLE];
    return true;
}

/* What is no matrix of numbers. */
static const char *name_class(const mat_matrix *matrix)
{
    static const char *const names[] = {"something unknown", "a cell array", "a struct",
                                        "an object",         "text",         "a sparse matrix"};
    if (matrix->class <= CLASS_SPARSE)
        return names[matrix->class];
    return matrix->class <= CLASS_UINT64 ? "complex numbers" : "an object or function";
}

/* The type that values of the type of an element have; false for what holds no numbers. */
static bool type_of_element(shoal_type *out, uint32_t type)
{
    static const struct {
        bool is_number;
        shoal_type type;
    } types[] = {[1] = {true, SHOAL_INT8},    [2] = {true, SHOAL_UINT8},   [3] = {true, SHOAL_INT16},
                 [4] = {true, SHOAL_UINT16},  [5] = {true, SHOAL_INT32},   [6] = {true, SHOAL_UINT32},
                 [7] = {true, SHOAL_FLOAT32}, [9] = {true, SHOAL_FLOAT64}, [12] = {true, SHOAL_INT64},
                 [13] = {true, SHOAL_UINT64}};
    if (type >= sizeof types / sizeof *types || !types[type].is_number)
        return false;
    *out = types[type].type;
    return true;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

/* Opens the variable at `place` of the file: *out is then at its flags.  *next is where another one may be. */
static int open_variable(data_source *out, mat_tag *tag, uint64_t *next, const data_source *file, bool is_big,
                         uint64_t place)
{
    unsigned char bytes[TAG_BYTES];
    size_t got = 0;
    const int error = base_read_all_at(file->descriptor, bytes, sizeof bytes, (int64_t)place, &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", file->path);
    if (got < sizeof bytes)
        return fail_damaged(file->path, "it ends within a variable");
    *tag = (mat_tag){get32(bytes, is_big), get32(bytes + 4, is_big), false};
    *next = place + TAG_BYTES + tag->bytes;
    if (*next > file->file_size)
        return fail_damaged(file->path, "it ends within a variable");
    const data_part part = {.first = place + TAG_BYTES,
                            .packed = tag->bytes,
                            .size = tag->bytes,
                            .coder = tag->type == TYPE_COMPRESSED ? &data_coder_zlib : NULL,
                            .is_bare = true};
    int status = data_source_of_part(out, file, file->path, &part);
    if (status == SHOAL_OK && tag->type == TYPE_COMPRESSED) {
        status = read_tag(tag, &(mat_stream){out, is_big});
        if (status == SHOAL_OK && tag->is_small)
            status = fail_damaged(file->path, "a compressed variable is none");
    }
    return status;
}

static int add_variable(data_members *out, const mat_matrix *matrix, uint64_t place)
{
    data_member *member = NULL;
    shoal_type type = SHOAL_FLOAT64;
    bool is_empty = false;
    const bool is_number = type_of_class(&type, matrix);
    for (int i = 0; i < matrix->rank; i++)
        is_empty |= matrix->shape[i] == 0;
    int status =
        data_members_add(&member, out, matrix->name, strlen(matrix->name), is_number ? matrix->rank : 0, matrix->shape);
    if (status < 0)
        return status;
    strcpy(member->type, is_empty ? "an empty matrix" : is_number ? shoal_type_name(type) : name_class(matrix));
    member->has_rows = is_number && !is_empty;
    member->place = place;
    return SHOAL_OK;
}

/* MATLAB keeps data of objects in variables without a name. */
static int list_variable(data_members *out, uint64_t *next, const data_source *file, bool is_big, uint64_t place)
{
    data_source source = {.descriptor = -1};
    mat_matrix matrix;
    mat_tag tag;
    int status = open_variable(&source, &tag, next, file, is_big, place);
    if (status == SHOAL_OK && tag.type == TYPE_MATRIX) {
        status = read_matrix(&matrix, &(mat_stream){&source, is_big});
        if (status == SHOAL_OK && matrix.name[0])
            status = add_variable(out, &matrix, place);
    }
    data_source_close(&source);
    return status;
}

static int list_matlab(data_members *out, data_source *source)
{
    if (!source->mappable)
        return shoal_fail(SHOAL_INVALID,
                          "%s: a MATLAB file is read from a plain file that is not compressed as a whole, and not from "
                          "a pipe",
                          source->path);
    const bool is_big = source->head[126] == 'M';
    uint64_t place = HEADER_BYTES;
    int status = SHOAL_OK;
    for (int count = 0; status == SHOAL_OK && place < source->file_size; count++)
        status =
            count < VARIABLES_MOST
                ? list_variable(out, &place, source, is_big, place)
                : shoal_fail(SHOAL_INVALID, "%s: the MATLAB file has more than %d variables, which is not supported",
                             source->path, VARIABLES_MOST);
    return status;
}

/* ---- one of them ------------------------------------------------------------------------------------------------- */

/* What is compressed is read to its end, so that its checksum is compared; at most padding follows the values. */
static int take_compressed(shoal_data *data, data_source *source, const data_layout *layout, size_t bytes)
{
    unsigned char padding[TAG_BYTES];
    size_t got = 0;
    int status = data_source_load(&data->buffer, source, bytes);
    if (status == SHOAL_OK && data->buffer.size < bytes)
        status = fail_damaged(source->path, "a variable ends early");
    if (status == SHOAL_OK)
        status = data_source_read(&got, source, padding, sizeof padding);
    if (status == SHOAL_OK && got == sizeof padding)
        status = fail_damaged(source->path, "a variable is longer than its values");
    return status == SHOAL_OK ? data_decode_buffer(data, layout) : status;
}

static int take_values(shoal_data *data, mat_stream *in, const mat_matrix *matrix)
{
    data_source *source = in->source;
    shoal_type stored;
    mat_tag tag;
    int status = read_tag(&tag, in);
    if (status < 0)
        return status;
    const shoal_type wanted = data->type == SHOAL_BOOL ? SHOAL_UINT8 : data->type;
    if (!type_of_element(&stored, tag.type) || (stored != wanted && !data_stored_fits(stored, wanted)))
        return fail_damaged(source->path, "the values of a variable have a type that its class can't have");
    const data_layout layout = {.swapped = in->is_big == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__),
                                .fortran = true,
                                .stored = stored == wanted ? DATA_STORED_SAME : DATA_STORED_TYPE + (int)stored,
                                .rank = matrix->rank,
                                .shape = matrix->shape};
    if (tag.bytes != (uint64_t)data->rows * (uint64_t)data->columns * shoal_type_size(stored))
        return fail_damaged(source->path, "a variable has not as many values as its dimensions say");
    if (source->decoding)
        return take_compressed(data, source, &layout, tag.bytes);
    if (source->content_size - source->position < tag.bytes)
        return fail_damaged(source->path, "a variable ends early");
    source->part.packed = source->content_size = source->position + tag.bytes; /* padding may follow */
    return data_take_values(data, source, &layout);
}

static int set_shape(shoal_data *data, const mat_matrix *matrix, const char *path)
{
    uint64_t columns;
    shoal_type type;
    if (!type_of_class(&type, matrix))
        return fail_damaged(path, "it changed while it was read");
    if (!data_fold_shape(&columns, matrix->shape, matrix->rank))
        return shoal_fail(SHOAL_INVALID, "%s: the dimensions of %s multiply to more than 64 bits", path, matrix->name);
    data_note_shape(data, matrix->shape, matrix->rank);
    return data_set_shape(data, matrix->shape[0], columns, type);
}

static int open_matlab(shoal_data *data, data_source *file, const data_member *member)
{
    data_source source = {.descriptor = -1};
    mat_stream in = {&source, file->head[126] == 'M'};
    mat_matrix matrix;
    mat_tag tag;
    uint64_t next;
    int status = open_variable(&source, &tag, &next, file, in.is_big, member->place);
    if (status == SHOAL_OK)
        status = read_matrix(&matrix, &in);
    if (status == SHOAL_OK)
        status = set_shape(data, &matrix, file->path);
    if (status == SHOAL_OK)
        status = take_values(data, &in, &matrix);
    if (status == SHOAL_OK)
        status = base_format(&data->detail, "MATLAB 5, %s%s, %s", member->name, source.decoding ? ", compressed" : "",
                             data_kept(data));
    data_source_close(&source);
    if (status == SHOAL_OK)
        base_text_clean(data->detail);
    return status;
}

const struct data_format data_matlab = {
    .name = "matlab", .recognise = recognise_matlab, .list = list_matlab, .open_member = open_matlab};
