/* Images that are to be packed, as rows.  See pack.h.
 *
 * Names are paths below one root, the folder or the part of a store that all images have in common, and are sorted as
 * bytes, so that rows do not depend on the file system, nor on the order of arguments. */
#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "data/table/data_table.h"
#include "data/image/image_list.h"
#include "data/table/row_order.h"
#include "learn/pack/pack_internal.h"

static const double patience = 60; /* seconds that a store may be out of reach while it is listed */

typedef struct image {
    char *name;  /* below the root */
    char *class; /* NULL: none, or not known yet */
    int64_t size;
    uint64_t key; /* of its place, when they are shuffled */
} image;

typedef struct images {
    image *image;
    int64_t count, room;
    char *root; /* a folder, or a URL */
} images;

static void release_images(images *of)
{
    for (int64_t i = 0; i < of->count; i++) {
        base_free(&of->image[i].name);
        base_free(&of->image[i].class);
    }
    base_free(&of->image);
    base_free(&of->root);
}

static int add_image(images *to, const char *name, int64_t size)
{
    int status = SHOAL_OK;
    if (to->count == to->room) {
        int64_t room = to->room ? 2 * to->room : 256;
        status = base_grow(&to->image, (size_t)to->room, (size_t)room, sizeof *to->image, "a list of images");
        if (status < 0)
            return status;
        to->room = room;
    }
    status = base_copy_text(&to->image[to->count].name, name);
    if (status == SHOAL_OK)
        to->image[to->count++].size = size;
    return status;
}

/* ---- folders and files ------------------------------------------------------------------------------------------- */

static bool is_array(const char *path)
{
    const char *ending = strrchr(path, '.');
    return ending && strcmp(ending, ".npy") == 0;
}

/* The paths of all images, absolute up to what was named. */
static int list_files(data_image_list *list, const char *const *path, int count)
{
    int status = SHOAL_OK;
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        char *real = realpath(path[i], NULL);
        if (!path[i][0])
            return shoal_fail(SHOAL_USAGE, "the name of an image or of a folder is empty");
        if (!real)
            return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path[i]);
        status = data_image_list_add(list, real);
        free(real);
    }
    for (int64_t i = 0; i < list->count && status == SHOAL_OK; i++)
        if (is_array(list->paths[i]))
            status = shoal_fail(SHOAL_USAGE, "%s: an array is no image file; data pack takes PNG and JPEG files",
                                list->paths[i]);
    return status;
}

/* How many bytes all paths have in common, up to the end of a folder. */
static size_t common_folder(const data_image_list *list)
{
    const char *first = list->paths[0], *slash = strrchr(first, '/');
    size_t length = (size_t)(slash - first);
    for (int64_t i = 1; i < list->count; i++) {
        size_t same = 0;
        while (same < length && list->paths[i][same] == first[same])
            same++;
        if (same < length || list->paths[i][same] != '/') { /* the last name they share may be half of one */
            do
                same--;
            while (first[same] != '/');
        }
        length = same;
    }
    return length;
}

/* How large a file is, or why nobody can read it.  Any other failure may pass, and is told. */
static int size_of_file(int64_t *out, const char *path)
{
    struct stat about;
    int error = 0;
    *out = PACK_ODD;
    if (stat(path, &about) < 0) {
        error = errno;
    } else if (S_ISREG(about.st_mode)) {
        *out = about.st_size;
        error = faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0 ? errno : 0;
    }
    switch (error) {
    case 0: return SHOAL_OK;
    case EACCES: *out = PACK_DENIED; return SHOAL_OK;
    case ENOENT:
    case ELOOP: *out = PACK_LOST; return SHOAL_OK;
    default: return shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't read", path);
    }
}

