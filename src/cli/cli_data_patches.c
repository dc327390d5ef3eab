/* shoal data patches: random squares of images as rows, whitened where wanted. */
#include "cli.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "data/image/patches_file.h"

typedef struct settings {
    cli_common common;
    data_patches_request request;
    bool grey, force;
    int64_t threads;
    cli_print_settings print;
} settings;

static const char *const type_names[] = {"float32", "float64", NULL};

static const shoal_option cutting_rows[] = {
    {"size", 's', SHOAL_OPTION_COUNT, offsetof(settings, request.size), "N",
     .help = "width and height of a patch, in pixels", .fallback = "8", .least = 1, .most = 4096},
    {"count", 'n', SHOAL_OPTION_COUNT, offsetof(settings, request.count), "N", .help = "number of patches to cut",
     .fallback = "10000", .least = 1},
    {"seed", 0, SHOAL_OPTION_COUNT, offsetof(settings, request.seed), "N",
     .help = "random seed; the same seed and images give the same file", .fallback = "0"},
    {"grey", 0, SHOAL_OPTION_FLAG, offsetof(settings, grey), NULL, .help = "one value per pixel (the default)"},
    {"colour", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.colour), NULL,
     .help = "three values per pixel: red, green and blue"},
    {"type", 0, SHOAL_OPTION_CHOICE, offsetof(settings, request.type), "TYPE",
     .help = "type of the values: float32 or float64", .fallback = "float32", .choices = type_names},
    {"skip-broken", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.skip_broken), NULL,
     .help = "skip files that can't be read, and list them, instead of failing"},
    {"threads", 't', SHOAL_OPTION_COUNT, offsetof(settings, threads), "N",
     .help = "number of threads; never changes the result", .default_text = "all cores this process may use",
     .least = 1, .most = SHOAL_THREADS_MOST},
    {0},
};
static const shoal_option preparing_rows[] = {
    {"normalise", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.normalise), NULL,
     .help = "short for --centre --range 0.1:0.9, which an autoencoder with logistic units needs"},
    {"centre", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.centre), NULL,
     .help = "subtract each patch's own mean"},
    {"range", 0, SHOAL_OPTION_TEXT, offsetof(settings, request.range), "LOW:HIGH",
     .help = "as the last step, clip all values at three standard deviations and map them to this range"},
    {"whiten", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.whiten), NULL,
     .help = "whiten by ZCA: remove the correlation between pixels, but keep patches looking like patches"},
    {"whiten-pca", 0, SHOAL_OPTION_FLAG, offsetof(settings, request.whiten_pca), NULL,
     .help = "whiten by PCA: the columns are principal components, the strongest first"},
    {"epsilon", 0, SHOAL_OPTION_TEXT, offsetof(settings, request.epsilon), "E",
     .help = "added to the variances before whitening, so that faint noise is not amplified", .default_text = "0.1"},
    {"save-whitening", 0, SHOAL_OPTION_TEXT, offsetof(settings, request.save), "FILE.safetensors",
     .help = "write the mean and matrix of the whitening, for --use-whitening"},
    {"use-whitening", 0, SHOAL_OPTION_TEXT, offsetof(settings, request.use), "FILE.safetensors",
     .help = "process the patches exactly as those that the file was saved with"},
    {0},
};
static const shoal_option *const cutting_options = cutting_rows, *const preparing_options = preparing_rows;

static const base_option_group groups[] = {
    {"Cutting", &cutting_options, 0},
    {"Preparing", &preparing_options, 0},
    {"Replacing files", &run_force_options, offsetof(settings, force)},
    {"Printing", &cli_print_options, offsetof(settings, print)},
    {"Help", &cli_common_options, offsetof(settings, common)},
    {0},
};

static int check_files(const settings *settings, const char *out, const char *const *word, int count)
{
    const data_patches_request *request = &settings->request;
    const run_file outputs[] = {
        {"OUT",
         out,
         {.kind = DATA_CONTENT_ARRAY,
          .type = type_names[request->type],
          .rank = 2,
          .columns = request->size * request->size * (request->colour ? 3 : 1)}},
        {"--save-whitening", request->save, {.kind = DATA_CONTENT_MODEL, .learner = "whitening"}},
        {0}};
    run_file *inputs = NULL;
    int status = base_alloc(&inputs, (size_t)count + 2, sizeof *inputs, "a list of files");
    if (status < 0)
        return status;
    for (int i = 0; i < count; i++)
        inputs[i] = (run_file){.name = "IMAGES", .path = word[i]};
    inputs[count] = (run_file){.name = "--use-whitening", .path = request->use};
    status = run_files_check(outputs, inputs, settings->print.json);
    if (status == SHOAL_OK)
        status = run_files_check_old(outputs, settings->force);
    base_free(&inputs);
    return status;
}

