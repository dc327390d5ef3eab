/* shoal store put: files into a store. */
#include "transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "transfer_file.h"
#include "run/secrets.h"
#include "transfer_names.h"

typedef struct settings {
    cli_common common;
    transfer_settings transfer;
    transfer_target_settings target;
    cli_store_settings store;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Copying", &transfer_options, offsetof(settings, transfer)},
    {"Target", &transfer_target_options, offsetof(settings, target)},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static bool is_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return !is_input(path) && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Wrong names are told before anything is copied. */
static int check_source(const char *path, bool recursive)
{
    struct stat info;
    if (is_input(path))
        return SHOAL_OK;
    if (stat(path, &info) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", path);
    if (S_ISDIR(info.st_mode) && !recursive)
        return shoal_fail(SHOAL_USAGE, "%s: is a folder: -r puts all that is in it", path);
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return shoal_fail(SHOAL_USAGE, "%s: is neither a file nor a folder; '-' is standard input", path);
    return SHOAL_OK;
}

/* A folder that holds the store would be put into itself without end. */
static int check_not_inside(const char *path, const store_place *to)
{
    char *real = is_input(path) ? NULL : realpath(path, NULL);
    size_t length = real ? strlen(real) : 0;
    const char *store = store_place_folder(to);
    bool inside = real && store && strncmp(store, real, length) == 0 &&
                  (store[length] == '/' || store[length] == '\0' || strcmp(real, "/") == 0);
    free(real);
    return inside ? shoal_fail(SHOAL_USAGE, "%s: the store %s lies in it, and would be put into itself", path, to->url)
                  : SHOAL_OK;
}

/* Where a source goes: below the URL by its own name, or to just what the URL says. */
static int target_of(char **out, const char *path, const store_place *to, bool many)
{
    bool folder = is_folder(path);
    bool below = many || to->slash || (!*to->rest && !folder);
    size_t length = 0;
    const char *last = transfer_last(&length, path);
    char *name = NULL;
    if (below && is_input(path))
        return shoal_fail(SHOAL_USAGE, "%s: standard input needs a key of its own, not the start of keys", to->url);
    if (!below || (folder && (strncmp(last, ".", length) == 0 || strncmp(last, "..", length) == 0)))
        return !below && !folder && store_place_check_key(to) < 0 ? SHOAL_USAGE : base_copy_text(out, to->rest);
    int status = base_copy_text_n(&name, last, length);
    if (status == SHOAL_OK)
        status = transfer_join(out, to->rest, name);
    base_free(&name);
    return status;
}

static int add_source(transfer *copying, const char *path, const store_place *to, bool many, transfer_part *input)
{
    char *target = NULL, *spooled = NULL;
    int status = target_of(&target, path, to, many);
    if (status == SHOAL_OK && is_input(path)) {
        status = transfer_spool_input(input, &spooled);
        if (status == SHOAL_OK)
            status = transfer_add_unnamed(copying, spooled, target);
    } else if (status == SHOAL_OK) {
        status = transfer_add_files(copying, path, target);
    }
    base_free(&spooled);
    base_free(&target);
    return status;
}

static int run_put(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *url = word[words - 1];
    const store_place *stores[1];
    store_place to = {0};
    transfer *copying = NULL;
    transfer_part input = {.descriptor = -1};
    transfer_report report = {0};
    transfer_plan plan = {.settings = &settings->transfer,
                          .to = &to,
                          .if_absent = settings->target.if_absent,
                          .quiet = settings->print.quiet};
    int count = words - 1, status = SHOAL_OK;
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = check_source(word[i], settings->transfer.recursive);
    if (status == SHOAL_OK && count > 1)
        status = transfer_check_distinct(word, word, count);
    if (status == SHOAL_OK)
        status = run_protect_secrets(url);
    if (status == SHOAL_OK)
        status = store_place_open_target(&to, url, settings->store.patience, settings->target.create,
                                         count > 1 || is_folder(word[0]));
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = check_not_inside(word[i], &to);
    if (status == SHOAL_OK)
        status = transfer_name_paths(&plan.from_name, word, count);
    if (status == SHOAL_OK)
        status = transfer_name_place(&plan.to_name, &to);
    if (status < 0) {
        base_free(&plan.from_name);
        goto done;
    }
    status = transfer_start(&copying, &plan);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = add_source(copying, word[i], &to, count > 1, &input);
    bool started = copying != NULL;
    stores[0] = &to;
    status = transfer_finish(&copying, status, &report);
    if (started && status != SHOAL_USAGE) {
        int printed = transfer_print(&report, "put", &settings->print, stores, 1);
        status = status < 0 ? status : printed;
    }
done:
    transfer_report_release(&report);
    transfer_part_close(&input, false);
    store_place_close(&to);
    return status;
}

static const char *const description[] = {
    "Copies files into a store as they are. One file becomes the key that URL names; several, or a URL that ends with "
    "'/' or names just a store, go below it under their own names. With -r a folder's files become keys below URL. "
    "FILE '-' is standard input.",
    "A key is seen whole or not at all, and what is already there with the same content is skipped: the same command, "
    "given again after it was stopped, goes on where it was. One that fails does not stop the others.",
    "URL is the path of a folder or dir:PATH, az://ACCOUNT/CONTAINER/KEY or s3://BUCKET/KEY. A folder becomes a store "
    "when it is not one yet.",
    "Names that can't be keys (control characters, no UTF-8, a segment that ends with a dot, more than 512 bytes) are "
    "told, and the rest is copied. Links to files are followed, links to folders are not. Empty folders leave nothing "
    "in a store.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store put data.npy ./st/", "the key data.npy of a store in the folder st"},
    {"shoal store put -r results az://acct/box/2026/results", "all files of a folder"},
    {"sort names.txt | shoal store put - ./st/names", "what a program writes"},
    {NULL, NULL},
};
const cli_verb cli_store_put = {
    .name = "store put",
    .summary = "copy files into a store",
    .word = {"FILE...", "URL"},
    .words_least = 2,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_put,
};
