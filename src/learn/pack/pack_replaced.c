/* What is left of images that were packed to the same place before: shards that the new manifest does not list are
 * removed once it is there, and those of a run that was killed before the new one begins, so that whoever reads all
 * shards of a folder reads no image twice.  See pack_internal.h.
 *
 * The old manifest may come from anywhere: nothing is removed that could not be a shard or a file beside one. */
#include "learn/pack/pack_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

enum { MANIFEST_BYTES_MOST = 512 << 20 };

int pack_manifest_get(json_t **out, const shoal_blobs *to)
{
    void *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    int status = to->get(to, "manifest.json", MANIFEST_BYTES_MOST, &bytes, &size);
    if (status == SHOAL_OK)
        *out = json_loadb(bytes, size, 0, NULL); /* one of somebody else lists no shards */
    to->release(to, &bytes);
    return status == SHOAL_ABSENT ? SHOAL_OK : status;
}

/* Where the ending of a shard's name begins; NULL for what is no shard's name. */
static const char *find_ending(const char *name)
{
    const char *dot = name && !strchr(name, '/') ? strrchr(name, '.') : NULL;
    if (!dot || dot == name)
        return NULL;
    return strcmp(dot, ".tfrec") == 0 || strcmp(dot, ".tar") == 0 || strcmp(dot, ".npy") == 0 ? dot : NULL;
}

/* The names of all files that belong to shards, as the keys of an object: of those beside them the ones that the
 * manifest lists, or with `any` all that there may be. */
static json_t *names_of(const json_t *manifest, bool any)
{
    json_t *names = json_object();
    const json_t *shard;
    size_t i;
    json_array_foreach(json_object_get(manifest, "shards"), i, shard)
    {
        const char *name = json_string_value(json_object_get(shard, "name")), *ending = find_ending(name);
        const char *listed = json_string_value(json_object_get(json_object_get(shard, "beside"), "name"));
        static const char *const more[] = {".idx", ".classes.npy"};
        if (!ending)
            continue;
        base_json_put(&names, name, json_true());
        for (int j = 0; j < 2; j++) {
            char *beside = NULL;
            if (base_format(&beside, "%.*s%s", (int)(ending - name), name, more[j]) == SHOAL_OK &&
                (any || (listed && strcmp(listed, beside) == 0)))
                base_json_put(&names, beside, json_true());
            base_free(&beside);
        }
    }
    return names;
}

int pack_remove_replaced(const shoal_blobs *to, const json_t *old, const json_t *new)
{
    json_t *before = names_of(old, true), *now = names_of(new, false), *value;
    const char *name;
    int status =
        before && now ? SHOAL_OK : shoal_fail(SHOAL_MEMORY, "out of memory for the names of shards to be removed");
    json_object_foreach(before, name, value)
    {
        if (status == SHOAL_OK && !json_object_get(now, name))
            status = to->remove(to, name);
    }
    json_decref(before);
    json_decref(now);
    return status;
}

/* ---- of a run that was killed ------------------------------------------------------------------------------------ */

static const char *const endings[] = {".tfrec", ".tar", ".npy", ".idx", ".classes.npy"};
enum { ENDINGS = sizeof endings / sizeof endings[0] };

/* Which files the run that begins will replace, or remove. */
typedef struct beginning {
    const pack_config *config;
    pack_naming naming;
    int64_t rows, grains, each; /* each: images of a shard, but the last */
} beginning;

static beginning beginning_of(const learn_ended *begun)
{
    const pack_config *config = begun->config;
    const int64_t rows = begun->rows.rows, each = (rows + config->shards - 1) / config->shards;
    return (beginning){.config = config,
                       .naming = {config->name, config->format, pack_digits(config->shards)},
                       .rows = rows,
                       .grains = (rows + each - 1) / each,
                       .each = each};
}