static int add_files(images *to, const data_image_list *list, bool skip_broken)
{
    size_t root = common_folder(list);
    int status = root > 0 ? base_copy_text_n(&to->root, list->paths[0], root) : base_copy_text(&to->root, "/");
    for (int64_t i = 0; i < list->count && status == SHOAL_OK; i++) {
        int64_t size = 0;
        status = size_of_file(&size, list->paths[i]);
        if (status == SHOAL_OK && pack_row_why(size) && !skip_broken)
            status = shoal_fail(SHOAL_INVALID, "%s: %s; --skip-broken leaves such images out", list->paths[i],
                                pack_row_why(size));
        if (status == SHOAL_OK)
            status = add_image(to, list->paths[i] + root + 1, size);
    }
    return status;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static bool is_image_key(const char *key)
{
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
    return name[0] != '.' && data_image_is_picture(name);
}

static int add_keys(images *to, shoal_store *store, const char *prefix)
{
    shoal_listing page = {0};
    const size_t length = strlen(prefix);
    int status;
    do {
        status = shoal_store_list(store, prefix, NULL, &page, shoal_after(patience));
        for (size_t i = 0; status == SHOAL_OK && i < page.count; i++)
            if (is_image_key(page.entries[i].key + length))
                status = add_image(to, page.entries[i].key + length, page.entries[i].size);
    } while (status == SHOAL_OK && page.more);
    shoal_listing_release(&page);
    return status;
}

static int list_store(images *to, const char *url)
{
    shoal_store *store = NULL;
    char *rest = NULL, *prefix = NULL;
    int status =
        shoal_store_open_at(&store, &rest, url, &(shoal_store_options){.read_only = true}, shoal_after(patience));
    size_t length = status == SHOAL_OK ? strlen(rest) : 0;
    if (status == SHOAL_OK)
        status = base_format(&prefix, "%s%s", rest, length > 0 && rest[length - 1] != '/' ? "/" : "");
    if (status == SHOAL_OK)
        status = add_keys(to, store, prefix);
    if (status == SHOAL_OK)
        status = base_copy_text(&to->root, url);
    base_free(&prefix);
    shoal_text_free(&rest);
    shoal_store_close(&store);
    return status;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const image *)a)->name, ((const image *)b)->name);
}

static int compare_keys(const void *a, const void *b)
{
    const image *first = a, *second = b;
    return first->key != second->key ? (first->key > second->key) - (first->key < second->key)
                                     : strcmp(first->name, second->name);
}

/* Sorted, each once. */
static void sort_images(images *of)
{
    int64_t kept = 0;
    if (of->count > 0)
        qsort(of->image, (size_t)of->count, sizeof *of->image, compare_names);
    for (int64_t i = 0; i < of->count; i++) {
        if (kept > 0 && strcmp(of->image[kept - 1].name, of->image[i].name) == 0)
            base_free(&of->image[i].name);
        else
            of->image[kept++] = of->image[i];
    }
    of->count = kept;
}

/* Names become lines of a manifest, and keys of a store. */
static int check_names(images *of, bool skip_broken)
{
    for (int64_t i = 0; i < of->count; i++) {
        image *image = &of->image[i];
        if (strlen(image->name) <= PACK_NAME_MOST && base_path_stays_below(image->name))
            continue;
        if (!skip_broken)
            return shoal_fail(SHOAL_INVALID, "%s/%.200s: %s; --skip-broken leaves such images out", of->root,
                              image->name, pack_row_why(PACK_MISNAMED));
        image->size = PACK_MISNAMED;
    }
    return SHOAL_OK;
}

