/* Files that hold several arrays.  See data_members.h. */
#include "data_members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data/data_address.h"
#include "data/data_internal.h"

/* ---- the list ---------------------------------------------------------------------------------------------------- */

int data_members_add(data_member **out, data_members *members, const char *name, size_t name_bytes, int rank,
                     const uint64_t *shape)
{
    if (members->count == members->room) {
        const int64_t room = members->room ? 2 * members->room : 8;
        int status = base_grow(&members->member, (size_t)members->room, (size_t)room, sizeof *members->member,
                               "a list of arrays");
        if (status < 0)
            return status;
        members->room = room;
    }
    data_member *member = &members->member[members->count];
    *member = (data_member){.rank = rank};
    int status = base_copy_text_n(&member->name, name, name_bytes);
    if (status == SHOAL_OK && rank > 0)
        status = base_alloc(&member->shape, (size_t)rank, sizeof *shape, "the shape of an array");
    if (status < 0) {
        base_free(&member->name);
        return status;
    }
    if (rank > 0)
        memcpy(member->shape, shape, (size_t)rank * sizeof *shape);
    members->count++;
    *out = member;
    return SHOAL_OK;
}

void data_members_release(data_members *members)
{
    for (int64_t i = 0; i < members->count; i++) {
        base_free(&members->member[i].name);
        base_free(&members->member[i].shape);
    }
    base_free(&members->member);
    base_free(&members->whole);
    members->count = members->room = 0;
}

int64_t data_members_with_rows(const data_members *members)
{
    int64_t count = 0;
    for (int64_t i = 0; i < members->count; i++)
        count += members->member[i].has_rows;
    return count;
}

int data_member_shape(char **out, const data_member *member)
{
    enum { DIGITS = 24 };
    size_t used = 0;
    int status = base_alloc(out, (size_t)member->rank + 1, DIGITS, "the shape of an array");
    for (int i = 0; status == SHOAL_OK && i < member->rank; i++)
        used += (size_t)snprintf(*out + used, DIGITS, "%s%" PRIu64, i ? "x" : "", member->shape[i]);
    return status;
}

/* ---- what messages say of it ------------------------------------------------------------------------------------- */

/* "x_train 60000x28x28 uint8, y_train 60000 uint8, and 9 more": those that can be opened, or the others. */
static int describe_members(char **out, const data_members *members, bool has_rows)
{
    enum { SHOWN = 12 };
    int64_t shown = 0, all = 0;
    int status = base_copy_text(out, "");
    for (int64_t i = 0; status == SHOAL_OK && i < members->count; i++) {
        const data_member *member = &members->member[i];
        char *shape = NULL, *longer = NULL;
        if (member->has_rows != has_rows || all++ >= SHOWN)
            continue;
        status = data_member_shape(&shape, member);
        if (status == SHOAL_OK)
            status = base_format(&longer, "%s%s%.*s%s%s %s", *out, shown++ ? ", " : "", DATA_SHOWN_BYTES * 2,
                                 member->name, *shape ? " " : "", shape, member->type);
        base_free(&shape);
        if (status == SHOAL_OK) {
            base_free(out);
            *out = longer;
        }
    }
    if (status == SHOAL_OK && all > shown) {
        char *longer = NULL;
        status = base_format(&longer, "%s and %" PRId64 " more", *out, all - shown);
        if (status == SHOAL_OK) {
            base_free(out);
            *out = longer;
        }
    }
    if (status == SHOAL_OK)
        base_text_clean(*out);
    return status;
}

/* The name to show in an example: the largest array, which is most likely the data. */
static const data_member *largest_member(const data_members *members)
{
    const data_member *best = NULL;
    double most = -1;
    for (int64_t i = 0; i < members->count; i++) {
        const data_member *member = &members->member[i];
        double values = 1;
        for (int k = 0; k < member->rank; k++)
            values *= (double)member->shape[k];
        if (member->has_rows && values > most) {
            most = values;
            best = member;
        }
    }
    return best;
}

static int fail_no_rows(const data_members *members, const char *file)
{
    char *others = NULL;
    int status = describe_members(&others, members, false);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_INVALID, "%s holds no array of numbers%s%s", file, members->count ? ": only " : "",
                            others);
    base_free(&others);
    return status;
}

