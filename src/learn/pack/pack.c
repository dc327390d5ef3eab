/* Packing images: the one round of it, what comes from elsewhere, and the result.  See pack_internal.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "data/image/image_encode.h"
#include "learn/check.h"
#include "learn/pack/pack_internal.h"

enum { SIDE_MOST = DATA_IMAGE_SIDE_MOST, SHARDS_MOST = 1000000, TEXTS_MOST = 1 << 20, CLASSES_MOST = 100000 };
enum { QUALITY_USUAL = 95 }; /* the fallback below */

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char *const resizes[] = {"tf", "antialias", NULL}, *const encodes[] = {"jpeg", "raw", NULL},
                         *const tables[] = {"fixed", "best", NULL}, *const chromas[] = {"444", "420", NULL},
                         *const formats[] = {"tfrecord", "tar", "npy", NULL};

static const shoal_option options[] = {
    {"size", 0, SHOAL_OPTION_TEXT, offsetof(pack_config, size), "HxW",
     .help = "height and width that every image is brought to: scaled until it covers this, then cut to the middle",
     .fallback = "192x192"},
    {"resize", 0, SHOAL_OPTION_CHOICE, offsetof(pack_config, resize), "HOW",
     .help = "tf: bilinear as tf.image.resize does it; antialias: as Pillow's BILINEAR, smoother when images shrink",
     .fallback = "tf", .choices = resizes},
    {"encode", 0, SHOAL_OPTION_CHOICE, offsetof(pack_config, encode), "HOW",
     .help = "how pixels are kept: jpeg, or raw, three bytes each", .fallback = "jpeg", .choices = encodes},
    {"quality", 0, SHOAL_OPTION_COUNT, offsetof(pack_config, quality), "N", .help = "JPEG quality", .fallback = "95",
     .least = 1, .most = 100},
    {"huffman", 0, SHOAL_OPTION_CHOICE, offsetof(pack_config, huffman), "TABLES",
     .help = "JPEG: fixed tables, trained on photographs, or the best of each image, smaller by a percent or two and "
             "slower",
     .fallback = "fixed", .choices = tables},
    {"chroma", 0, SHOAL_OPTION_CHOICE, offsetof(pack_config, chroma), "444|420",
     .help = "JPEG: colour for every pixel, or for every four", .fallback = "444", .choices = chromas},
    {"orient", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, orient),
     .help = "turn images as their EXIF orientation says"},
    {"format", 0, SHOAL_OPTION_CHOICE, offsetof(pack_config, format), "FORMAT",
     .help = "of the shards: tfrecord, tar as webdataset reads it, or npy, an array of raw pixels",
     .fallback = "tfrecord", .choices = formats},
    {"shards", 0, SHOAL_OPTION_COUNT, offsetof(pack_config, shards), "N",
     .help = "number of shards at most: all but the last get equally many images, so that 20 images make 10 of 2",
     .fallback = "16", .least = 1, .most = SHARDS_MOST},
    {"name", 0, SHOAL_OPTION_TEXT, offsetof(pack_config, name), "NAME", .help = "what the names of shards begin with",
     .fallback = "images"},
    {"index", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, index),
     .help = "tfrecord: also write NAME.idx, a line with the offset and the length of each record"},
    {"skip-broken", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, skip_broken),
     .help = "leave out images that can't be read, and list them in the manifest"},
    {"class-names", 0, SHOAL_OPTION_TEXT, offsetof(pack_config, classes), "NAMES",
     .help = "the names of the classes that rows count, a line each", .fallback = ""},
    {"parts", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, parts),
     .help = "keep what became of each shard beside it until all are done, so that a run that was killed resumes"},
    {"resume", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, resume), .help = "use what such a run has kept"},
    {"replace", 0, SHOAL_OPTION_FLAG, offsetof(pack_config, replace),
     .help = "resuming: replace what was packed of other images, or with other options"},
    {0},
};

/* ---- the model --------------------------------------------------------------------------------------------------- */

data_image_recipe pack_recipe(const pack_model *model)
{
    return (data_image_recipe){.height = model->height,
                               .width = model->width,
                               .resize = (data_image_resize)model->resize,
                               .encode = (data_image_encode)model->encode,
                               .quality = model->quality,
                               .huffman = (data_image_huffman)model->huffman,
                               .chroma = (data_image_chroma)model->chroma,
                               .orient = model->orient};
}