static int list_images(images *out, const char *const *path, int count, bool skip_broken)
{
    data_image_list list = {.odd_too = true};
    int status = SHOAL_OK, stores = 0;
    for (int i = 0; i < count; i++)
        stores += run_is_in_store(path[i]);
    if (stores > 0 && count > 1)
        status = shoal_fail(SHOAL_USAGE, "images come from folders and files, or from one place in a store");
    else if (stores > 0)
        status = list_store(out, path[0]);
    else
        status = list_files(&list, path, count);
    if (status == SHOAL_OK && stores == 0)
        status = add_files(out, &list, skip_broken);
    data_image_list_release(&list);
    if (status == SHOAL_OK && out->count == 0)
        status = shoal_fail(SHOAL_INVALID, "%s: no names there end with .jpg, .jpeg or .png", path[0]);
    sort_images(out);
    return status == SHOAL_OK ? check_names(out, skip_broken) : status;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* The name of the folder that an image is in, which may be the root itself. */
static int class_of_folder(image *of, const char *root)
{
    const char *slash = strrchr(of->name, '/'), *start = of->name;
    size_t end = slash ? (size_t)(slash - of->name) : strlen(root);
    if (!slash)
        start = root;
    while (end > 0 && start[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && start[begin - 1] != '/')
        begin--;
    return base_copy_text_n(&of->class, start + begin, end - begin);
}

static image *find_image(const images *of, const char *name)
{
    return bsearch(&(image){.name = (char *)name}, of->image, (size_t)of->count, sizeof *of->image, compare_names);
}

/* Lines "NAME,CLASS", with or without a header; a name is a path below the root. */
static int read_classes(images *of, const char *path)
{
    data_table table;
    FILE *file = fopen(path, "re");
    int status = file ? SHOAL_OK
                      : shoal_fail_errno(SHOAL_USAGE, errno,
                                         "--classes: '%s' is not folders, none, or a CSV file that can be read", path);
    if (status < 0)
        return status;
    status = data_table_read(&table, path, file, "a table of classes");
    fclose(file);
    for (int64_t row = 0; status == SHOAL_OK && data_table_next(&status, &table); row++) {
        if (table.fields != 2) {
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 " has %d field%s, not a name and a class", path,
                                table.line, table.fields, table.fields == 1 ? "" : "s");
            break;
        }
        image *found = find_image(of, table.field[0]);
        if (found && !found->class)
            status = base_copy_text(&found->class, table.field[1]);
        else if (found && strcmp(found->class, table.field[1]) != 0)
            status = shoal_fail(SHOAL_INVALID, "%s: line %" PRId64 ": %s has the class %s further up, and here %s",
                                path, table.line, found->name, found->class, table.field[1]);
    }
    data_table_release(&table);
    for (int64_t i = 0; i < of->count && status == SHOAL_OK; i++)
        if (of->image[i].size != PACK_MISNAMED && (!of->image[i].class || !of->image[i].class[0]))
            status = shoal_fail(SHOAL_INVALID, "%s: no class for %s", path, of->image[i].name);
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The classes there are, sorted, as lines; *names points into the images. */
static int list_classes(run_pack *out, char ***names, const images *of)
{
    size_t bytes = 1;
    int64_t all = 0, count = 0;
    char *end;
    int status = base_alloc(names, (size_t)of->count, sizeof **names, "the names of classes");
    if (status < 0)
        return status;
    for (int64_t i = 0; i < of->count; i++)
        if (of->image[i].class)
            (*names)[all++] = of->image[i].class;
    if (all > 0)
        qsort(*names, (size_t)all, sizeof **names, compare_texts);
    for (int64_t i = 0; i < all; i++)
        if (count == 0 || strcmp((*names)[count - 1], (*names)[i]) != 0) {
            (*names)[count++] = (*names)[i];
            bytes += strlen((*names)[i]) + 1;
        }
    status = base_alloc(&out->classes, bytes, 1, "the names of classes");
    end = out->classes;
    for (int64_t i = 0; status == SHOAL_OK && i < count; i++) {
        if (strchr((*names)[i], '\n') || !(*names)[i][0])
            return shoal_fail(SHOAL_INVALID, "a class can't be called '%s'", (*names)[i]);
        if (i > 0)
            *end++ = '\n';
        end = stpcpy(end, (*names)[i]);
    }
    out->class_count = count;
    return status;
}

static int find_classes(run_pack *out, char ***names, images *of, const char *classes)
{
    int status = SHOAL_OK;
    if (strcmp(classes, "none") == 0)
        return base_copy_text(&out->classes, "");
    if (strcmp(classes, "folders") != 0)
        status = read_classes(of, classes);
    for (int64_t i = 0; i < of->count && status == SHOAL_OK && strcmp(classes, "folders") == 0; i++)
        if (of->image[i].size != PACK_MISNAMED)
            status = class_of_folder(&of->image[i], of->root);
    return status == SHOAL_OK ? list_classes(out, names, of) : status;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int shuffle_images(images *of, const char *text)
{
    int64_t seed = 0;
    static const shoal_option option[] = {{"shuffle", .kind = SHOAL_OPTION_COUNT}, {0}};
    int status = text ? shoal_options_set(&seed, option, "shuffle", text) : SHOAL_OK;
    const data_order order = {.rows = of->count, .seed = (uint64_t)seed};
    if (status < 0 || !text)
        return status;
    for (int64_t i = 0; i < of->count; i++)
        of->image[i].key = data_order_key(&order, i);
    qsort(of->image, (size_t)of->count, sizeof *of->image, compare_keys);
    return SHOAL_OK;
}

static int32_t number_of(char *const *names, int64_t count, const char *class)
{
    char *const *found = class ? bsearch(&class, names, (size_t)count, sizeof *names, compare_texts) : NULL;
    return found ? (int32_t)(found - names) : -1;
}

/* The name of what is left out for its name is written as people can be shown it. */
static int write_row(unsigned char *row, int64_t row_bytes, const image *from, int32_t class)
{
    char *name = NULL;
    int status = base_copy_text_n(&name, from->name, strnlen(from->name, (size_t)(row_bytes - PACK_ROW_HEAD)));
    if (status == SHOAL_OK && from->size == PACK_MISNAMED)
        base_text_clean(name);
    if (status == SHOAL_OK)
        pack_row_write(row, row_bytes, from->size, class, name);
    base_free(&name);
    return status;
}

static int make_rows(run_pack *out, const images *of, char *const *names)
{
    size_t longest = 0;
    for (int64_t i = 0; i < of->count; i++) {
        const size_t length = strnlen(of->image[i].name, PACK_NAME_MOST);
        longest = length > longest ? length : longest;
    }
    const int64_t width = pack_row_bytes(longest);
    int status = base_alloc(&out->bytes, (size_t)of->count, (size_t)width, "the names of images");
    for (int64_t i = 0; i < of->count && status == SHOAL_OK; i++)
        status = write_row(out->bytes + i * width, width, &of->image[i],
                           number_of(names, out->class_count, of->image[i].class));
    out->images = of->count;
    return status == SHOAL_OK ? shoal_data_wrap(&out->rows, out->bytes, of->count, width, SHOAL_UINT8) : status;
}

/* ---- where shards go --------------------------------------------------------------------------------------------- */

/* What was packed before stays, unless somebody says otherwise.  A folder is made only when the run begins. */
static int check_target(const char *to, bool replaces)
{
    const shoal_blobs *blobs = NULL;
    int64_t size = 0;
    int status = shoal_blobs_open(&blobs, to, run_is_in_store(to), patience);
    if (status < 0)
        return status;
    status = blobs->has(blobs, "manifest.json", &size);
    shoal_blobs_close(&blobs);
    if (status == SHOAL_ABSENT || replaces)
        return SHOAL_OK;
    return status < 0 ? status
                      : shoal_fail(SHOAL_USAGE,
                                   "%s already holds packed images (manifest.json); choose another place, or replace "
                                   "them with --force",
                                   to);
}

/* Shards that lie among images would be packed with them, or read for them: OUT may be neither the folder that all
 * images have in common nor one below it that has images. */
static int check_apart(const images *of, const char *to)
{
    size_t root = strlen(of->root), below = 0;
    char *real = run_is_in_store(to) ? strdup(to) : realpath(to, NULL);
    bool among = false;
    if (!real) /* a folder that is not there yet */
        return SHOAL_OK;
    while (root > 0 && of->root[root - 1] == '/')
        root--;
    if (strncmp(real, of->root, root) == 0 && (real[root] == '/' || real[root] == '\0')) {
        const char *folder = real + root + (real[root] == '/');
        below = strlen(folder);
        while (below > 0 && folder[below - 1] == '/')
            below--;
        for (int64_t i = 0; i < of->count && !among; i++)
            among = below == 0 || (strncmp(of->image[i].name, folder, below) == 0 && of->image[i].name[below] == '/');
    }
    free(real);
    return among ? shoal_fail(SHOAL_USAGE,
                              "%s: shards would lie among the images that they are made of; choose a folder "
                              "of their own",
                              to)
                 : SHOAL_OK;
}

/* A picture may lie beside the shards, so that their folder must be there before its path is checked. */
static int make_folder_of(const char *picture, const char *to)
{
    size_t length = strlen(to);
    while (length > 1 && to[length - 1] == '/')
        length--;
    if (!picture || run_is_in_store(to) || strncmp(picture, to, length) != 0 || picture[length] != '/' ||
        strchr(picture + length + 1, '/'))
        return SHOAL_OK;
    int error = base_make_folders(to, 0777, NULL);
    return error ? shoal_fail_errno(SHOAL_SYSTEM, error, "%s: can't make the folder", to) : SHOAL_OK;
}

static int choose_name(run_pack *out, const images *of, const char *asked)
{
    const char *name = asked;
    if (!name) { /* "photos/flowers" has shards called flowers */
        size_t end = strlen(of->root);
        while (end > 0 && of->root[end - 1] == '/')
            end--;
        size_t begin = end;
        while (begin > 0 && of->root[begin - 1] != '/' && of->root[begin - 1] != ':')
            begin--;
        return end > begin ? base_copy_text_n(&out->name, of->root + begin, end - begin)
                           : base_copy_text(&out->name, "images");
    }
    return base_copy_text(&out->name, name);
}

int run_pack_begin(run_pack *out, shoal_request *request, const char *const *path, int count, const char *to,
                   const run_pack_settings *settings)
{
    pack_config *config = (pack_config *)(void *)request->config;
    images all = {0};
    char **names = NULL;
    int status = SHOAL_OK;
    if (settings->resume && run_on_workers(&request->workers))
        status = shoal_fail(SHOAL_USAGE, "--resume is not for workers: `shoal job resume` goes on with their job");
    if (status == SHOAL_OK && !to[0])
        status = shoal_fail(SHOAL_USAGE, "OUT is empty: name a folder, or a place in a store");
    if (status == SHOAL_OK)
        status = list_images(&all, path, count, config->skip_broken);
    if (status == SHOAL_OK)
        status = check_apart(&all, to);
    if (status == SHOAL_OK)
        status = check_target(to, settings->force || settings->resume);
    if (status == SHOAL_OK)
        status = find_classes(out, &names, &all, settings->classes);
    if (status == SHOAL_OK)
        status = shuffle_images(&all, settings->shuffle);
    if (status == SHOAL_OK)
        status = make_rows(out, &all, names);
    if (status == SHOAL_OK)
        status = choose_name(out, &all, settings->name);
    if (status == SHOAL_OK)
        status = base_copy_text(&out->to, to);
    if (status == SHOAL_OK)
        status = make_folder_of(request->output[0], to);
    out->root = all.root;
    all.root = NULL;
    config->name = out->name;
    config->classes = out->classes;
    config->parts = !run_on_workers(&request->workers);
    config->resume = settings->resume;
    config->replace = settings->force;
    request->blobs = (run_blobs){.from = out->root, .to = out->to};
    base_free(&names);
    release_images(&all);
    return status == SHOAL_OK ? shoal_request_rows(request, out->rows, NULL) : status;
}

int run_pack_ended(const run_pack *pack, int status)
{
    const int64_t width = pack->rows ? shoal_data_columns(pack->rows) : 0;
    static const char rows[] = "memory: "; /* as workers name those of a job */
    char *copy = NULL;
    size_t root = strlen(pack->root ? pack->root : "");
    bool found = false;
    if (status != SHOAL_INVALID || root == 0 || base_copy_text(&copy, shoal_error()) < 0)
        return status;
    const char *sentence = strncmp(copy, rows, strlen(rows)) == 0 ? copy + strlen(rows) : copy;
    while (root > 0 && pack->root[root - 1] == '/')
        root--;
    for (int64_t i = 0; i < pack->images && width > 0 && !found; i++) {
        pack_item item;
        const size_t length =
            pack_row_read(&item, pack->bytes + i * width, width) ? strlen(item.name) : sizeof item.name;
        found = length < sizeof item.name && strncmp(sentence, item.name, length) == 0 && sentence[length] == ':';
    }
    status = found ? shoal_fail(status, "%.*s/%s", (int)root, pack->root, sentence) : status;
    base_free(&copy);
    return status;
}

void run_pack_release(run_pack *pack)
{
    shoal_data_free(&pack->rows);
    base_free(&pack->bytes);
    base_free(&pack->root);
    base_free(&pack->to);
    base_free(&pack->classes);
    base_free(&pack->name);
}
