/* Every number of every learner's rounds and partials, one by one, replaced by those that ask whether anybody looked.
 * See forged.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "forged.h"

/* Values for one word: small ones, its neighbours, powers of two and what lies below them, what is not a number. */
static const forgery lies[] = {
    {.which = 0, .number = 0},  {.which = 0, .number = 1},  {.which = 0, .number = 2},  {.which = 0, .number = 9},
    {.which = 0, .number = 97}, {.which = 1, .number = 1},  {.which = 1, .number = 2},  {.which = 2, .number = 1},
    {.which = 3, .number = 1},  {.which = 2, .number = 64}, {.which = 4, .number = 31}, {.which = 4, .number = 40},
    {.which = 4, .number = 62}, {.which = 4, .number = 63}, {.which = 5, .number = 31}, {.which = 5, .number = 63},
    {.which = 6, .number = 0},  {.which = 6, .number = 1},  {.which = 6, .number = 2},  {.which = 6, .number = 3},
    {.which = 6, .number = 6},
};
enum { LIES = sizeof lies / sizeof *lies };

static shoal_round *read_round(const moment *of)
{
    shoal_round *round = NULL;
    base_reader in = base_reader_of(of->round, of->round_bytes);
    must(learn_round_read(&round, &in));
    return round;
}

/* The first round of a phase stands for the others. */
static bool is_first_of_phase(const run *of, int index)
{
    if (index == 0)
        return true;
    shoal_round *round = read_round(&of->moment[index]), *before = read_round(&of->moment[index - 1]);
    bool first = strcmp(round->phase, before->phase) != 0 || round->model_bytes != before->model_bytes ||
                 !learn_layout_equal(&round->layout, &before->layout);
    shoal_round_free(&before);
    shoal_round_free(&round);
    return first;
}

/* How many words from the end the head of a model begins, and all that travels before it: those are all tried.  Of
 * arrays, and of partials, every fifth number is enough. */
static uint16_t words_behind_head(const moment *of)
{
    enum { HEAD_WORDS = 64 };
    shoal_round *round = read_round(of);
    size_t words = round->model_bytes / 8;
    shoal_round_free(&round);
    return (uint16_t)(words > HEAD_WORDS ? words - HEAD_WORDS : 0);
}

/* Which lies make a number of a word that no other has made, nor what it was. */
static void choose_lies(bool tell[LIES], const moment *at, bool partial, uint16_t where)
{
    const size_t size = partial ? at->partial_bytes : at->round_bytes;
    uint64_t was = 0, made[LIES];
    if (size >= sizeof was)
        memcpy(&was, (const char *)(partial ? at->partial : at->round) + forged_place(size, where), sizeof was);
    for (int lie = 0; lie < LIES; lie++) {
        made[lie] = forged_word(was, lies[lie].which, lies[lie].number);
        tell[lie] = made[lie] != was;
        for (int before = 0; before < lie; before++)
            tell[lie] = tell[lie] && made[before] != made[lie];
    }
}

/* One word in so many is tried: of heads, and of all the rest.  The release build, which is quick, tries every number
 * of a head; sanitizers, under which it took a minute of a core, see a part of the same. */
#ifdef UNDER_ADDRESS_SANITIZER
enum { HEAD_STEP = 4, STEP = 20 };
#else
enum { HEAD_STEP = 1, STEP = 5 };
#endif

static void try_words(run *of, int index, bool partial, int64_t *passed, int64_t *refused)
{
    const moment *at = &of->moment[index];
    size_t words = ((partial ? at->partial_bytes : at->round_bytes) + 7) / 8;
    uint16_t all = partial ? UINT16_MAX : words_behind_head(at);
    for (uint16_t where = 0; where < words; where++) {
        bool tell[LIES];
        const int step = where < all ? STEP : HEAD_STEP;
        if (where % step != index % step)
            continue;
        choose_lies(tell, at, partial, where);
        for (int lie = 0; lie < LIES; lie++) {
            forgery change = lies[lie];
            change.where = where;
            change.partial = partial;
            if (!tell[lie])
                continue;
            bool good = try_forged(of, index, &change, 1, lie % 2 == 0);
            *passed += good;
            *refused += !good;
        }
    }
}

static void test_no_number_does_harm(void **state)
{
    int64_t passed = 0, refused = 0;
    (void)state;
    make_runs();
    for (int r = 0; r < runs_made; r++)
        for (int m = 0; m < runs[r].moments; m++)
            if (is_first_of_phase(&runs[r], m)) {
                try_words(&runs[r], m, false, &passed, &refused);
                try_words(&runs[r], m, true, &passed, &refused);
            }
    forget_runs();
    print_message("%lld forgeries passed the check, %lld were refused\n", (long long)passed, (long long)refused);
    assert_true(passed > 10000 && refused > 10000); /* neither a check that refuses all nor one that refuses nothing */
}

/* How long the block with the weights of an epoch is follows from its number: another one that passed would have a
 * later round read beyond its end. */
static void test_a_net_keeps_weights_of_an_epoch_that_ended(void **state)
{
    int64_t tried = 0;
    (void)state;
    make_runs();
    for (int r = 0; r < runs_made; r++)
        for (int m = 0; m < runs[r].moments && runs[r].algorithm == &train_algorithm; m++)
            for (int lie = 0; lie < 10; lie++) {
                shoal_round *round = read_round(&runs[r].moment[m]);
                train_model *model = round->model;
                const int by = lie % 5 - 2;
                *(lie < 5 ? &model->kept_epoch : &model->best_epoch) += by;
                const int status = learn_round_check(&train_algorithm, round, &runs[r].shape);
                assert_int_equal(status, by == 0 ? SHOAL_OK : SHOAL_BROKEN);
                shoal_round_free(&round);
                tried++;
            }
    forget_runs();
    assert_true(tried > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_number_does_harm),
                                       cmocka_unit_test(test_a_net_keeps_weights_of_an_epoch_that_ended)};
    return cmocka_run_group_tests_name("forged", tests, NULL, NULL);
}