pack_naming pack_naming_of(const pack_model *model)
{
    return (pack_naming){.name = model->texts, .format = model->format, .digits = model->digits};
}

int pack_digits(int64_t shards)
{
    int digits = 2;
    for (int64_t most = 100; shards > most; most *= 10)
        digits++;
    return digits;
}

int pack_shard_name(char **out, const pack_naming *naming, int64_t shard, int64_t items, const char *more)
{
    static const char *const endings[] = {[PACK_TFRECORD] = ".tfrec", [PACK_TAR] = ".tar", [PACK_NPY] = ".npy"};
    return base_format(out, "%s%0*" PRId64 "-%" PRId64 "%s", naming->name, naming->digits, shard, items,
                       more ? more : endings[naming->format]);
}

const char *pack_beside(int format, bool index, bool has_classes)
{
    if (index)
        return ".idx";
    return format == PACK_NPY && has_classes ? ".classes.npy" : NULL;
}

const char *pack_class_name(const pack_model *model, int64_t index)
{
    const char *at = model->texts + model->name_bytes;
    for (; index > 0; index--)
        at += strlen(at) + 1;
    return at;
}

static void lay_out_pack(shoal_layout *layout)
{
    *layout = (shoal_layout){.cells = PACK_CELLS, .carry_from = -1};
    layout->cell[PACK_CELL_SHARDS] =
        (shoal_cell){.name = "shards", .kind = SHOAL_CELL_RECORD, .bytes = sizeof(pack_shard)};
    layout->cell[PACK_CELL_BROKEN] = (shoal_cell){.name = "broken", .kind = SHOAL_CELL_RECORD, .bytes = PACK_WHY_BYTES};
}

/* Digits alone, without the signs and spaces that strtol passes over; returns what follows them. */
static const char *read_side(int *out, const char *text)
{
    *out = 0;
    for (; *text >= '0' && *text <= '9' && *out <= SIDE_MOST; text++)
        *out = 10 * *out + (*text - '0');
    return *out <= SIDE_MOST ? text : "";
}

int pack_read_size(int *height, int *width, const char *text)
{
    const char *at = read_side(height, text);
    const bool has_two = *at == 'x' || *at == 'X';
    if (has_two)
        at = read_side(width, at + 1);
    if (!has_two || *at != '\0' || *height < 1 || *width < 1 || *width > SIDE_MOST)
        return shoal_fail(SHOAL_USAGE, "--size: '%s' should be HEIGHTxWIDTH, such as 192x192, of 1 to %d each", text,
                          SIDE_MOST);
    return SHOAL_OK;
}

/* Names become names of files and lines of a manifest. */
static int check_texts(const pack_config *config)
{
    if (!base_path_stays_below(config->name) || strchr(config->name, '/') || strlen(config->name) > 200)
        return shoal_fail(SHOAL_USAGE, "--name: '%s' can't begin the name of a file", config->name);
    if (strlen(config->classes) > TEXTS_MOST)
        return shoal_fail(SHOAL_USAGE, "the names of the classes have more than %d bytes", TEXTS_MOST);
    if (config->format == PACK_NPY && config->encode == DATA_IMAGE_JPEG)
        return shoal_fail(SHOAL_USAGE, "--format npy holds pixels: give --encode raw, too");
    if (config->format == PACK_TAR && config->encode == DATA_IMAGE_RAW)
        return shoal_fail(SHOAL_USAGE, "--format tar holds JPEG files, no --encode raw: choose tfrecord or npy");
    if (config->format != PACK_TFRECORD && config->index)
        return shoal_fail(SHOAL_USAGE, "--index is about tfrecord");
    const char *jpeg_alone = config->quality != QUALITY_USUAL      ? "quality"
                             : config->huffman != DATA_IMAGE_FIXED ? "huffman"
                             : config->chroma != DATA_IMAGE_444    ? "chroma"
                                                                   : NULL;
    if (jpeg_alone && config->encode == DATA_IMAGE_RAW)
        return shoal_fail(SHOAL_USAGE, "--%s is about JPEG, and --encode raw makes none", jpeg_alone);
    return SHOAL_OK;
}

