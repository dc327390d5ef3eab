/* shoal store get and cat: blobs of a store into files, and to standard output. */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "transfer_names.h"

typedef struct settings {
    cli_common common;
    transfer_settings transfer;
    cli_store_settings store;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Copying", &transfer_options, offsetof(settings, transfer)},
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};
static const base_option_group cat_groups[] = {
    {"Store", &cli_store_options, offsetof(settings, store)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static const char STANDARD_OUTPUT[] = "/dev/stdout";

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A pipe or a device, which is written to rather than replaced. */
static bool is_special(const char *path)
{
    struct stat info;
    return base_output_standard(path) >= 0 ||
           (stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode));
}

/* Whether a path, of which the end need not be there, lies in the folder of a store: files written there could be the
 * store's own. */
static int is_in_store(bool *out, const char *path)
{
    char *at = NULL, *marker = NULL, *real = NULL;
    int status = base_format(&at, "%s%s", path[0] == '/' ? "" : "./", path);
    *out = false;
    while (status == SHOAL_OK && !(real = realpath(at, NULL)) && strrchr(at, '/') > at)
        *strrchr(at, '/') = '\0';
    for (size_t length = real ? strlen(real) : 0; status == SHOAL_OK && !*out && length > 0;) {
        status = base_format(&marker, "%.*s/shoal-store", (int)length, real);
        *out = status == SHOAL_OK && access(marker, F_OK) == 0;
        base_free(&marker);
        do
            length--;
        while (length > 0 && real[length] != '/');
    }
    free(real);
    base_free(&at);
    return status;
}

/* ---- to a stream ------------------------------------------------------------------------------------------------- */

/* One version of the blob from its start to its end. */
static int stream_key(const store_place *from, base_output *output)
{
    void *buffer = NULL;
    shoal_blob blob = {0};
    shoal_etag version = {""};
    int status = base_alloc_unset(&buffer, TRANSFER_PIECE, 1, "a blob");
    for (int64_t at = 0, whole = 1; status == SHOAL_OK && at < whole;) {
        status = shoal_store_get_range(from->store, from->rest, at, TRANSFER_PIECE, at ? &version : NULL, buffer, &blob,
                                       shoal_after(from->patience));
        if (status == SHOAL_CONFLICT)
            status = shoal_fail(status, "%s: changed while it was read", from->url);
        if (status == SHOAL_OK)
            status = base_output_write(output, buffer, blob.size);
        if (status == SHOAL_OK && blob.size == 0 && blob.whole > at)
            status = shoal_fail(SHOAL_BROKEN, "%s: ends after %lld of %lld bytes", from->url, (long long)at,
                                (long long)blob.whole);
        whole = blob.whole;
        version = blob.etag;
        at += (int64_t)blob.size;
        shoal_blob_release(&blob);
    }
    base_free(&buffer);
    return status;
}

static int stream_url(const char *url, const cli_store_settings *settings, base_output *output)
{
    store_place from;
    int status = cli_store_open(&from, url, settings, (shoal_store_options){.read_only = true});
    if (status < 0)
        return status;
    if (!*from.rest)
        status = shoal_fail(SHOAL_USAGE, "%s: names a store, not a key in it", url);
    if (status == SHOAL_OK)
        status = stream_key(&from, output);
    store_place_close(&from);
    return status;
}

static int stream_all(const char *const *url, int count, const cli_store_settings *settings, const char *path)
{
    base_output *output = NULL;
    bool closed = strcmp(path, STANDARD_OUTPUT) == 0 && (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
    int status = closed ? shoal_fail_errno(SHOAL_SYSTEM, EBADF, "standard output: can't write")
                        : base_output_open(&output, path);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = stream_url(url[i], settings, output);
    if (status == SHOAL_OK)
        status = base_output_commit(&output);
    base_output_discard(&output);
    return status;
}

static int run_cat(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    return stream_all(word, words, &settings->store, STANDARD_OUTPUT);
}

/* ---- to files ---------------------------------------------------------------------------------------------------- */

static int check_target(const settings *settings, const char *target, bool below)
{
    bool in_store = false;
    if (!*target)
        return shoal_fail(SHOAL_USAGE, "TARGET is empty; '.' is the folder you are in");
    int status = is_in_store(&in_store, target);
    if (status < 0)
        return status;
    if (in_store)
        return shoal_fail(SHOAL_USAGE,
                          "%s: lies in the folder of a store, where no other files may be; 'store copy' copies to "
                          "keys of a store",
                          target);
    if (!settings->transfer.recursive && !below && is_folder(target))
        return shoal_fail(SHOAL_USAGE, "%s: is a folder; %s/ puts the file into it", target, target);
    if ((settings->transfer.recursive || below) && !is_folder(target) && is_special(target))
        return shoal_fail(SHOAL_USAGE, "%s: is no folder", target);
    return SHOAL_OK;
}

/* Where a source goes: below the target by its own name, or to the target itself. */
static int target_of(char **out, const char *target, const store_place *from, bool below)
{
    size_t length = 0;
    const char *name = transfer_last(&length, from->rest); /* to its end, since rest has no slash there */
    return below ? transfer_join(out, target, name) : base_copy_text(out, target);
}

static int add_source(transfer *copying, const store_place *from, const char *target, bool below, bool recursive)
{
    char *path = NULL;
    if (!*from->rest && !recursive)
        return shoal_fail(SHOAL_USAGE, "%s: names a whole store: -r gets all that is in it", from->url);
    int status = target_of(&path, target, from, below);
    if (status == SHOAL_OK)
        status = transfer_add_keys(copying, from, path, recursive);
    base_free(&path);
    if (status == SHOAL_ABSENT || status == SHOAL_INVALID) { /* the others can still be fetched */
        transfer_add_failure(copying);
        status = SHOAL_OK;
    }
    return status;
}

static int check_distinct(const store_place *from, int count)
{
    const char **names = NULL;
    int status = base_alloc(&names, 2 * (size_t)count, sizeof *names, "names");
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        names[i] = from[i].rest;
        names[count + i] = from[i].url;
    }
    if (status == SHOAL_OK)
        status = transfer_check_distinct(names, names + count, count);
    base_free(&names);
    return status;
}

static int run_transfer(const settings *settings, const store_place *from, const store_place *const *stores, int count,
                        const char *target, bool below)
{
    transfer *copying = NULL;
    transfer_report report = {0};
    transfer_plan plan = {.settings = &settings->transfer, .quiet = settings->print.quiet};
    int status = count > 1 ? check_distinct(from, count) : SHOAL_OK;
    if (status < 0)
        return status;
    status = transfer_name_places(&plan.from_name, from, count);
    if (status == SHOAL_OK)
        status = transfer_name_paths(&plan.to_name, &target, 1);
    if (status < 0) {
        base_free(&plan.from_name);
        return status;
    }
    status = transfer_start(&copying, &plan);
    for (int i = 0; i < count && status == SHOAL_OK; i++)
        status = add_source(copying, &from[i], target, below, settings->transfer.recursive);
    bool started = copying != NULL;
    status = transfer_finish(&copying, status, &report);
    if (started && status != SHOAL_USAGE) {
        int printed = transfer_print(&report, "got", &settings->print, stores, (size_t)count);
        status = status < 0 ? status : printed;
    }
    transfer_report_release(&report);
    return status;
}

static int run_get(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *target = word[words - 1];
    int count = words - 1;
    bool below = count > 1 || (*target && target[strlen(target) - 1] == '/');
    bool to_stream = strcmp(target, "-") == 0 || (!below && !settings->transfer.recursive && is_special(target));
    if (to_stream && (settings->transfer.recursive || settings->print.json))
        return shoal_fail(SHOAL_USAGE, "standard output takes keys one by one: no -r and no --json with '-'");
    if (to_stream)
        return stream_all(word, count, &settings->store, strcmp(target, "-") == 0 ? STANDARD_OUTPUT : target);
    store_place *from = NULL;
    const store_place **stores = NULL;
    int status = check_target(settings, target, below);
    if (status == SHOAL_OK)
        status = base_alloc(&from, (size_t)count, sizeof *from, "stores");
    if (status == SHOAL_OK)
        status = base_alloc(&stores, (size_t)count, sizeof *stores, "stores");
    for (int i = 0; i < count && status == SHOAL_OK; i++) {
        stores[i] = &from[i];
        status = cli_store_open(&from[i], word[i], &settings->store, (shoal_store_options){.read_only = true});
    }
    if (status == SHOAL_OK)
        status = run_transfer(settings, from, stores, count, target, below);
    for (int i = 0; i < count && from; i++)
        store_place_close(&from[i]);
    base_free(&stores);
    base_free(&from);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------------------------------- */

static const char *const description[] = {
    "Copies blobs of a store into files. The key that URL names becomes the file TARGET; several, or a TARGET that "
    "ends with '/', go below it under the last segment of their keys. With -r all keys below URL become files below "
    "TARGET. TARGET '-' is standard output.",
    "A file appears when it is whole; until then it lies beside its place as .shoal-part-..., and a large one goes on "
    "from there when the same command is given again after it was stopped. What is there already with the same content "
    "is skipped. One that fails does not stop the others.",
    "Keys that can't be files, since one is 'a' and another 'a/b', are told, and the rest is copied.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal store get ./st/data.npy data.npy", "one key into one file"},
    {"shoal store get -r az://acct/box/2026/results results", "all that is below results"},
    {"shoal store get s3://bucket/names - | sort", "for another program"},
    {NULL, NULL},
};
const cli_verb cli_store_get = {
    .name = "store get",
    .summary = "copy blobs of a store into files",
    .word = {"URL...", "TARGET"},
    .words_least = 2,
    .synopsis = "[-r] [options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_get,
};

static const char *const cat_description[] = {
    "Writes the bytes of keys to standard output, one behind the other, as they are.", NULL};
static const learn_example cat_examples[] = {
    {"shoal store cat ./st/jobs/1/spec", "show what a key holds"},
    {NULL, NULL},
};
const cli_verb cli_store_cat = {
    .name = "store cat",
    .summary = "write blobs of a store to standard output",
    .word = {"URL..."},
    .words_least = 1,
    .synopsis = "[options]",
    .description = cat_description,
    .examples = cat_examples,
    .options = cat_groups,
    .settings_size = sizeof(settings),
    .run = run_cat,
};
