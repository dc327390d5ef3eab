/* What a transfer has to copy: keys of a store, or files below a folder, each with its target and what is there now.
 *
 * Sources come in the order of their bytes, and so do their targets; the target's own listing is read alongside, so
 * that looking what is there costs a request for a page of names rather than for each of them. */
#include "transfer_internal.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "transfer_names.h"

/* ---- what is at the targets -------------------------------------------------------------------------------------- */

typedef struct targets {
    const store_place *to; /* NULL: files */
    store_keys keys;
    const shoal_entry *current; /* the first that does not come before what was asked for last */
    transfer_ancestors files;   /* that are to be, so that none has to be a folder too */
} targets;

static int targets_start(targets *self, const store_place *to, const char *prefix)
{
    *self = (targets){.to = to};
    if (!to)
        return SHOAL_OK;
    int status = store_keys_start(&self->keys, to, prefix);
    return status == SHOAL_OK ? store_keys_next(&self->keys, &self->current) : status;
}

static void targets_stop(targets *self)
{
    store_keys_stop(&self->keys);
    transfer_ancestors_release(&self->files);
}

/* Fills in what the entry's target is now. */
static int targets_look(targets *self, transfer_entry *entry)
{
    int status = SHOAL_OK;
    entry->there = -1;
    entry->there_version = (shoal_etag){""};
    if (!self->to) {
        status = transfer_file_version(entry->target, &entry->there, &entry->there_version);
        if (status == SHOAL_ABSENT)
            entry->there = -1;
        return status == SHOAL_ABSENT ? SHOAL_OK : status;
    }
    while (status == SHOAL_OK && self->current && strcmp(self->current->key, entry->target) < 0)
        status = store_keys_next(&self->keys, &self->current);
    if (status == SHOAL_OK && self->current && strcmp(self->current->key, entry->target) == 0) {
        entry->there = self->current->size;
        entry->there_version = self->current->etag;
    }
    return status;
}

/* Whether the target can have its name.  `name` is what of the source it is made from. */
static int targets_check(targets *self, const transfer_entry *entry, const char *name)
{
    const char *above = NULL;
    if (self->to)
        return transfer_check_key(entry->target, entry->source);
    int status = *name ? transfer_check_path(entry->source, name) : SHOAL_OK;
    if (status == SHOAL_OK)
        status = transfer_ancestors_next(&self->files, entry->target, &above);
    if (status == SHOAL_OK && above)
        status = shoal_fail(SHOAL_INVALID,
                            "%s: can't be written below %s, which is a file: the store has keys of both names",
                            entry->target, above);
    return status;
}

/* Joins the target's name, checks it, looks what is there, and adds the entry.  What is wrong with this one alone is
 * noted and SHOAL_OK. */