static int fail_several(const data_members *members, const char *file)
{
    char *list = NULL, *example = NULL;
    int status = describe_members(&list, members, true);
    if (status == SHOAL_OK)
        status = base_copy_text(&example, largest_member(members)->name);
    if (status == SHOAL_OK) {
        base_text_clean(example);
        status = shoal_fail(SHOAL_USAGE, "%s holds %" PRId64 " arrays: %s; name one, as in %s:%s", file,
                            data_members_with_rows(members), list, file, example);
    }
    base_free(&example);
    base_free(&list);
    return status;
}

static int fail_unknown_name(const data_members *members, const char *file, const char *name)
{
    enum { COMPARED = 1000 };
    const char *names[COMPARED];
    int count = 0;
    char *list = NULL;
    if (data_members_with_rows(members) == 0)
        return fail_no_rows(members, file);
    for (int64_t i = 0; i < members->count && count < COMPARED; i++)
        names[count++] = members->member[i].name;
    const char *near = base_nearest(name, names, count);
    if (near && !base_text_is_clean(near))
        near = NULL;
    int status = describe_members(&list, members, true);
    if (status == SHOAL_OK)
        status = shoal_fail(SHOAL_USAGE, "%s has no array \"%s\"%s%s%s; it holds %s", file, name,
                            near ? "; did you mean " : "", near ? near : "", near ? "?" : "", list);
    base_free(&list);
    return status;
}

/* ---- choosing one ------------------------------------------------------------------------------------------------ */

/* A name may be given without the '/' of the root of a file that has folders. */
static bool is_called(const data_member *member, const char *name)
{
    return strcmp(member->name, name) == 0 || (member->name[0] == '/' && strcmp(member->name + 1, name) == 0);
}

const char *data_member_what(const data_member *member)
{
    shoal_type type;
    int stored;
    bool swapped;
    const bool is_number = data_stored_parse(&type, &stored, &swapped, member->type, strlen(member->type));
    return member->rank == 0 && is_number ? "a single value" : member->type;
}

static int choose_member(const data_member **out, const data_members *members, const char *file, const char *name)
{
    int64_t found = 0;
    if (!name && members->whole)
        return shoal_fail(SHOAL_INVALID, "%s", members->whole);
    if (!name && data_members_with_rows(members) > 1)
        return fail_several(members, file);
    if (!name && data_members_with_rows(members) == 0)
        return fail_no_rows(members, file);
    for (int64_t i = 0; i < members->count; i++) {
        const data_member *member = &members->member[i];
        if (name ? !is_called(member, name) : !member->has_rows)
            continue;
        *out = member;
        found++;
    }
    if (found == 0)
        return fail_unknown_name(members, file, name);
    if (found > 1)
        return shoal_fail(SHOAL_INVALID, "%s: %" PRId64 " arrays have the name \"%s\", so which is meant is not known",
                          file, found, name);
    if (!(*out)->has_rows)
        return shoal_fail(SHOAL_INVALID, "%s: %s is %s, not rows of numbers", file, name, data_member_what(*out));
    return SHOAL_OK;
}

int data_members_open(shoal_data *data, data_source *source, const char *name)
{
    data_members members = {0};
    const data_member *chosen = NULL;
    int status = data->format->list(&members, source);
    if (status == SHOAL_OK)
        status = choose_member(&chosen, &members, source->path, name);
    if (status == SHOAL_OK)
        status = data->format->open_member(data, source, chosen);
    data_members_release(&members);
    return status;
}

int data_members_find(data_members *out, const char *address)
{
    static const shoal_data_options none;
    data_source source = {.descriptor = -1};
    data_hint hint = {.path = address, .options = &none};
    struct stat info;
    if (strcmp(address, "-") == 0 || stat(address, &info) < 0 || !S_ISREG(info.st_mode))
        return SHOAL_OK;
    int status = data_source_open(&source, address, true);
    if (status < 0)
        return status;
    hint.head = source.head;
    hint.head_size = source.head_size;
    const struct data_format *format = data_format_find(&hint);
    if (format && format->list)
        status = format->list(out, &source);
    data_source_close(&source);
    return status;
}
