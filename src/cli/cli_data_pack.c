/* shoal data pack: images into shards of TFRecord, tar or npy. */
#include "cli.h"

#include <string.h>

#include "learn/pack/pack_internal.h"
#include "run/pack.h"
#include "run/ranks.h"
#include "run/run.h"

/* It is followed by a request for the learner that packs. */
typedef struct settings {
    cli_common common;
    cli_print_settings print;
    run_pack_settings pack;
    _Alignas(16) char request[];
} settings;

static const shoal_option listing_rows[] = {
    {"classes", 0, SHOAL_OPTION_TEXT, offsetof(run_pack_settings, classes), "folders|none|FILE.csv",
     .help = "the class of each image: the name of its folder, none, or a table of names and classes, whose names are "
             "paths below the folder that all images have in common",
     .fallback = "folders"},
    {"shuffle", 0, SHOAL_OPTION_TEXT, offsetof(run_pack_settings, shuffle), "SEED",
     .help = "deal images out to shards in random order; the same seed gives the same shards",
     .default_text = "in the order of their names"},
    {"name", 0, SHOAL_OPTION_TEXT, offsetof(run_pack_settings, name), "NAME",
     .help = "what the names of shards begin with", .default_text = "the name of the folder of all images"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(run_pack_settings, resume),
     .help = "keep the shards that an earlier run with the same images and options has put, also one that was done; "
             "shoal job resume does it for workers"},
    {"force", 0, SHOAL_OPTION_FLAG, offsetof(run_pack_settings, force),
     .help = "replace images that were packed to OUT before, and FILE of --picture whatever it holds"},
    {0},
};
static const shoal_option *const listing_options = listing_rows;

static const shoal_option threads_rows[] = {
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(run_place, threads), "N",
     .help = "number of threads; never changes a shard", .least = 1, .most = SHOAL_THREADS_MOST,
     .default_text = "all cores this process may use"},
    {0},
};
static const shoal_option *const threads_options = threads_rows;

/* The learner's output. */
static shoal_option picture_rows[2];
static const shoal_option *const picture_options = picture_rows;

/* The learner's own options without those that the verb sets itself. */
static shoal_option own_rows[32];
static const shoal_option *const own_options = own_rows;

static base_option_group groups[9];

void cli_data_pack_prepare(void)
{
    static const char *const hidden[] = {"name", "class-names", "parts", "resume", "replace", NULL};
    const size_t at = offsetof(settings, request);
    const shoal_option *table = learn_face_find("pack")->algorithm->options;
    const learn_output *picture = &learn_face_find("pack")->outputs[0];
    int rows = 0, count = 0;
    picture_rows[0] =
        (shoal_option){picture->name, .kind = SHOAL_OPTION_TEXT, .argument = picture->argument, .help = picture->help};
    for (; table->name; table++) {
        bool is_hidden = false;
        for (int i = 0; hidden[i]; i++)
            is_hidden |= strcmp(table->name, hidden[i]) == 0;
        if (!is_hidden)
            own_rows[rows++] = *table;
    }
    groups[count++] = (base_option_group){"Images and shards", &listing_options, offsetof(settings, pack)};
    groups[count++] = (base_option_group){"Pixels and files", &own_options, at + offsetof(shoal_request, config)};
    groups[count++] = (base_option_group){"Output", &picture_options, at + offsetof(shoal_request, output)};
    groups[count++] = (base_option_group){"Running", &threads_options, at + offsetof(shoal_request, place)};
    groups[count++] = (base_option_group){"Ranks", &run_engine_options, at + offsetof(shoal_request, ranks)};
    groups[count++] =
        (base_option_group){"Running on workers", &run_workers_options_table, at + offsetof(shoal_request, workers)};
    groups[count++] = (base_option_group){"Printing", &cli_print_options, offsetof(settings, print)};
    groups[count] = (base_option_group){"Help", &cli_common_options, offsetof(settings, common)};
}

static int run_data_pack(void *from_main, const char *const *word, int words)
{
    settings *settings = from_main;
    shoal_request *request = (shoal_request *)settings->request, *usual = NULL;
    shoal_outcome *outcome = NULL;
    run_pack pack = {0};
    cli_watch watch;
    int status = shoal_request_new(&usual, "pack"); /* for what this verb has no options */
    if (status < 0)
        return status;
    cli_watch_start(&watch, settings->print.quiet);
    request->face = usual->face;
    request->algorithm = usual->algorithm;
    request->place.kernel = usual->place.kernel;
    request->ranks.verify = usual->ranks.verify;
    request->force = settings->pack.force;
    request->json = settings->print.json;
    request->watch = cli_watcher(&watch);
    status = run_pack_begin(&pack, request, word, words - 1, word[words - 1], &settings->pack);
    if (status == SHOAL_OK)
        status = run_request(&outcome, request);
    cli_progress_clear(&watch.progress);
    status = run_pack_ended(&pack, status);
    if (outcome)
        status = cli_outcome_tell(outcome, &settings->print, status);
    shoal_outcome_free(&outcome);
    run_pack_release(&pack);
    shoal_request_free(&usual);
    return status;
}

static const char *const description[] = {
    "Brings images to one size and packs them into shards: files of many images each, which are read much faster than "
    "the images one by one. IMAGES are PNG and JPEG files, folders of them, or one place in a store, such as "
    "az://account/box/photos; OUT is a folder or a place in a store. The name of an image's folder is its class.",
    "A shard of TFRecord holds tf.train.Example records with the features class, image, label, one_hot_class and size. "
    "The last file written is manifest.json: shards with their sizes and SHA-256, classes, and what was skipped.",
    "The bytes of every shard depend on the images and the options alone, never on the number of threads, workers or "
    "ranks. docs/images.md defines the pixels and says which images are refused.",
    NULL,
};

static const learn_example examples[] = {
    {"shoal data pack flowers packed --size 192x192", "16 shards of TFRecord, with the folders as classes"},
    {"shoal data pack flowers packed --shuffle 1 --shards 64 --index", "in random order, with indices"},
    {"shoal data pack flowers packed --picture sheet.png", "and a contact sheet of what was packed"},
    {"shoal data pack flowers packed --format tar --chroma 420", "as webdataset reads it"},
    {"shoal data pack flowers packed --format npy --encode raw --skip-broken", "as arrays of pixels"},
    {"shoal data pack az://acct/box/flowers az://acct/box/packed --store az://acct/jobs --workers slurm:16",
     "in the cloud, on a cluster"},
    {NULL, NULL},
};

const cli_verb cli_data_pack = {
    .name = "data pack",
    .summary = "pack images into shards of TFRecord, tar or npy",
    .word = {"IMAGES...", "OUT"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings) + sizeof(shoal_request) + sizeof(pack_config),
    .of_ranks = true,
    .run = run_data_pack,
};
