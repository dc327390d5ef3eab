/* What people see of packing images: lines, and the manifest, the last blob that is put.  See learn/face.h.
 *
 * It has no verb of its own: `shoal data pack` lists the images and makes the rows that name them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/version.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "learn/pack/pack_internal.h"

static const learn_output outputs[] = {
    {"picture", 0, "FILE", "draw some of what was packed, up to 100 images of all classes: .png or .svg",
     .kind = LEARN_SHEET},
    {0},
};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void summarise_pack(learn_lines *lines, const learn_ended *ended)
{
    const shoal_result *result = ended->result;
    int64_t written = (int64_t)shoal_result_number(result, "written"),
            skipped = (int64_t)shoal_result_number(result, "skipped_images"),
            shards = (int64_t)shoal_result_number(result, "shards_count");
    double bytes = shoal_result_number(result, "bytes");
    learn_say(lines, "packed", "%" PRId64 " image%s into %" PRId64 " shard%s, %.1f %s", written, base_plural(written),
              shards, base_plural(shards), bytes < 1e6 ? bytes / 1e3 : bytes / 1e6, bytes < 1e6 ? "kB" : "MB");
    if (written > 0)
        learn_say_more(lines, ", %.0f bytes an image", bytes / (double)written);
    if (skipped > 0)
        learn_say(lines, "skipped", "%" PRId64 " image%s, which manifest.json lists", skipped, base_plural(skipped));
}

/* ---- the manifest ------------------------------------------------------------------------------------------------ */

static void put_hash(json_t **object, const char *name, const shoal_result *result, const char *tensor, int64_t index)
{
    const unsigned char *hash = shoal_result_tensor(result, tensor)->values;
    char hex[BASE_HASH_HEX];
    base_hex_write(hex, hash + index * BASE_HASH_SIZE, BASE_HASH_SIZE);
    base_json_put(object, name, json_string(hex));
}

/* The file beside a shard. */
static json_t *beside_json(const learn_ended *ended, const pack_naming *naming, int64_t index, const char *ending)
{
    const int64_t *each = (const int64_t *)shoal_result_tensor(ended->result, "shards")->values + PACK_NUMBERS * index;
    char *name = NULL;
    json_t *object = json_object();
    if (pack_shard_name(&name, naming, index, each[0], ending) == SHOAL_OK)
        base_json_put(&object, "name", base_json_text(name));
    base_json_put(&object, "bytes", json_integer(each[3]));
    put_hash(&object, "sha256", ended->result, "beside", index);
    base_free(&name);
    return object;
}

static json_t *shard_json(const learn_ended *ended, const pack_naming *naming, int64_t index, int64_t first)
{
    const int64_t *each = (const int64_t *)shoal_result_tensor(ended->result, "shards")->values + PACK_NUMBERS * index;
    const pack_config *config = ended->config;
    const char *beside = pack_beside(config->format, config->index, config->classes[0] != '\0');
    char *name = NULL;
    json_t *object = json_object();
    if (pack_shard_name(&name, naming, index, each[0], NULL) == SHOAL_OK) {
        base_json_put(&object, "name", base_json_text(name));
        base_json_put(&object, "bytes", json_integer(each[2]));
        put_hash(&object, "sha256", ended->result, "sha256", index);
        put_hash(&object, "inputs", ended->result, "inputs", index);
        if (beside)
            base_json_put(&object, "beside", beside_json(ended, naming, index, beside));
        base_json_put(&object, "first", json_integer(first));
        base_json_put(&object, "items", json_integer(each[0]));
        base_json_put(&object, "written", json_integer(each[1]));
    } else {
        json_decref(object);
        object = NULL;
    }
    base_free(&name);
    return object;
}

static json_t *shards_json(const learn_ended *ended, const pack_naming *naming)
{
    const shoal_tensor *each = shoal_result_tensor(ended->result, "shards");
    json_t *list = json_array();
    int64_t first = 0;
    for (int64_t i = 0; list && i < each->shape[0]; i++) {
        if (json_array_append_new(list, shard_json(ended, naming, i, first)) < 0) {
            json_decref(list);
            list = NULL;
        }
        first = base_add_wrapping(first, ((const int64_t *)each->values)[PACK_NUMBERS * i]);
    }
    return list;
}