static void show_cutting(void *context, const char *doing, int64_t done, int64_t files)
{
    cli_progress *progress = context;
    char text[80];
    if (files > 0 && (!progress->stream || base_seconds() - progress->shown < 0.1))
        return;
    if (files > 0)
        snprintf(text, sizeof text, "%s: %" PRId64 " of %" PRId64 " file%s", doing, done, files, base_plural(files));
    else
        snprintf(text, sizeof text, "%s", doing);
    cli_progress_say(progress, text);
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

/* Names the files that were left out, even with --quiet. */
static void tell_broken(const data_patch_report *report)
{
    for (int64_t i = 0; i < report->why_count; i++)
        if (report->why[i]) {
            fputs("shoal: left out: ", stderr);
            cli_put_text(stderr, report->why[i]);
            fputc('\n', stderr);
        }
}

static int print_patches_json(const data_patches *made, double seconds)
{
    json_t *object = json_object(), *why = json_array();
    for (int64_t i = 0; i < made->report.why_count; i++)
        if (made->report.why[i] && json_array_append_new(why, base_json_text(made->report.why[i])) < 0)
            break;
    base_json_put(&object, "out", base_json_text(made->out));
    base_json_put(&object, "patches", json_integer(made->options.count));
    base_json_put(&object, "columns", json_integer(data_patch_columns(&made->options)));
    base_json_put(&object, "size", json_integer(made->options.size));
    base_json_put(&object, "channels", json_integer(made->options.colour ? 3 : 1));
    base_json_put(&object, "type", json_string(shoal_type_name(made->options.type)));
    base_json_put(&object, "seed", json_integer((json_int_t)made->options.seed));
    base_json_put(&object, "files", json_integer(made->report.files));
    base_json_put(&object, "images", json_integer(made->report.images));
    base_json_put(&object, "skipped", json_integer(made->report.small));
    base_json_put(&object, "broken", json_integer(made->report.broken));
    base_json_put(&object, "broken_files", why);
    base_json_put(&object, "seconds", base_json_real(seconds));
    return cli_print_json(object);
}

static int print_patches_summary(const data_patches *made, const cli_print_settings *print, double seconds)
{
    const run_file outputs[] = {{.name = "OUT", .path = made->out}, {0}};
    FILE *stream = cli_summary_stream(outputs);
    const int64_t columns = data_patch_columns(&made->options);
    char patches[32], images[32];
    if (print->json)
        return print_patches_json(made, seconds);
    if (print->quiet)
        return SHOAL_OK;
    base_format_count(patches, sizeof patches, made->options.count);
    base_format_count(images, sizeof images, made->report.images);
    fprintf(stream,
            "%s %s patch%s of %" PRId64 " x %" PRId64 " pixels from %s image%s: %" PRId64 " column%s of %s, %.2f s\n",
            patches, made->options.colour ? "coloured" : "grey", made->options.count == 1 ? "" : "es",
            made->options.size, made->options.size, images, base_plural(made->report.images), columns,
            base_plural(columns), shoal_type_name(made->options.type), seconds);
    if (made->report.small)
        fprintf(stream, "%" PRId64 " smaller image%s left out\n", made->report.small, base_plural(made->report.small));
    if (made->report.broken)
        fprintf(stream, "%" PRId64 " broken file%s left out\n", made->report.broken, base_plural(made->report.broken));
    return SHOAL_OK;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static int run_patches(void *from_main, const char *const *word, int words)
{
    const settings *settings = from_main;
    const char *out = word[words - 1];
    double started = base_seconds();
    data_patches made;
    cli_progress progress;
    if (settings->request.colour && settings->grey)
        return shoal_fail(SHOAL_USAGE, "--grey and --colour cannot be combined");
    cli_progress_start(&progress, settings->print.quiet);
    int status = data_patches_open(&made, &settings->request, out);
    made.options.progress = show_cutting;
    made.options.context = &progress;
    if (status == SHOAL_OK)
        status = check_files(settings, out, word, words - 1);
    if (status == SHOAL_OK)
        status = data_patches_make(&made, word, words - 1, settings->threads ? (int)settings->threads : base_cores());
    cli_progress_clear(&progress);
    if (settings->request.skip_broken)
        tell_broken(&made.report);
    if (status == SHOAL_OK)
        status = print_patches_summary(&made, &settings->print, base_seconds() - started);
    data_patches_close(&made);
    return status;
}

static const char *const description[] = {
    "Cuts random square patches from images and writes them as rows of OUT, ready for shoal autoencoder and shoal "
    "kmeans. IMAGES are PNG and JPEG files, folders of them with all folders below, and .npy arrays: images x height x "
    "width, height x width, or one of these x 3 for colours, of uint8, uint16 or floats.",
    "Every image is equally likely to give a patch, whatever its size, and so is every place in it. Images smaller "
    "than a patch are skipped and counted. The same seed, options and images give the same file on every machine, with "
    "any number of threads.",
    "Values run from 0 (black) to 1 (white); those of float arrays stay as they are. A row holds the patch line by "
    "line, with the colours of a pixel side by side. Transparent pixels are drawn on white; grey is 0.299 red + 0.587 "
    "green + 0.114 blue, and a JPEG's own luminance.",
    "Before they are written, patches can lose their own mean (--centre), be whitened (--whiten) and be mapped to a "
    "range (--range), in this order. --whiten subtracts the mean of all patches and gives all directions the same "
    "variance, up to --epsilon: with covariance U S U', x becomes U (S + epsilon)^-1/2 U' (x - mean).",
    "If a file can't be read completely, the command fails before anything is written; with --skip-broken such files "
    "are skipped and listed. In folders, files that end with .png, .jpg or .jpeg are used, or .npy arrays if there are "
    "no such files. Links to files are followed there, links to folders are not.",
    NULL,
};
static const learn_example examples[] = {
    {"shoal data patches photos patches.npy --normalise", "10,000 patches of 8 x 8 pixels for a sparse autoencoder"},
    {"shoal data patches photos patches.npy --colour --count 100e3 --whiten --save-whitening w.safetensors",
     "coloured and whitened"},
    {"shoal data patches new.png more.npy --colour --use-whitening w.safetensors", "more patches, whitened alike"},
    {NULL, NULL},
};
const cli_verb cli_data_patches = {
    .name = "data patches",
    .summary = "cut random patches from images",
    .word = {"IMAGES...", "OUT"},
    .words_least = 2,
    .synopsis = "[options]",
    .description = description,
    .examples = examples,
    .options = groups,
    .settings_size = sizeof(settings),
    .run = run_patches,
};