static int count_classes(const char *names)
{
    int count = names[0] != '\0';
    for (; *names; names++)
        count += *names == '\n';
    return count;
}

static int start_pack(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const pack_config *config = untyped;
    pack_model head = {.resize = config->resize,
                       .encode = config->encode,
                       .quality = (int32_t)config->quality,
                       .huffman = config->huffman,
                       .chroma = config->chroma,
                       .orient = config->orient,
                       .format = config->format,
                       .index = config->index,
                       .skip_broken = config->skip_broken,
                       .parts = config->parts,
                       .resume = config->resume,
                       .replace = config->replace,
                       .classes = count_classes(config->classes),
                       .digits = pack_digits(config->shards)};
    int status = pack_read_size(&head.height, &head.width, config->size);
    if (status == SHOAL_OK)
        status = check_texts(config);
    if (status == SHOAL_OK && head.classes > CLASSES_MOST)
        status = shoal_fail(SHOAL_USAGE, "there are %d classes, more than %d", head.classes, CLASSES_MOST);
    if (status == SHOAL_OK) {
        const data_image_recipe recipe = pack_recipe(&head);
        status = data_image_recipe_check(&recipe);
    }
    if (status == SHOAL_OK && (shape->type != SHOAL_UINT8 || shape->columns <= PACK_ROW_HEAD || shape->weighted))
        status = shoal_fail(SHOAL_INVALID, "rows of %s do not name images: `shoal data pack` makes those that do",
                            shoal_type_name(shape->type));
    if (status == SHOAL_OK)
        status = pack_decoder_hash(head.decoder);
    head.name_bytes = (int64_t)strlen(config->name) + 1;
    head.classes_bytes = head.classes > 0 ? (int64_t)strlen(config->classes) + 1 : 0;
    if (status == SHOAL_OK)
        status = shoal_round_new(out, sizeof head + (size_t)head.name_bytes + (size_t)head.classes_bytes);
    if (status < 0)
        return status;
    pack_model *model = (*out)->model;
    *model = head;
    memcpy(model->texts, config->name, (size_t)head.name_bytes);
    memcpy(model->texts + head.name_bytes, config->classes, (size_t)head.classes_bytes);
    for (char *at = model->texts + head.name_bytes; at < model->texts + head.name_bytes + head.classes_bytes; at++)
        if (*at == '\n')
            *at = '\0';
    snprintf((*out)->phase, sizeof(*out)->phase, "pack");
    lay_out_pack(&(*out)->layout);
    return SHOAL_OK;
}

static int64_t rows_per_grain_pack(const void *config, const shoal_shape *shape)
{
    int64_t shards = ((const pack_config *)config)->shards;
    return (shape->rows + shards - 1) / shards;
}

/* ---- what comes from elsewhere ----------------------------------------------------------------------------------- */

static bool is_below(int32_t value, int32_t end)
{
    return value >= 0 && value < end;
}

static bool has_good_texts(const pack_model *model, size_t bytes)
{
    int64_t ends = 0;
    if (model->name_bytes < 2 || model->name_bytes > 256 || model->classes_bytes < 0 ||
        model->classes_bytes > TEXTS_MOST + 1 ||
        bytes != sizeof *model + (size_t)model->name_bytes + (size_t)model->classes_bytes ||
        strnlen(model->texts, (size_t)model->name_bytes) != (size_t)model->name_bytes - 1 ||
        !base_path_stays_below(model->texts) || strchr(model->texts, '/'))
        return false;
    for (int64_t i = 0; i < model->classes_bytes; i++)
        ends += model->texts[model->name_bytes + i] == '\0';
    return ends == model->classes && model->classes <= CLASSES_MOST &&
           (ends == 0 || model->texts[model->name_bytes + model->classes_bytes - 1] == '\0');
}

