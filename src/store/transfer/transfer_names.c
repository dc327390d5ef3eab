/* What a file may be called in a store and a key on a disk.  See the header. */
#include "transfer_names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shoal/error.h>

#include "base/hex.h"
#include "base/memory.h"
#include "store/store_internal.h"

const char *transfer_last(size_t *length, const char *name)
{
    size_t end = strlen(name), start;
    while (end > 0 && name[end - 1] == '/')
        end--;
    for (start = end; start > 0 && name[start - 1] != '/';)
        start--;
    *length = end - start;
    return name + start;
}

int transfer_join(char **out, const char *base, const char *relative)
{
    size_t length = strlen(base);
    bool slash = length > 0 && *relative && base[length - 1] != '/';
    return base_format(out, "%s%s%s", base, slash ? "/" : "", relative);
}

int transfer_check_key(const char *key, const char *path)
{
    return store_key_check(key) < 0 ? shoal_fail(SHOAL_INVALID, "%s: can't be stored: %s", path, shoal_error())
                                    : SHOAL_OK;
}

bool transfer_is_part(const char *name)
{
    unsigned char random[8];
    const size_t start = strlen(TRANSFER_PART_NAME);
    size_t length;
    const char *last = transfer_last(&length, name);
    return length == start + 2 * sizeof random && strncmp(last, TRANSFER_PART_NAME, start) == 0 &&
           base_hex_read(random, sizeof random, last + start);
}

int transfer_check_path(const char *key, const char *relative)
{
    if (store_key_check(key) < 0)
        return shoal_fail(SHOAL_INVALID, "can't be a file: %s", shoal_error());
    if (transfer_is_part(key))
        return shoal_fail(SHOAL_INVALID, "the key '%s' can't be a file's name: that ending marks unfinished files",
                          key);
    for (const char *segment = relative; *segment;) {
        size_t length = strcspn(segment, "/");
        if (length > NAME_MAX)
            return shoal_fail(SHOAL_INVALID,
                              "the key '%.40s...' can't be a file's name: '%.40s...' is longer than %d bytes", key,
                              segment, NAME_MAX);
        segment += length;
        segment += *segment == '/';
    }
    return SHOAL_OK;
}

typedef struct last_segment {
    const char *text, *shown;
    size_t length;
} last_segment;

static int compare_segments(const void *from_a, const void *from_b)
{
    const last_segment *a = from_a, *b = from_b;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

int transfer_check_distinct(const char *const *names, const char *const *shown, int count)
{
    last_segment *all = NULL;
    int status = base_alloc(&all, (size_t)count, sizeof *all, "names");
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++) {
        all[i].text = transfer_last(&all[i].length, names[i]);
        all[i].shown = shown[i];
    }
    qsort(all, (size_t)count, sizeof *all, compare_segments);
    for (int i = 1; i < count && status == SHOAL_OK; i++)
        if (compare_segments(&all[i - 1], &all[i]) == 0)
            status = shoal_fail(SHOAL_USAGE, "%s and %s have the same name: one would replace the other",
                                all[i - 1].shown, all[i].shown);
    base_free(&all);
    return status;
}

/* Names that start with the same letters follow each other, so what the next name does not start with won't be the
 * start of any later one. */
int transfer_ancestors_next(transfer_ancestors *self, const char *name, const char **above)
{
    *above = NULL;
    while (self->count > 0) {
        const char *last = self->names[self->count - 1];
        if (strncmp(last, name, strlen(last)) == 0)
            break;
        base_free(&self->names[--self->count]);
    }
    for (size_t i = 0; i < self->count && !*above; i++)
        if (name[strlen(self->names[i])] == '/')
            *above = self->names[i];
    if (self->count == self->room) {
        size_t room = self->room ? 2 * self->room : 16;
        int status = base_grow(&self->names, self->room, room, sizeof *self->names, "names");
        if (status < 0)
            return status;
        self->room = room;
    }
    int status = base_copy_text(&self->names[self->count], name);
    self->count += status == SHOAL_OK;
    return status;
}

void transfer_ancestors_release(transfer_ancestors *self)
{
    while (self->count > 0)
        base_free(&self->names[--self->count]);
    base_free(&self->names);
    *self = (transfer_ancestors){0};
}

/* ---- both ends, for the journal ---------------------------------------------------------------------------------- */

int transfer_name_place(char **out, const store_place *self)
{
    return base_format(out, "%s/%s", self->store->name, self->rest);
}

/* Appends a line to *text, which is NULL at first. */
static int append_line(char **text, const char *first, const char *slash, const char *second)
{
    char *longer = NULL;
    int status = base_format(&longer, "%s%s%s%s\n", *text ? *text : "", first, slash, second);
    base_free(text);
    *text = longer;
    return status;
}

int transfer_name_places(char **out, const store_place *stores, int count)
{
    int status = SHOAL_OK;
    *out = NULL;
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = append_line(out, stores[i].store->name, "/", stores[i].rest);
    return status;
}

int transfer_name_paths(char **out, const char *const *paths, int count)
{
    char *here = getcwd(NULL, 0);
    int status = SHOAL_OK;
    *out = NULL;
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        bool relative = paths[i][0] != '/';
        status = append_line(out, relative && here ? here : "", relative ? "/" : "", paths[i]);
    }
    free(here);
    return status;
}