/* Whether it makes a shard of that name, without its ending. */
static int is_ours(bool *out, const beginning *of, const char *stem)
{
    const size_t length = strlen(of->naming.name);
    const int64_t index = strncmp(stem, of->naming.name, length) == 0 ? strtoll(stem + length, NULL, 10) : -1;
    char *name = NULL;
    *out = false;
    if (index < 0 || index >= of->grains)
        return SHOAL_OK;
    const int64_t rest = of->rows - index * of->each;
    int status = pack_shard_name(&name, &of->naming, index, rest < of->each ? rest : of->each, "");
    *out = status == SHOAL_OK && strcmp(name, stem) == 0;
    base_free(&name);
    return status;
}

static bool will_replace(const beginning *of, const char *ending)
{
    static const char *const shards[] = {[PACK_TFRECORD] = ".tfrec", [PACK_TAR] = ".tar", [PACK_NPY] = ".npy"};
    return strcmp(ending, shards[of->config->format]) == 0 || (of->config->index && strcmp(ending, ".idx") == 0) ||
           (of->config->format == PACK_NPY && of->config->classes[0] && strcmp(ending, ".classes.npy") == 0);
}

static int fail_unfinished(const char *name)
{
    return shoal_fail(SHOAL_USAGE,
                      "OUT holds shards of another run, which was not finished (%s); choose another place, or replace "
                      "them with --force",
                      name);
}

/* One shard of a run that was not finished: `part` is the file beside it, which says nothing when it is alone. */
static int clear_part(const shoal_blobs *to, const json_t *names, const beginning *of, const char *part)
{
    char *stem = NULL;
    bool ours = false, left = false;
    int status = base_copy_text_n(&stem, part, strlen(part) - strlen(".part"));
    if (status == SHOAL_OK)
        status = is_ours(&ours, of, stem);
    for (int i = 0; i < ENDINGS && status == SHOAL_OK; i++) {
        char *name = NULL;
        status = base_format(&name, "%s%s", stem, endings[i]);
        if (status == SHOAL_OK && json_object_get(names, name) && !(ours && will_replace(of, endings[i]))) {
            status = of->config->replace ? to->remove(to, name) : fail_unfinished(name);
            left = true;
        }
        base_free(&name);
    }
    if (status == SHOAL_OK && left && !ours)
        status = to->remove(to, part);
    base_free(&stem);
    return status;
}

/* What a process was writing when it was killed (base/file.h): "flowers00-230.tfrec.tmp-77-...". */
static int clear_temporary(const shoal_blobs *to, const beginning *of, const char *name, const char *temporary)
{
    char *stem = NULL;
    bool ours = false;
    int status = base_copy_text_n(&stem, name, (size_t)(temporary - name));
    for (int i = 0; i <= ENDINGS && status == SHOAL_OK && !ours; i++) {
        const char *ending = i < ENDINGS ? endings[i] : ".part";
        if (!base_text_ends(stem, ending))
            continue;
        stem[strlen(stem) - strlen(ending)] = '\0';
        status = is_ours(&ours, of, stem);
    }
    if (status == SHOAL_OK && ours)
        status = to->remove(to, name);
    base_free(&stem);
    return status;
}

int pack_begin(const shoal_blobs *to, const json_t *names, const learn_ended *begun)
{
    const beginning of = beginning_of(begun);
    const char *name;
    json_t *value;
    int status = SHOAL_OK;
    if (json_object_get(names, "manifest.json") && !of.config->replace && !of.config->resume)
        return pack_fail_packed("");
    json_object_foreach((json_t *)(uintptr_t)names, name, value) /* which changes nothing */
    {
        const char *temporary = strstr(name, ".tmp-");
        if (strchr(name, '/')) /* of a place below this one */
            continue;
        if (status == SHOAL_OK && temporary)
            status = clear_temporary(to, &of, name, temporary);
        else if (status == SHOAL_OK && base_text_ends(name, ".part"))
            status = clear_part(to, names, &of, name);
    }
    return status;
}