static int check_pack(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const pack_model *model = round->model;
    shoal_layout expected;
    (void)self;
    lay_out_pack(&expected);
    bool good = round->model_bytes > sizeof *model && shape->type == SHOAL_UINT8 && shape->columns > PACK_ROW_HEAD &&
                is_below(model->resize, 2) && is_below(model->encode, 2) && is_below(model->huffman, 2) &&
                is_below(model->chroma, 2) && is_below(model->format, 3) && is_below(model->orient, 2) &&
                is_below(model->index, 2) && is_below(model->skip_broken, 2) && is_below(model->parts, 2) &&
                is_below(model->resume, 2) && is_below(model->replace, 2) && model->digits >= 2 && model->digits <= 7 &&
                model->classes >= 0;
    if (good) {
        const data_image_recipe recipe = pack_recipe(model);
        good = data_image_recipe_check(&recipe) == SHOAL_OK && has_good_texts(model, round->model_bytes) &&
               shoal_layout_same(&round->layout, &expected) && strcmp(round->phase, "pack") == 0;
    }
    return good ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "round %" PRId64 " is not one that packs images", round->number);
}

static int check_result_pack(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                             const shoal_shape *shape)
{
    const int64_t each[] = {shape->grains, PACK_NUMBERS}, hash[] = {shape->grains, BASE_HASH_SIZE}, skipped[] = {-1};
    const int64_t why[] = {-1, PACK_WHY_BYTES};
    const shoal_tensor *rows = shoal_result_tensor(result, "skipped"), *texts = shoal_result_tensor(result, "why");
    (void)self, (void)first;
    bool good = learn_result_has(result, "shards", SHOAL_INT64, 2, each) &&
                learn_result_has(result, "sha256", SHOAL_UINT8, 2, hash) &&
                learn_result_has(result, "beside", SHOAL_UINT8, 2, hash) &&
                learn_result_has(result, "inputs", SHOAL_UINT8, 2, hash) &&
                learn_result_has(result, "skipped", SHOAL_INT64, 1, skipped) &&
                learn_result_has(result, "why", SHOAL_UINT8, 2, why) && rows->shape[0] == texts->shape[0];
    for (int64_t i = 0; good && i < texts->shape[0]; i++)
        good = ((const unsigned char *)texts->values)[(i + 1) * PACK_WHY_BYTES - 1] == '\0';
    return good ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "the result is not one of packing these images");
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

/* A gradient with an edge and noise, as JPEG with colour for every four pixels, decoded and scaled: what decoders do
 * differently (transforms, upsampling, rounding) shows in it. */
int pack_decoder_hash(unsigned char out[BASE_HASH_SIZE])
{
    enum { SIDE = 48 };
    unsigned char pixels[SIDE * SIDE * 3];
    data_image_recipe coarse = {.height = SIDE, .width = SIDE, .quality = 60, .chroma = DATA_IMAGE_420},
                      raw = {.height = 20, .width = 20, .encode = DATA_IMAGE_RAW, .quality = 60};
    data_jpeg_writer *writer = NULL;
    data_image_maker *maker = NULL;
    const unsigned char *bytes = NULL;
    size_t size = 0;
    base_hash hash = {0};
    data_image_item item;
    uint32_t noise = 1;
    for (int i = 0; i < SIDE * SIDE; i++) {
        noise = noise * 1664525 + 1013904223;
        pixels[3 * i] = (unsigned char)(i % SIDE * 5);
        pixels[3 * i + 1] = (unsigned char)(i / SIDE > i % SIDE ? 220 : 30);
        pixels[3 * i + 2] = (unsigned char)(noise >> 24);
    }
    int status = data_jpeg_writer_new(&writer);
    if (status == SHOAL_OK)
        status = data_jpeg_encode(&bytes, &size, writer, &coarse, pixels, "a pattern");
    if (status == SHOAL_OK)
        base_hash_add(&hash, bytes, size);
    if (status == SHOAL_OK)
        status = data_image_maker_new(&maker);
    if (status == SHOAL_OK)
        status = data_image_prepare(&item, maker, &raw, bytes, size, "a pattern");
    if (status == SHOAL_OK)
        base_hash_add(&hash, item.bytes, item.size);
    base_hash_end(&hash, out);
    data_image_maker_free(&maker);
    data_jpeg_writer_free(&writer);
    return status;
}

static void forget_pack(void **prepared)
{
    pack_ready *ready = *prepared;
    if (ready)
        json_decref(ready->old);
    base_free(prepared);
}

