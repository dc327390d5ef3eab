/* Directories of zip files.  See data_zip.h.
 *
 * From the end: the end record (22 bytes and a comment), which says where the directory is; before it, in large files,
 * a locator of a record with 64 bits for what the end record can't count.  Format: APPNOTE.TXT of PKWARE, 4.3. */
#include "data_zip.h"

#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

enum { END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30, COMMENT_MOST = 65535 };
static const uint64_t directory_most = (uint64_t)1 << 28; /* millions of members */

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool has_mark(const unsigned char *at, const char *mark)
{
    return at[0] == 'P' && at[1] == 'K' && at[2] == mark[0] && at[3] == mark[1];
}

bool data_zip_begins(const unsigned char *head, size_t size)
{
    return size >= 4 && (has_mark(head, "\3\4") || has_mark(head, "\5\6"));
}

static int fail_damaged(const data_source *file, const char *why)
{
    return shoal_fail(SHOAL_INVALID, "%s: the zip file is cut off or damaged: %s", file->path, why);
}

/* Exactly `size` bytes. */
static int read_at(const data_source *file, void *out, size_t size, uint64_t offset)
{
    size_t got = 0;
    if (offset > file->file_size || size > file->file_size - offset)
        return fail_damaged(file, "it ends before its directory does");
    const int error = base_read_all_at(file->descriptor, out, size, (int64_t)offset, &got);
    if (error)
        return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", file->path);
    return got == size ? SHOAL_OK : fail_damaged(file, "it shrank while it was read");
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* What the end record says. */
typedef struct zip_end {
    uint64_t place; /* of the record */
    uint64_t first, size, count;
} zip_end;

/* The last end record whose comment is as long as what follows it. */
static const unsigned char *find_end(const unsigned char *tail, size_t size)
{
    for (size_t at = size - END_BYTES + 1; at-- > 0;)
        if (has_mark(tail + at, "\5\6") && at + END_BYTES + get(tail + at + 20, 2) == size)
            return tail + at;
    return NULL;
}

static int read_end64(zip_end *end, const data_source *file, uint64_t place)
{
    unsigned char record[END64_BYTES];
    int status = read_at(file, record, sizeof record, place);
    if (status < 0)
        return status;
    if (!has_mark(record, "\6\6") || get(record + 16, 4) != 0 || get(record + 24, 8) != get(record + 32, 8))
        return fail_damaged(file, "its end record of 64 bits is none");
    *end = (zip_end){place, get(record + 48, 8), get(record + 40, 8), get(record + 32, 8)};
    return SHOAL_OK;
}

static int read_end(zip_end *end, const data_source *file)
{
    const size_t most = COMMENT_MOST + END_BYTES + LOCATOR_BYTES;
    const size_t size = file->file_size < most ? file->file_size : most;
    const uint64_t first = file->file_size - size;
    unsigned char *tail = NULL;
    int status = base_alloc(&tail, size + 1, 1, "the end of a zip file");
    if (status == SHOAL_OK)
        status = read_at(file, tail, size, first);
    const unsigned char *record = status == SHOAL_OK && size >= END_BYTES ? find_end(tail, size) : NULL;
    if (status == SHOAL_OK && !record)
        status = fail_damaged(file, "its end record is missing");
    if (status < 0)
        goto done;
    const size_t at = (size_t)(record - tail);
    *end = (zip_end){first + at, get(record + 16, 4), get(record + 12, 4), get(record + 10, 2)};
    if (at >= LOCATOR_BYTES && has_mark(record - LOCATOR_BYTES, "\6\7"))
        status = read_end64(end, file, get(record - LOCATOR_BYTES + 8, 8));
    else if (get(record + 4, 2) != 0 || get(record + 8, 2) != end->count)
        status =
            shoal_fail(SHOAL_INVALID, "%s is one part of a zip file in several parts: join them first", file->path);
done:
    base_free(&tail);
    return status;
}

static int check_end(const zip_end *end, const data_source *file)
{
    if (end->first > end->place || end->size > end->place - end->first)
        return fail_damaged(file, "its directory lies outside of it");
    if (end->size > directory_most)
        return fail_damaged(file, "its directory is larger than any array file needs");
    if (end->count > end->size / ENTRY_BYTES)
        return fail_damaged(file, "it claims more members than its directory has room for");
    return SHOAL_OK;
}

/* ---- the directory ----------------------------------------------------------------------------------------------- */

/* Numbers that 32 bits can't hold are in the extra field of type 1, in this order, those that need it. */
static bool take_wide(data_zip_member *member, const unsigned char *extra, size_t bytes)
{
    uint64_t *const numbers[] = {&member->size, &member->packed, &member->header};
    while (bytes >= 4) {
        const size_t length = get(extra + 2, 2);
        if (length > bytes - 4)
            return false;
        if (get(extra, 2) == 1) {
            size_t at = 4;
            for (int i = 0; i < 3; i++) {
                if (*numbers[i] != UINT32_MAX)
                    continue;
                if (at + 8 > 4 + length)
                    return false;
                *numbers[i] = get(extra + at, 8);
                at += 8;
            }
            return true;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return true;
}

/* Returns where the next entry is; NULL if this is none. */
static const unsigned char *take_entry(data_zip_member *out, const unsigned char *at, const unsigned char *end)
{
    if (end - at < ENTRY_BYTES || !has_mark(at, "\1\2"))
        return NULL;
    const size_t name = get(at + 28, 2), extra = get(at + 30, 2), comment = get(at + 32, 2);
    if ((size_t)(end - at) - ENTRY_BYTES < name + extra + comment)
        return NULL;
    *out = (data_zip_member){.name = (const char *)at + ENTRY_BYTES,
                             .name_bytes = name,
                             .header = get(at + 42, 4),
                             .packed = get(at + 20, 4),
                             .size = get(at + 24, 4),
                             .crc = (uint32_t)get(at + 16, 4),
                             .method = (uint16_t)get(at + 10, 2),
                             .is_encrypted = at[8] & 1};
    return take_wide(out, at + ENTRY_BYTES + name, extra) ? at + ENTRY_BYTES + name + extra + comment : NULL;
}

/* Each member has bytes of its own: a small file whose entries share them would take for ever to list.  One that is
 * larger than the file is refused when it is opened. */
static bool take_share(uint64_t *left, const data_zip_member *member, uint64_t all)
{
    const uint64_t bytes = member->packed <= all ? member->packed : 0;
    const bool fits = bytes <= *left;
    *left -= fits ? bytes : 0;
    return fits;
}

static int read_directory(data_zip *zip, const data_source *file, const zip_end *end)
{
    int status = base_alloc(&zip->directory, end->size + 1, 1, "the directory of a zip file");
    if (status == SHOAL_OK)
        status = base_alloc(&zip->member, end->count + 1, sizeof *zip->member, "the directory of a zip file");
    if (status == SHOAL_OK)
        status = read_at(file, zip->directory, end->size, end->first);
    if (status < 0)
        return status;
    const unsigned char *at = zip->directory, *stop = at + end->size;
    zip->directory_first = end->first;
    uint64_t left = end->first;
    for (; (uint64_t)zip->count < end->count; zip->count++) {
        const data_zip_member *member = &zip->member[zip->count];
        if (!(at = take_entry(&zip->member[zip->count], at, stop)))
            return fail_damaged(file, "its directory is malformed");
        if (!take_share(&left, member, end->first))
            return fail_damaged(file, "its members overlap");
    }
    return at == stop ? SHOAL_OK : fail_damaged(file, "its directory is malformed");
}

int data_zip_open(data_zip *out, const data_source *file)
{
    zip_end end = {0};
    *out = (data_zip){0};
    int status = read_end(&end, file);
    if (status == SHOAL_OK)
        status = check_end(&end, file);
    if (status == SHOAL_OK)
        status = read_directory(out, file, &end);
    if (status < 0)
        data_zip_release(out);
    return status;
}

void data_zip_release(data_zip *zip)
{
    base_free(&zip->member);
    base_free(&zip->directory);
    zip->count = 0;
}

/* ---- a member ---------------------------------------------------------------------------------------------------- */

static int fail_member(const data_source *file, const data_zip_member *member, const char *why)
{
    char name[DATA_SHOWN_BYTES + 1];
    const size_t bytes = member->name_bytes < DATA_SHOWN_BYTES ? member->name_bytes : DATA_SHOWN_BYTES;
    memcpy(name, member->name, bytes);
    name[bytes] = '\0';
    base_text_clean(name);
    return shoal_fail(SHOAL_INVALID, "%s: the member %s %s", file->path, name, why);
}

/* The name of a way of compressing that is not read. */
static const char *name_method(uint16_t method)
{
    switch (method) {
    case 9: return "is compressed by deflate64, which is not read; write the file anew";
    case 12: return "is compressed by bzip2, which is not read in zip files; write the file anew";
    case 14: return "is compressed by LZMA, which is not read in zip files; write the file anew";
    case 93: return "is compressed by zstd, which is not read in zip files; write the file anew";
    default: return "is compressed in a way that is not known";
    }
}

int data_zip_part(data_part *out, const data_zip *zip, const data_source *file, const data_zip_member *member)
{
    unsigned char local[LOCAL_BYTES + UINT16_MAX];
    const uint64_t end = zip->directory_first; /* members lie before the directory */
    if (member->is_encrypted)
        return fail_member(file, member, "is encrypted");
    if (member->method != 0 && member->method != 8)
        return fail_member(file, member, name_method(member->method));
    if (member->header > end || end - member->header < LOCAL_BYTES + member->name_bytes)
        return fail_member(file, member, "lies outside of the file, which is damaged");
    int status = read_at(file, local, LOCAL_BYTES + member->name_bytes, member->header);
    if (status < 0)
        return status;
    const size_t name = get(local + 26, 2), before = LOCAL_BYTES + name + get(local + 28, 2);
    if (!has_mark(local, "\3\4") || get(local + 8, 2) != member->method || name != member->name_bytes ||
        memcmp(local + LOCAL_BYTES, member->name, name) != 0)
        return fail_member(file, member, "is not where the directory of the zip file says: the file is damaged");
    const uint64_t left = end - member->header;
    if (left < before || left - before < member->packed)
        return fail_member(file, member, "is longer than the file, which is cut off or damaged");
    if (member->size > INT64_MAX || (member->method == 0 && member->size != member->packed))
        return fail_member(file, member, "has two sizes: the file is damaged");
    *out = (data_part){.first = member->header + before,
                       .packed = member->packed,
                       .size = member->size,
                       .crc = member->crc,
                       .coder = member->method == 8 ? &data_coder_deflate : NULL};
    return SHOAL_OK;
}
