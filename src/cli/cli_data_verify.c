/* shoal data verify: packed images beside their manifest. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <shoal/engine.h>

#include "base/text.h"
#include "learn/pack/pack_verify.h"
#include "run/request.h"

static const double patience = 60; /* seconds that a store may be out of reach */

typedef struct settings {
    cli_common common;
    cli_print_settings print;
} settings;

static const base_option_group groups[] = {
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int print_json(const char *place, const pack_verifier *verifier, json_t *wrong)
{
    json_t *object = json_object();
    base_json_put(&object, "place", base_json_text(place));
    base_json_put(&object, "shards", json_integer(verifier->shards));
    base_json_put(&object, "images", json_integer(verifier->images));
    base_json_put(&object, "bytes", json_integer(verifier->bytes));
    base_json_put(&object, "wrong", json_incref(wrong));
    return cli_print_json(object);
}

/* One shard after another; `wrong` gets those that are not as they were packed. */
static int verify_all(json_t *wrong, pack_verifier *verifier, cli_watch *watch, const settings *settings)
{
    char line[64];
    const char *why;
    int status = SHOAL_OK;
    while (status == SHOAL_OK && verifier->next < verifier->shards) {
        snprintf(line, sizeof line, "reading shard %" PRId64 " of %" PRId64, verifier->next + 1, verifier->shards);
        cli_progress_say(&watch->progress, line);
        status = pack_verify_next(&why, verifier);
        if (status < 0 || !why)
            continue;
        json_t *object = json_object();
        base_json_put(&object, "name", base_json_text(verifier->name));
        base_json_put(&object, "why", json_string(why));
        if (json_array_append_new(wrong, object) < 0)
            status = shoal_fail(SHOAL_MEMORY, "out of memory for a list of shards");
        cli_progress_clear(&watch->progress);
        if (settings->print.json || settings->print.quiet)
            continue;
        cli_put_text(stdout, verifier->name);
        printf(": %s\n", why);
    }
    cli_progress_clear(&watch->progress);
    return status;
}

static int tell(const char *place, const pack_verifier *verifier, json_t *wrong, const settings *settings)
{
    const size_t count = json_array_size(wrong);
    char bytes[32];
    int status = settings->print.json ? print_json(place, verifier, wrong) : SHOAL_OK;
    if (status < 0)
        return status;
    if (count > 0)
        return shoal_fail(SHOAL_INVALID,
                          "%s: %zu of %" PRId64
                          " shards %s not as manifest.json says; the same data pack with --resume "
                          "makes %s again",
                          place, count, verifier->shards, count > 1 ? "are" : "is", count > 1 ? "them" : "it");
    if (settings->print.json || settings->print.quiet)
        return SHOAL_OK;
    base_format_bytes(bytes, sizeof bytes, (double)verifier->bytes);
    cli_put_text(stdout, place);
    printf(": %" PRId64 " image%s in %" PRId64 " shard%s, %s, as they were packed\n", verifier->images,
           base_plural(verifier->images), verifier->shards, base_plural(verifier->shards), bytes);
    return SHOAL_OK;
}

/* What is in a store is found by its manifest alone. */
static int check_folder(const char *place)
{
    struct stat about;
    if (run_is_in_store(place))
        return SHOAL_OK;
    if (stat(place, &about) < 0)
        return shoal_fail_errno(SHOAL_SYSTEM, errno, "%s: can't read", place);
    return S_ISDIR(about.st_mode)
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE,
                            "%s: is not a folder; name the one that data pack wrote to, with its manifest.json", place);
}

static int run_data_verify(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const shoal_blobs *blobs = NULL;
    pack_verifier verifier = {0};
    json_t *wrong = json_array();
    cli_watch watch;
    (void)words;
    cli_watch_start(&watch, settings->print.quiet);
    int status = wrong ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory for a list of shards");
    if (status == SHOAL_OK)
        status = check_folder(word[0]);
    if (status == SHOAL_OK)
        status = shoal_blobs_open(&blobs, word[0], false, patience);
    if (status == SHOAL_OK)
        status = pack_verify_begin(&verifier, blobs, word[0]);
    if (status == SHOAL_OK)
        status = verify_all(wrong, &verifier, &watch, settings);
    if (status == SHOAL_OK)
        status = tell(word[0], &verifier, wrong, settings);
    pack_verify_end(&verifier);
    shoal_blobs_close(&blobs);
    json_decref(wrong);
    return status;
}

static const char *const description[] = {
    "Reads the shards that data pack has put in PACKED, a folder or a place in a store, and compares their sizes and "
    "SHA-256 with those in manifest.json. Each shard that is missing or not as it was packed is named, and the exit "
    "code is 1.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal data verify packed", "whether a copy is whole"},
    {"shoal data verify az://acct/box/packed --json", "the same in the cloud, for a script"},
    {NULL, NULL},
};
const cli_verb cli_data_verify = {
    .name = "data verify",
    .summary = "compare packed images with their manifest",
    .word = {"PACKED"},
    .words_least = 1,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_data_verify,
};
