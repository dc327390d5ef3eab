/* src/learn/exact.c: sums of doubles are exact, whatever is added, in any order and any partition, and rounded once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "learn/exact.h"

enum { VALUES_MOST = 16 };

/* The sums are those of Python's fractions, rounded by float(). */
static const struct {
    double sum;
    int count;
    double value[VALUES_MOST];
} known[] = {
    {0x1.0000000000000p+0, 3, {0x1.7e43c8800759cp+996, 0x1.0000000000000p+0, -0x1.7e43c8800759cp+996}},
    {0x1.0000000000000p+0, 2, {0x1.0000000000000p+0, 0x1.0000000000000p-53}},
    {0x1.0000000000001p+0, 3, {0x1.0000000000000p+0, 0x1.0000000000000p-53, 0x0.0000000000001p-1022}},
    {0x1.0000000000002p+0, 2, {0x1.0000000000001p+0, 0x1.0000000000000p-53}},
    {0x1.0000000000001p+0, 3, {0x1.0000000000001p+0, 0x1.0000000000000p-53, -0x0.0000000000001p-1022}},
    {-0x1.0000000000000p+0, 2, {-0x1.0000000000000p+0, -0x1.0000000000000p-53}},
    {0x1.fffffffffffffp+1023, 2, {0x1.fffffffffffffp+1023, 0x1.0000000000000p+969}},
    {INFINITY, 2, {0x1.fffffffffffffp+1023, 0x1.0000000000000p+970}},
    {-INFINITY, 2, {-0x1.fffffffffffffp+1023, -0x1.fffffffffffffp+1023}},
    {0x0.0000000000003p-1022, 3, {0x0.0000000000001p-1022, 0x0.0000000000001p-1022, 0x0.0000000000001p-1022}},
    {0x0.fffffffffffffp-1022, 2, {0x1.0000000000000p-1022, -0x0.0000000000001p-1022}},
    {0x1.0000000000000p-54,
     8,
     {0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4, 0x1.999999999999ap-4,
      0x1.999999999999ap-4, -0x1.3333333333333p-2, -0x1.3333333333333p-2}},
    {0x1.0000000000000p+128, 2, {0x1.0000000000000p+127, 0x1.0000000000000p+127}},
    {0x0.0p+0, 2, {0x1.0000000000000p-160, -0x1.0000000000000p-160}},
    {0x0.0p+0, 1, {-0x0.0p+0}},
    {0x1.0000000000000p+0,
     4,
     {0x1.1c37937e08000p+53, 0x1.0000000000000p+0, -0x1.1c37937e08000p+53, 0x1.0000000000000p-160}},
    {0x0.0000000000001p-1022,
     5,
     {0x1.1ccf385ebc8a0p+1023, 0x1.1ccf385ebc8a0p+1023, -0x1.1ccf385ebc8a0p+1023, -0x1.1ccf385ebc8a0p+1023,
      0x0.0000000000001p-1022}},
    {0x1.0000000000001p+53, 3, {0x1.0000000000000p+53, 0x1.0000000000000p+0, 0x1.0000000000000p+0}},
    {0x1.0000000000000p+53, 2, {0x1.0000000000000p+53, 0x1.0000000000000p+0}},
    {0x1.0000000000002p+53, 2, {0x1.0000000000001p+53, 0x1.0000000000000p+0}},
    {-0x1.d4330f1446beap+375,
     6,
     {0x1.4d8399f767c45p+23, 0x1.8fbbcbde5c099p+445, -0x1.11fdecb91ce37p-243, -0x1.4d8399f767c45p+23,
      -0x1.d4330f1446beap+375, -0x1.8fbbcbde5c099p+445}},
    {-0x1.10dff076ce2efp+371,
     6,
     {-0x1.b8c9ebd69fe29p-401, -0x1.0b125ec1d7da0p-900, -0x1.10dff076ce2efp+371, 0x1.b8c9ebd69fe29p-401,
      -0x1.5387777330bdbp+107, 0x1.0b125ec1d7da0p-900}},
    {0x1.dd97f1cfb10f6p+499,
     6,
     {0x1.1ea36f17fd374p-3, 0x1.64138a6233255p-811, 0x1.7688de6a16a3bp-381, -0x1.1ea36f17fd374p-3,
      0x1.dd97f1cfb10f6p+499, -0x1.64138a6233255p-811}},
    {0x1.4235992edcf45p-2,
     6,
     {-0x1.271007814e8a2p+486, 0x1.959ce3f1f65a8p+536, 0x1.afe878b33e968p-606, 0x1.271007814e8a2p+486,
      0x1.4235992edcf45p-2, -0x1.959ce3f1f65a8p+536}},
    {-0x1.1cc9dea959c21p+482,
     6,
     {-0x1.edb20035b7399p-77, 0x1.c966c377b9aa2p+648, 0x1.c82b1478c281dp-278, 0x1.edb20035b7399p-77,
      -0x1.1cc9dea959c21p+482, -0x1.c966c377b9aa2p+648}},
    {-0x1.0691c238642eap-540,
     6,
     {0x1.229f1c4069545p+572, -0x1.d8b7628dbd25ep+49, 0x1.a1e48cc11d357p-729, -0x1.229f1c4069545p+572,
      -0x1.0691c238642eap-540, 0x1.d8b7628dbd25ep+49}},
    {-0x1.b18b900745130p+911,
     6,
     {0x1.0c07e9e115e4bp+799, 0x1.a8978206f5c66p-482, -0x1.b18b900745130p+911, -0x1.0c07e9e115e4bp+799,
      0x1.c33b2df1461aap-1002, -0x1.a8978206f5c66p-482}},
    {0x1.20f31af1b0d27p-341,
     6,
     {-0x1.a3cab359eeefbp+97, -0x1.ae3bf3729c619p+861, 0x1.59159fb7ff337p-344, 0x1.a3cab359eeefbp+97,
      0x1.eba0cdf561d80p-342, 0x1.ae3bf3729c619p+861}},
    {-0x1.9548e8a0a8c96p+517,
     6,
     {0x1.b74ba4a0fe75dp+261, 0x1.a6928f6236bf2p-209, -0x1.9548e8a0a8c96p+517, -0x1.b74ba4a0fe75dp+261,
      -0x1.fdaa1ad864c44p-509, -0x1.a6928f6236bf2p-209}},
    {-0x1.08e96f770c226p+882,
     6,
     {0x1.1d66d346c6e2bp-279, -0x1.35634f0e3cd97p+896, 0x1.6aa3bb0cde917p-217, -0x1.1d66d346c6e2bp-279,
      -0x1.08e96f770c226p+882, 0x1.35634f0e3cd97p+896}},
    {-0x1.01b932a7c1880p+762,
     6,
     {0x1.aef57e4cc4132p+546, 0x1.5a01c4c7d6df0p-935, 0x1.753915c76f18ap+676, -0x1.aef57e4cc4132p+546,
      -0x1.01b932a7c1880p+762, -0x1.5a01c4c7d6df0p-935}},
    {-0x1.125844d25deb3p+277,
     6,
     {0x1.92dfc254cb864p+57, 0x1.46a6910acff00p+336, -0x1.125844d25deb3p+277, -0x1.92dfc254cb864p+57,
      -0x1.d5a8f9a656aafp-671, -0x1.46a6910acff00p+336}},
};
enum { KNOWN = sizeof known / sizeof known[0] };

