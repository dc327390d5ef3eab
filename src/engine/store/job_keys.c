/* The names of a job's blobs and queues.  See job_keys.h.
 *
 * Reading is as strict as writing: of all ways to write a number only the one used here is accepted, so that a key that
 * someone else put there is never taken for ours. */
#include "engine/store/job_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

enum { ROUND_DIGITS = 8, INDEX_DIGITS = 6, RANGE_DIGITS = 4, LEVEL_DIGITS = 2, WORKER_DIGITS = 16 };

static job_key key_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

static job_key key_of(const char *format, ...)
{
    job_key key;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(key.text, sizeof key.text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof key.text)
        SHOAL_BUG("a key of %d bytes: the job's name was not checked", length);
    return key;
}

job_key job_key_of(const char *id, const char *name)
{
    return key_of("jobs/%s/%s", id, name);
}

job_key job_key_open(const char *id)
{
    return key_of("open/%s", id);
}

job_key job_key_gone(const char *id)
{
    return key_of("gone/%s", id);
}

job_key job_key_data(const char *id, int64_t slice)
{
    return key_of("jobs/%s/data/%0*lld", id, INDEX_DIGITS, (long long)slice);
}

job_key job_key_weights(const char *id, int64_t slice)
{
    return key_of("jobs/%s/weights/%0*lld", id, INDEX_DIGITS, (long long)slice);
}

job_key job_key_round(const char *id, int64_t round)
{
    return key_of("jobs/%s/round/%0*lld/", id, ROUND_DIGITS, (long long)round);
}

job_key job_key_model(const char *id, int64_t round)
{
    return key_of("jobs/%s/round/%0*lld/model", id, ROUND_DIGITS, (long long)round);
}

job_key job_key_kept(const char *id, int64_t round)
{
    return key_of("jobs/%s/round/%0*lld/kept", id, ROUND_DIGITS, (long long)round);
}

/* The prefix of the pieces of a level whose parent has this index in the level above. */
static job_key key_of_group(const char *id, int64_t round, int level, int64_t parent)
{
    return key_of("jobs/%s/round/%0*lld/%0*d/%0*lld/", id, ROUND_DIGITS, (long long)round, LEVEL_DIGITS, level,
                  INDEX_DIGITS, (long long)parent);
}

/* The top has no parent; its key is as if there were one more level. */
static int64_t parent_node(const job_tree *tree, int level, int64_t node)
{
    bool top = tree->ranges > 1 && level + 2 == tree->levels; /* of a range */
    return level + 1 < tree->levels && !top ? node / tree->fan[level] : 0;
}

/* A slice's ranges lie in one blob. */
static bool has_range(const job_tree *tree, int level)
{
    return tree->ranges > 1 && level > 0 && level + 1 < tree->levels;
}

job_key job_key_piece(const char *id, int64_t round, const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    int64_t node = job_tree_node(tree, piece);
    job_key group = key_of_group(id, round, level, parent_node(tree, level, node));
    if (!has_range(tree, level))
        return key_of("%s%0*lld", group.text, INDEX_DIGITS, (long long)node);
    return key_of("%s%0*lld/%0*lld", group.text, INDEX_DIGITS, (long long)node, RANGE_DIGITS,
                  (long long)job_tree_range(tree, piece));
}

job_key job_key_children(const char *id, int64_t round, const job_tree *tree, int64_t piece)
{
    int level = job_tree_level(tree, piece);
    if (level == 0)
        SHOAL_BUG("slice %lld has no children", (long long)piece);
    return key_of_group(id, round, level - 1, job_tree_node(tree, piece));
}

job_key job_key_worker(const char *id, uint64_t worker)
{
    return key_of("jobs/%s/worker/%016llx", id, (unsigned long long)worker);
}

job_key job_key_left(const char *id, uint64_t worker)
{
    return key_of("jobs/%s/left/%016llx", id, (unsigned long long)worker);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool take_text(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* A number as key_of pads it: exactly `width` digits, or more without a leading zero. */
static bool take_number(const char **at, int64_t *out, int width)
{
    size_t length = strspn(*at, "0123456789");
    int64_t value = 0;
    if (length < (size_t)width || (length > (size_t)width && **at == '0'))
        return false;
    for (size_t i = 0; i < length; i++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (*at)[i] - '0', &value))
            return false;
    *at += length;
    *out = value;
    return true;
}

static bool take_piece(const char **at, int64_t *piece, const job_tree *tree)
{
    int64_t level, parent, node, range = -1;
    if (!take_number(at, &level, LEVEL_DIGITS) || !take_text(at, "/") || !take_number(at, &parent, INDEX_DIGITS) ||
        !take_text(at, "/") || !take_number(at, &node, INDEX_DIGITS) ||
        (take_text(at, "/") && !take_number(at, &range, RANGE_DIGITS)))
        return false;
    *piece = 0;
    if (!tree)
        return true;
    if (level >= tree->levels || node >= tree->nodes[level] || parent != parent_node(tree, (int)level, node) ||
        (range >= 0) != has_range(tree, (int)level) || range >= tree->ranges)
        return false;
    *piece = tree->first[level] + (range > 0 ? range * tree->nodes[level] : 0) + node;
    return true;
}

bool job_key_read_round(int64_t *round, int64_t *piece, const char *id, const job_tree *tree, const char *key)
{
    const char *at = key;
    int64_t number, found = JOB_KEY_MODEL;
    if (!take_text(&at, "jobs/") || !take_text(&at, id) || !take_text(&at, "/round/") ||
        !take_number(&at, &number, ROUND_DIGITS) || !take_text(&at, "/"))
        return false;
    if (take_text(&at, "kept"))
        found = JOB_KEY_KEPT;
    else if (!take_text(&at, "model") && !take_piece(&at, &found, tree))
        return false;
    if (*at != '\0')
        return false;
    *round = number;
    *piece = found;
    return true;
}

static bool is_id_character(char c, bool first)
{
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return plain || (!first && (c == '-' || c == '_'));
}

static size_t id_length(const char *text)
{
    size_t length = 0;
    while (is_id_character(text[length], length == 0))
        length++;
    return length;
}

bool job_key_read_worker(uint64_t *worker, const char *key)
{
    const char *at = key;
    if (!take_text(&at, "jobs/"))
        return false;
    size_t length = id_length(at);
    if (length == 0 || length >= SHOAL_JOB_ID_BYTES)
        return false;
    at += length;
    if ((!take_text(&at, "/worker/") && !take_text(&at, "/left/")) || !base_hex_is(at, WORKER_DIGITS))
        return false;
    *worker = strtoull(at, NULL, 16);
    return true;
}

int job_id_check(const char *id)
{
    size_t length = id_length(id);
    if (length == 0 || length >= SHOAL_JOB_ID_BYTES || id[length] != '\0')
        return shoal_fail(SHOAL_USAGE,
                          "'%.80s' can't be the name of a job: it has 1 to %d letters, digits, '-' and '_', and "
                          "starts with a letter or digit",
                          id, SHOAL_JOB_ID_BYTES - 1);
    return SHOAL_OK;
}