static int add_entry_at(transfer *self, targets *targets, transfer_entry *entry, const char *base, const char *name)
{
    int status = transfer_join(&entry->target, base, name);
    if (status < 0)
        return status;
    status = targets_check(targets, entry, name);
    if (status == SHOAL_INVALID) {
        transfer_add_failure(self);
        status = SHOAL_OK;
    } else if (status == SHOAL_OK) {
        status = targets_look(targets, entry);
        if (status == SHOAL_OK)
            status = transfer_add(self, entry);
    }
    base_free(&entry->target);
    return status;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static int add_key(transfer *self, const store_place *from, const char *target)
{
    shoal_entry found = {0};
    targets targets = {0};
    transfer_entry entry = {.from = from};
    int status = store_place_find(from, from->rest, &found);
    if (status == SHOAL_OK)
        status = targets_start(&targets, self->to, target);
    if (status == SHOAL_OK) {
        entry.source = found.key;
        entry.size = found.size;
        entry.version = found.etag;
        status = add_entry_at(self, &targets, &entry, target, "");
    }
    targets_stop(&targets);
    base_free(&found.key);
    return status;
}

int transfer_fail_absent(const store_place *from, const char *does, const char *more)
{
    const shoal_entry *first = NULL;
    store_keys keys;
    int status = store_keys_start_below(&keys, from);
    if (status == SHOAL_OK)
        status = store_keys_next(&keys, &first);
    if (status == SHOAL_OK)
        status = first
                     ? shoal_fail(SHOAL_INVALID, "%s: is not a key, but there are keys below it: use -r to %s them all",
                                  from->url, does)
                     : shoal_fail(SHOAL_ABSENT, "%s: there is no such key%s", from->url, more);
    store_keys_stop(&keys);
    return status;
}

/* `has_key`: the target itself is to be a blob or a file, too. */
static int add_keys_below(transfer *self, const store_place *from, const char *target, bool has_key, int64_t *count)
{
    const shoal_entry *next = NULL;
    const char *above = NULL;
    targets targets = {0};
    store_keys keys = {0};
    char *below = NULL;
    int status = base_format(&below, "%s%s", target, *target ? "/" : "");
    if (status == SHOAL_OK)
        status = store_keys_start_below(&keys, from);
    size_t skip = status == SHOAL_OK ? strlen(keys.prefix) : 0;
    if (status == SHOAL_OK)
        status = targets_start(&targets, self->to, below);
    if (status == SHOAL_OK && has_key)
        status = transfer_ancestors_next(&targets.files, target, &above);
    while (status == SHOAL_OK && (status = store_keys_next(&keys, &next)) == SHOAL_OK && next) {
        transfer_entry entry = {.from = from, .source = next->key, .size = next->size, .version = next->etag};
        status = add_entry_at(self, &targets, &entry, target, next->key + skip);
        (*count)++;
    }
    targets_stop(&targets);
    store_keys_stop(&keys);
    base_free(&below);
    return status;
}

int transfer_add_keys(transfer *self, const store_place *from, const char *target, bool recursive)
{
    int64_t count = 0;
    int status = *from->rest ? add_key(self, from, target) : SHOAL_ABSENT;
    bool has_key = status == SHOAL_OK;
    if (!recursive)
        return status == SHOAL_ABSENT ? transfer_fail_absent(from, "takes", ", and nothing below it") : status;
    if (status != SHOAL_OK && status != SHOAL_ABSENT)
        return status;
    status = add_keys_below(self, from, target, has_key, &count);
    if (status == SHOAL_OK && count == 0 && !has_key && *from->rest)
        status = transfer_fail_absent(from, "takes", ", and nothing below it");
    return status;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The order of the bytes of whole paths: a folder's name is followed by a slash. */
static int compare_names(const FTSENT **a, const FTSENT **b)
{
    size_t shorter = (*a)->fts_namelen < (*b)->fts_namelen ? (*a)->fts_namelen : (*b)->fts_namelen;
    int order = memcmp((*a)->fts_name, (*b)->fts_name, shorter);
    if (order != 0)
        return order;
    unsigned char next_a = (unsigned char)(*a)->fts_name[shorter], next_b = (unsigned char)(*b)->fts_name[shorter];
    next_a = next_a || (*a)->fts_info != FTS_D ? next_a : '/';
    next_b = next_b || (*b)->fts_info != FTS_D ? next_b : '/';
    return (next_a > next_b) - (next_a < next_b);
}

/* SHOAL_INVALID, with a message, for what is not a file; *file is false for what needs no mention. */
static int check_node(const FTSENT *node, bool *file)
{
    struct stat info;
    *file = false;
    switch (node->fts_info) {
    case FTS_D:
    case FTS_DP: return SHOAL_OK;
    case FTS_F: *file = true; return SHOAL_OK;
    case FTS_SL:
    case FTS_SLNONE:
        if (stat(node->fts_path, &info) < 0)
            return shoal_fail_errno(SHOAL_INVALID, errno, "%s: a dangling link", node->fts_path);
        if (S_ISDIR(info.st_mode))
            return shoal_fail(SHOAL_INVALID, "%s: a link to a folder, which is not followed", node->fts_path);
        *file = S_ISREG(info.st_mode);
        break;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS: return shoal_fail_errno(SHOAL_INVALID, node->fts_errno, "%s: can't read", node->fts_path);
    default: break;
    }
    return *file ? SHOAL_OK : shoal_fail(SHOAL_INVALID, "%s: is neither a file nor a folder", node->fts_path);
}

static int add_file(transfer *self, targets *targets, const char *path, const char *base, const char *name)
{
    transfer_entry entry = {.source = (char *)path};
    int status = transfer_is_part(path) ? shoal_fail(SHOAL_INVALID, "%s: is incomplete: a get left it unfinished", path)
                                        : transfer_file_version(path, &entry.size, &entry.version);
    if (status < 0) {
        transfer_add_failure(self);
        return SHOAL_OK;
    }
    return add_entry_at(self, targets, &entry, base, name);
}

int transfer_add_files(transfer *self, const char *path, const char *target)
{
    char *const roots[] = {(char *)path, NULL};
    targets targets = {0};
    char *below = NULL;
    FTSENT *node = NULL;
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    int status = base_format(&below, "%s%s", target, folder && *target ? "/" : "");
    if (status == SHOAL_OK)
        status = targets_start(&targets, self->to, below);
    FTS *tree = status == SHOAL_OK ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_names) : NULL;
    if (status == SHOAL_OK && !tree)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    while (status == SHOAL_OK && (errno = 0, node = fts_read(tree))) {
        bool file = false;
        const char *name = node->fts_path + strlen(path);
        name += strspn(name, "/");
        if (check_node(node, &file) < 0)
            transfer_add_failure(self);
        else if (file)
            status = add_file(self, &targets, node->fts_path, target, name);
    }
    if (status == SHOAL_OK && errno)
        status = shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (tree)
        fts_close(tree);
    targets_stop(&targets);
    base_free(&below);
    return status;
}

int transfer_add_unnamed(transfer *self, const char *path, const char *target)
{
    transfer_entry entry = {.source = (char *)path};
    targets targets = {0};
    int status = targets_start(&targets, self->to, target);
    if (status == SHOAL_OK)
        status = transfer_file_version(path, &entry.size, &entry.version);
    entry.version = (shoal_etag){""};
    if (status == SHOAL_OK)
        status = add_entry_at(self, &targets, &entry, target, "");
    targets_stop(&targets);
    return status;
}