static json_t *skipped_json(const shoal_result *result)
{
    const shoal_tensor *rows = shoal_result_tensor(result, "skipped"), *texts = shoal_result_tensor(result, "why");
    json_t *list = json_array();
    for (int64_t i = 0; list && i < rows->shape[0]; i++) {
        const char *name = (const char *)texts->values + i * PACK_WHY_BYTES;
        size_t length = strnlen(name, PACK_WHY_BYTES - 2);
        json_t *object = json_object();
        base_json_put(&object, "item", json_integer(((const int64_t *)rows->values)[i]));
        base_json_put(&object, "name", base_json_text(name));
        base_json_put(&object, "why", base_json_text(name + length + 1));
        if (json_array_append_new(list, object) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *classes_json(const char *names)
{
    json_t *list = json_array();
    for (const char *at = names; list && *at;) {
        size_t length = strcspn(at, "\n");
        char *name = NULL;
        int status = base_copy_text_n(&name, at, length);
        if (status < 0 || json_array_append_new(list, base_json_text(name)) < 0) {
            json_decref(list);
            list = NULL;
        }
        base_free(&name);
        at += length + (at[length] == '\n');
    }
    return list;
}

static json_t *manifest_json(const learn_ended *ended, const pack_naming *naming)
{
    static const char *const words[][3] = {{"tfrecord", "tar", "npy"}, {"jpeg", "raw"}, {"tf", "antialias"}};
    const pack_config *config = ended->config;
    char size[32] = "";
    int height, width;
    if (pack_read_size(&height, &width, config->size) == SHOAL_OK)
        snprintf(size, sizeof size, "%dx%d", height, width);
    json_t *object = json_object();
    base_json_put(&object, "made_by", json_pack("s+", "shoal ", shoal_version()));
    base_json_put(&object, "format", json_string(words[0][config->format]));
    base_json_put(&object, "size", json_string(size));
    base_json_put(&object, "resize", json_string(words[2][config->resize]));
    base_json_put(&object, "encode", json_string(words[1][config->encode]));
    if (config->encode == DATA_IMAGE_JPEG) {
        base_json_put(&object, "quality", json_integer(config->quality));
        base_json_put(&object, "chroma", json_string(config->chroma == DATA_IMAGE_444 ? "444" : "420"));
        base_json_put(&object, "huffman", json_string(config->huffman == DATA_IMAGE_FIXED ? "fixed" : "best"));
    }
    base_json_put(&object, "orient", json_boolean(config->orient));
    base_json_put(&object, "classes", classes_json(config->classes));
    base_json_put(&object, "images", json_integer((json_int_t)shoal_result_number(ended->result, "images")));
    base_json_put(&object, "written", json_integer((json_int_t)shoal_result_number(ended->result, "written")));
    base_json_put(&object, "shards", shards_json(ended, naming));
    base_json_put(&object, "skipped", skipped_json(ended->result));
    return object;
}

static int remove_parts(const shoal_blobs *to, const learn_ended *ended, const pack_naming *naming)
{
    const shoal_tensor *each = shoal_result_tensor(ended->result, "shards");
    int status = SHOAL_OK;
    for (int64_t i = 0; status == SHOAL_OK && i < each->shape[0]; i++) {
        char *name = NULL;
        status = pack_shard_name(&name, naming, i, ((const int64_t *)each->values)[PACK_NUMBERS * i], ".part");
        if (status == SHOAL_OK)
            status = to->remove(to, name);
        base_free(&name);
    }
    return status;
}

/* Another run was done meanwhile, in a place that only one may write to: what this one has made goes. */
static int give_way(const shoal_blobs *to, const learn_ended *ended, const pack_naming *naming, const json_t *mine,
                    const json_t *theirs)
{
    const pack_config *config = ended->config;
    int status = pack_remove_replaced(to, mine, theirs);
    if (status == SHOAL_OK && config->parts)
        status = remove_parts(to, ended, naming);
    return status < 0 ? status : pack_fail_packed(" of another run, which was done meanwhile");
}

static int end_pack(const shoal_blobs *to, const learn_ended *ended)
{
    const pack_config *config = ended->config;
    const pack_naming naming = {config->name, config->format, pack_digits(config->shards)};
    json_t *manifest = manifest_json(ended, &naming), *old = NULL;
    char *text = manifest ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
    int status = text ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory for the manifest");
    if (status == SHOAL_OK)
        status = pack_manifest_get(&old, to);
    if (status == SHOAL_OK && old && !config->replace && !config->resume && !json_equal(old, manifest))
        status = give_way(to, ended, &naming, manifest, old);
    if (status == SHOAL_OK)
        status = to->put(to, "manifest.json", text, strlen(text));
    if (status == SHOAL_OK && old)
        status = pack_remove_replaced(to, old, manifest);
    if (status == SHOAL_OK && config->parts)
        status = remove_parts(to, ended, &naming);
    free(text);
    json_decref(old);
    json_decref(manifest);
    return status;
}

static int name_of_row(char **name, const void *row, const learn_rows *rows)
{
    pack_item item;
    if (!pack_row_read(&item, row, rows->columns))
        return shoal_fail(SHOAL_INVALID, "a row does not name an image");
    *name = NULL;
    return pack_row_why(item.size) ? SHOAL_OK : base_copy_text(name, item.name);
}

const learn_face learn_pack = {
    .algorithm = &pack_algorithm,
    .options_title = "Images and shards",
    .outputs = outputs,
    .summarise = summarise_pack,
    .blob_of = name_of_row,
    .end_blobs = end_pack,
    .begin_blobs = pack_begin,
    .show = pack_show,
};