/* The manifest of a run that was done.  One that lists no shards is somebody else's. */
static int find_old(json_t **out, const pack_model *model, const shoal_blobs *to)
{
    int64_t size = 0;
    int status = pack_manifest_get(out, to);
    if (status < 0 || model->replace || json_is_array(json_object_get(*out, "shards")))
        return status;
    status = to->has(to, "manifest.json", &size);
    return status == SHOAL_ABSENT ? SHOAL_OK : status < 0 ? status : pack_fail_packed("");
}

static int prepare_pack(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    const pack_model *model = round->model;
    unsigned char decoder[BASE_HASH_SIZE];
    pack_ready *ready = NULL;
    json_t *old = NULL;
    forget_pack(prepared);
    if (!crew->from || !crew->to)
        return shoal_fail(SHOAL_USAGE, "packing images needs to know where they are, and where shards go");
    int status = pack_decoder_hash(decoder);
    if (status == SHOAL_OK && memcmp(decoder, model->decoder, sizeof decoder) != 0)
        status = shoal_fail(SHOAL_INVALID, "the JPEG library of this machine gives other pixels than that of the "
                                           "machine where the run began; install the same version");
    if (status == SHOAL_OK && model->resume)
        status = find_old(&old, model, crew->to);
    if (status == SHOAL_OK)
        status = base_alloc(&ready, 1, sizeof *ready, "packing images");
    if (status == SHOAL_OK)
        *ready = (pack_ready){.from = crew->from, .to = crew->to, .shape = shape, .old = old};
    else
        json_decref(old);
    *prepared = ready;
    return status;
}

static size_t scratch_pack(const shoal_round *round, const void *prepared, const shoal_shape *shape)
{
    (void)round, (void)prepared, (void)shape;
    return 0;
}

int pack_add_broken(shoal_partial *partial, int64_t row, const char *name, const char *why)
{
    char text[PACK_WHY_BYTES] = "";
    int length = snprintf(text, sizeof text / 2, "%s", name);
    length = length < (int)sizeof text / 2 ? length : (int)sizeof text / 2 - 1;
    snprintf(text + length + 1, sizeof text - (size_t)length - 2, "%s", why);
    return shoal_partial_record(partial, PACK_CELL_BROKEN, (shoal_key){(uint64_t)row, 0}, text);
}