typedef struct sum {
    int64_t digits[LEARN_EXACT_DIGITS_MOST], range[LEARN_EXACT_RANGE];
} sum;

static void clear(sum *out)
{
    memset(out->digits, 0, sizeof out->digits);
    for (int i = 0; i < LEARN_EXACT_RANGE; i++)
        out->range[i] = shoal_order_key(-INFINITY);
}

static void add(sum *to, const learn_window *window, const double *values, int count)
{
    for (int i = 0; i < count; i++)
        learn_exact_add(to->digits, window, values[i], to->range);
}

/* As partials are merged. */
static void merge(sum *into, const sum *from)
{
    for (int i = 0; i < LEARN_EXACT_DIGITS_MOST; i++)
        into->digits[i] += from->digits[i];
    for (int i = 0; i < LEARN_EXACT_RANGE; i++)
        into->range[i] = into->range[i] > from->range[i] ? into->range[i] : from->range[i];
}

/* The sum of values, those before `cut` and those after it separately, in rounds until all have room. */
static double sum_of(const double *values, int count, int cut, int *rounds)
{
    learn_window window = learn_window_usual();
    sum first, second;
    *rounds = 0;
    do {
        assert_true(learn_window_good(&window));
        clear(&first);
        clear(&second);
        add(&first, &window, values, cut);
        add(&second, &window, values + cut, count - cut);
        merge(&first, &second);
        ++*rounds;
    } while (learn_window_widen(&window, first.range));
    return learn_exact_value(first.digits, &window);
}

