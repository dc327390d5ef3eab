/* Looking at what came from elsewhere.  See check.h. */
#include "learn/check.h"

#include "learn/partial.h"
#include "learn/pick.h"

int learn_algorithm_check(const shoal_algorithm *algorithm)
{
    if (algorithm->version != SHOAL_ALGORITHM_VERSION || algorithm->bytes != sizeof *algorithm)
        return shoal_fail(SHOAL_INVALID,
                          "a learner's table says that it has version %u of shoal_algorithm and %u bytes; this library "
                          "has version %d and %zu bytes: compile it again with this shoal/learn.h, and set both",
                          algorithm->version, algorithm->bytes, SHOAL_ALGORITHM_VERSION, sizeof *algorithm);
    if (!algorithm->name || !algorithm->start || !algorithm->check || !algorithm->map || !algorithm->update)
        return shoal_fail(SHOAL_INVALID, "the learner '%s' lacks one of name, start, check, map and update",
                          algorithm->name ? algorithm->name : "");
    if (!algorithm->attach != !algorithm->map_many || !algorithm->detach != !algorithm->map_many ||
        (algorithm->leap && !algorithm->attach))
        return shoal_fail(SHOAL_INVALID, "the learner '%s' has some of attach, detach and map_many, and lacks others",
                          algorithm->name);
    return SHOAL_OK;
}

int learn_round_check(const shoal_algorithm *algorithm, const shoal_round *round, const shoal_shape *shape)
{
    int status = learn_pick_check(round, shape);
    return status == SHOAL_OK ? algorithm->check(algorithm, round, shape) : status;
}

int learn_result_check(const shoal_algorithm *algorithm, const shoal_result *result, const shoal_round *first,
                       const shoal_shape *shape)
{
    return algorithm->check_result ? algorithm->check_result(algorithm, result, first, shape) : SHOAL_OK;
}

bool shoal_layout_same(const shoal_layout *layout, const shoal_layout *expected)
{
    return learn_layout_equal(layout, expected) && layout->memo_row_bytes == expected->memo_row_bytes &&
           layout->carry_from == expected->carry_from && layout->writes_memo == expected->writes_memo &&
           layout->part == expected->part && layout->pick.key == expected->pick.key &&
           layout->pick.from == expected->pick.from && layout->pick.count == expected->pick.count &&
           layout->pick.group == expected->pick.group;
}

bool learn_result_has(const shoal_result *result, const char *name, shoal_type type, int rank, const int64_t *shape)
{
    const shoal_tensor *tensor = shoal_result_tensor(result, name);
    if (!tensor || tensor->type != type || tensor->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (shape[i] >= 0 && tensor->shape[i] != shape[i])
            return false;
    return true;
}