static int map_pack(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
                    const shoal_scratch *scratch)
{
    const pack_model *model = round->model;
    bool there = false;
    int status = model->resume ? pack_part_take(&there, partial, model, prepared, grain) : SHOAL_OK;
    return status < 0 || there ? status : pack_make_shard(partial, model, prepared, grain, scratch->spare);
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static int fail_broken(const shoal_partial *merged, int64_t count, bool parts)
{
    char text[PACK_WHY_BYTES + 1] = ""; /* what was forged may lack its ends */
    memcpy(text, shoal_partial_record_at(merged, PACK_CELL_BROKEN, 0, NULL), PACK_WHY_BYTES - 1);
    const char *why = text + strlen(text) + 1;
    return shoal_fail(SHOAL_INVALID, "%.256s: %s%s; --skip-broken leaves such images out%s", text, why,
                      count > 1 ? " (and other images are broken, too)" : "",
                      parts ? ", and --resume keeps what is done" : "");
}

static bool is_shard(const pack_shard *shard, const shoal_key *key, int64_t index, const shoal_shape *shape)
{
    const int64_t rest = shape->rows - index * shape->rows_per_grain;
    const int64_t items = rest < shape->rows_per_grain ? rest : shape->rows_per_grain;
    return key->high == (uint64_t)index && key->low == 0 && shard->items == items && shard->written >= 0 &&
           shard->written <= items && shard->bytes >= 0 && shard->beside_bytes >= 0;
}

static int take_shards(shoal_result *result, const shoal_partial *merged, const shoal_shape *shape)
{
    const int64_t table[] = {shape->grains, PACK_NUMBERS}, hashes[] = {shape->grains, BASE_HASH_SIZE};
    int64_t *each = shoal_result_add(result, "shards", SHOAL_INT64, 2, table), written = 0, bytes = 0;
    unsigned char *hash = each ? shoal_result_add(result, "sha256", SHOAL_UINT8, 2, hashes) : NULL;
    unsigned char *beside = hash ? shoal_result_add(result, "beside", SHOAL_UINT8, 2, hashes) : NULL;
    unsigned char *inputs = beside ? shoal_result_add(result, "inputs", SHOAL_UINT8, 2, hashes) : NULL;
    if (!inputs)
        return SHOAL_MEMORY;
    for (int64_t i = 0; i < shape->grains; i++) {
        pack_shard shard;
        shoal_key key;
        memcpy(&shard, shoal_partial_record_at(merged, PACK_CELL_SHARDS, i, &key), sizeof shard);
        if (!is_shard(&shard, &key, i, shape))
            return shoal_fail(SHOAL_BROKEN, "no images make these shards");
        memcpy(each + PACK_NUMBERS * i,
               (const int64_t[PACK_NUMBERS]){shard.items, shard.written, shard.bytes, shard.beside_bytes},
               PACK_NUMBERS * sizeof *each);
        memcpy(hash + i * BASE_HASH_SIZE, shard.sha256, BASE_HASH_SIZE);
        memcpy(beside + i * BASE_HASH_SIZE, shard.beside, BASE_HASH_SIZE);
        memcpy(inputs + i * BASE_HASH_SIZE, shard.inputs, BASE_HASH_SIZE);
        written += shard.written;
        bytes = base_add_wrapping(bytes, shard.bytes);
    }
    shoal_result_set_whole(result, "images", shape->rows);
    shoal_result_set_whole(result, "written", written);
    shoal_result_set_whole(result, "skipped_images", shape->rows - written);
    shoal_result_set_whole(result, "shards_count", shape->grains);
    shoal_result_set_whole(result, "bytes", bytes);
    return SHOAL_OK;
}

static int take_broken(shoal_result *result, const shoal_partial *merged, int64_t count, const shoal_shape *shape)
{
    const int64_t texts[] = {count, PACK_WHY_BYTES};
    int64_t *rows = shoal_result_add(result, "skipped", SHOAL_INT64, 1, &count);
    char *why = rows ? shoal_result_add(result, "why", SHOAL_UINT8, 2, texts) : NULL;
    if (!why)
        return SHOAL_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        shoal_key key;
        memcpy(why + i * PACK_WHY_BYTES, shoal_partial_record_at(merged, PACK_CELL_BROKEN, i, &key), PACK_WHY_BYTES);
        why[(i + 1) * PACK_WHY_BYTES - 1] = '\0';
        if (key.high >= (uint64_t)shape->rows)
            return shoal_fail(SHOAL_BROKEN, "an image that is not there was skipped");
        rows[i] = (int64_t)key.high;
    }
    return SHOAL_OK;
}

static int update_pack(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                       const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const pack_model *model = round->model;
    const int64_t broken = shoal_partial_records(merged, PACK_CELL_BROKEN);
    shoal_result *made = NULL;
    (void)next, (void)crew, (void)stop;
    if (broken > 0 && !model->skip_broken)
        return fail_broken(merged, broken, model->parts);
    if (shoal_partial_records(merged, PACK_CELL_SHARDS) != shape->grains)
        return shoal_fail(SHOAL_BROKEN, "some shards are missing");
    int status = shoal_result_new(&made);
    if (status == SHOAL_OK)
        status = take_shards(made, merged, shape);
    if (status == SHOAL_OK)
        status = take_broken(made, merged, broken, shape);
    if (status < 0)
        shoal_result_free(&made);
    *result = made;
    return status;
}

/* What an image costs is not known before: it depends on its size. */
static int cost_pack(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)out, (void)config, (void)shape;
    return SHOAL_OK;
}

const shoal_algorithm pack_algorithm = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "pack",
    .summary = "pack images into shards",
    .options = options,
    .config_size = sizeof(pack_config),
    .kernel_free = true,
    .start = start_pack,
    .check = check_pack,
    .check_result = check_result_pack,
    .rows_per_grain = rows_per_grain_pack,
    .prepare = prepare_pack,
    .forget = forget_pack,
    .scratch_bytes = scratch_pack,
    .map = map_pack,
    .update = update_pack,
    .cost = cost_pack,
};