static void assert_same(double a, double b)
{
    assert_memory_equal(&a, &b, sizeof a);
}

static void sums_are_those_of_fractions(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++)
        for (int cut = 0; cut <= known[i].count; cut++) {
            int rounds = 0;
            assert_same(sum_of(known[i].value, known[i].count, cut, &rounds), known[i].sum);
            assert_in_range(rounds, 1, 2); /* all that was too large or too small is known after one round */
        }
}

static void order_does_not_matter(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        double turned[VALUES_MOST];
        int rounds = 0, count = known[i].count;
        for (int shift = 0; shift < count; shift++) {
            for (int j = 0; j < count; j++)
                turned[j] = known[i].value[(count - 1 - j + shift) % count];
            assert_same(sum_of(turned, count, count / 2, &rounds), known[i].sum);
        }
    }
}

static void usual_values_need_one_round(void **state)
{
    const double values[] = {1, -1e38, 0x1p-107, 1e-32, 0x1p-160, -0x1.fffffffffffffp127};
    int rounds = 0;
    (void)state;
    (void)sum_of(values, 6, 3, &rounds);
    assert_int_equal(rounds, 1);
    (void)sum_of((const double[]){0x1p128}, 1, 0, &rounds);
    assert_int_equal(rounds, 2);
    (void)sum_of((const double[]){0x1p-161}, 1, 0, &rounds);
    assert_int_equal(rounds, 2);
}

static void a_window_grows_no_further_than_doubles_go(void **state)
{
    learn_window window = learn_window_usual();
    sum all;
    (void)state;
    clear(&all);
    add(&all, &window, (const double[]){0x1p-1074, 0x1.fffffffffffffp1023}, 2);
    assert_true(learn_window_widen(&window, all.range));
    assert_int_equal(window.digits, LEARN_EXACT_DIGITS_MOST);
    assert_true(learn_window_good(&window));
    clear(&all);
    add(&all, &window, (const double[]){0x1p-1074, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023}, 3);
    assert_false(learn_window_widen(&window, all.range));
    assert_same(learn_exact_value(all.digits, &window), 0x1p-1074);
}

static void digits_do_not_overflow(void **state)
{
    const learn_window window = learn_window_usual();
    sum all;
    (void)state;
    clear(&all);
    add(&all, &window, (const double[]){0x1.fffffffffffffp127}, 1);
    for (int i = 0; i < 30; i++) { /* as if this many grains had added the same */
        sum twice = all;
        merge(&all, &twice);
    }
    assert_same(learn_exact_value(all.digits, &window), 0x1.fffffffffffffp157);
}

static void windows_from_elsewhere_are_checked(void **state)
{
    const learn_window bad[] = {{-160, 8},  {-161, 9},  {-128, 9}, {-1120, 66},    {-1088, 67},
                                {-160, 40}, {-160, -1}, {0, 0},    {-160, 1 << 30}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(learn_window_good(&bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_fractions), cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(usual_values_need_one_round), cmocka_unit_test(a_window_grows_no_further_than_doubles_go),
        cmocka_unit_test(digits_do_not_overflow),      cmocka_unit_test(windows_from_elsewhere_are_checked)};
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
