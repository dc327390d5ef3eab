/* What test_dense.c asks of the dense tables, for one type.
 *
 * Included once for each type, with T(name), REAL, TABLE (the member of kernel_set), FMA (of the C library),
 * EXPONENT_LEAST (of subnormals) and DIGITS defined.  The definitions are spelled out in scalar code. */

typedef T(kernel_dense) T(table);

static bool T(same)(REAL a, REAL b)
{
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

static void T(expect)(const REAL *got, const REAL *expected, int64_t count, const char *what, const char *set)
{
    for (int64_t i = 0; i < count; i++)
        if (!T(same)(got[i], expected[i]))
            fail_msg("%s of %s: value %lld of %lld is %a, not %a", what, set, (long long)i, (long long)count,
                     (double)got[i], (double)expected[i]);
}

/* Numbers of one of the kinds: of like size; of all sizes, so that sums overflow; subnormal ones; with infinities and
 * NaN. */
static REAL T(random)(int kind)
{
    double sign = random_bits() & 1 ? 1 : -1; /* one draw after the other: the order within an expression is nobody's */
    double unit = 0.5 + random_unit() / 2;
    int range = -EXPONENT_LEAST;
    switch (kind) {
    case OF_ALL_SIZES: return (REAL)ldexp(sign * unit, (int)(random_bits() % (uint64_t)(range + 20)) - range / 2);
    case SUBNORMAL: return (REAL)ldexp(sign * unit, EXPONENT_LEAST + (int)(random_bits() % 30));
    case NOT_FINITE:
        if (random_bits() % 16 == 0)
            return (REAL)(random_bits() & 1 ? NAN : sign * INFINITY);
        return random_bits() % 8 ? (REAL)(sign * unit) : (REAL)(sign * 0);
    default: return (REAL)(sign * unit);
    }
}

static REAL *T(values)(int64_t count, int kind)
{
    REAL *out = fence((size_t)count * sizeof(REAL));
    for (int64_t i = 0; i < count; i++)
        out[i] = T(random)(kind);
    return out;
}

static REAL *T(copy)(const REAL *of, int64_t count)
{
    return memcpy(fence((size_t)count * sizeof(REAL)), of, (size_t)count * sizeof(REAL));
}

/* ---- product ----------------------------------------------------------------------------------------------------- */

static void T(check_product)(int64_t rows, int64_t columns, int64_t depth, int order, int kind)
{
    /* Gaps between the rows of each, so that a wrong stride is seen, and what lies in the gaps of c must stay. */
    int64_t gap = order & 1 ? 0 : 3, c_row = columns + gap, b_row = columns + 2 * gap, a_row = 1, a_column = 1;
    switch (order / 2) {
    case ROW_MAJOR: a_row = depth + gap; break;
    case COLUMN_MAJOR: a_column = rows + gap; break;
    default: a_column = 3, a_row = 3 * depth + gap; break;
    }
    int64_t count_a = rows && depth ? (rows - 1) * a_row + (depth - 1) * a_column + 1 : 0;
    int64_t count_b = depth && columns ? (depth - 1) * b_row + columns : 0,
            count_c = rows ? (rows - 1) * c_row + columns : 0;
    const REAL *a = T(values)(count_a, kind), *b = T(values)(count_b, kind);
    const REAL *before = T(values)(count_c, kind);
    REAL *expected = T(copy)(before, count_c);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t t = 0; t < depth; t++)
                expected[i * c_row + j] = FMA(a[i * a_row + t * a_column], b[t * b_row + j], expected[i * c_row + j]);
    for (int set = 0; set < count_sets; set++) {
        char what[128];
        REAL *c = T(copy)(before, count_c);
        sets[set]->TABLE.product(c, c_row, a, a_row, a_column, b, b_row, rows, columns, depth);
        snprintf(what, sizeof what, "product (%lld x %lld, depth %lld, order %d, kind %d)", (long long)rows,
                 (long long)columns, (long long)depth, order, kind);
        T(expect)(c, expected, count_c, what, sets[set]->name);
    }
    drop_fences();
}

static void T(test_product)(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 14, 15, 16, 17, 24, 30, 31, 33, 47, 48, 49, 65};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (int order = 0; order < 6; order++)
        for (int i = 0; i < 150; i++) {
            int64_t rows = sizes[random_bits() % COUNT], columns = sizes[random_bits() % COUNT];
            T(check_product)(rows, columns, sizes[random_bits() % COUNT], order, i % KINDS);
        }
    for (int order = 0; order < 6;
         order++) { /* every height of a tile, and every number of columns up to a few vectors */
        for (int64_t rows = 1; rows <= 30; rows++)
            T(check_product)(rows, 1 + (int64_t)(random_bits() % 70), 5, order, SIMILAR);
        for (int64_t columns = 1; columns <= 70; columns++)
            T(check_product)(1 + (int64_t)(random_bits() % 40), columns, 5, order, SIMILAR);
    }
}

/* Depths beyond a panel, many columns against few rows, and the other way round. */
static void T(test_product_large)(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{33, 50, 450}, {3, 20, 1000}, {1, 300, 40}, {2, 257, 40},
                                        {3, 200, 220}, {20, 260, 30}, {70, 1, 130}, {67, 3, 70},
                                        {70, 8, 33},   {1, 1, 900},   {17, 33, 801}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int order = 0; order < 6; order++)
            T(check_product)(shapes[i][0], shapes[i][1], shapes[i][2], order, order % 2 ? SIMILAR : OF_ALL_SIZES);
}

/* ---- exp and activations ----------------------------------------------------------------------------------------- */

/* How many units in the last place of the type `got` is from what it should be. */
static double T(ulps)(REAL got, long double expected)
{
    if (got != got || expected != expected)
        return got != got && expected != expected ? 0 : INFINITY;
    if ((long double)got == expected)
        return 0;
    if (isinf(got) || isinf(expected)) /* the first number that is not representable stands for infinity */
        return isinf(got) && fabsl(expected) >= ldexpl(1 - ldexpl(1, -DIGITS - 1), EXPONENT_MOST) ? 0 : INFINITY;
    int exponent;
    frexpl(expected, &exponent);
    exponent = exponent - DIGITS > EXPONENT_LEAST ? exponent - DIGITS : EXPONENT_LEAST;
    return (double)fabsl(((long double)got - expected) / ldexpl(1, exponent));
}

/* All over the range, dense around 0 and where results leave the range. */
static REAL *T(arguments)(int64_t *count)
{
    static const double special[] = {0.0,       -0.0,    1,        -1,         INFINITY,    -INFINITY, 88.72,
                                     88.73,     -87.4,   -103.97,  -103.98,    -104,        709.78,    709.79,
                                     -708.4,    -745.1,  -745.14,  1e30,       -1e30,       0x1p-149,  -0x1p-149,
                                     0x1p-1074, 0x1p-60, -0x1p-60, 0.34657359, -0.34657359, 32,        -32};
    enum { SPECIAL = sizeof special / sizeof *special, SWEPT = 40000 };
    REAL *out = fence((SPECIAL + 1 + 3 * SWEPT) * sizeof(REAL)), *end = out;
    for (int i = 0; i < SPECIAL; i++)
        *end++ = (REAL)special[i];
    *end++ = (REAL)NAN;
    for (int i = 0; i < SWEPT; i++) {
        *end++ = (REAL)((random_unit() - 0.5) * 4);
        *end++ = (REAL)((random_unit() - 0.5) * (sizeof(REAL) == 4 ? 220 : 1520));
        double small = ldexp(random_unit() - 0.5, -(int)(i % 40));
        *end++ = (REAL)small;
    }
    *count = end - out;
    return out;
}

static long double T(logistic_true)(long double z)
{
    return 1 / (1 + expl(-z));
}

static long double T(tanh_true)(long double z)
{
    return tanhl(z);
}

static long double T(exp_true)(long double x)
{
    return expl(x);
}

static void T(apply)(const T(table) * dense, int which, REAL *x, int64_t count)
{
    if (which == EXP)
        dense->exp(x, count);
    else
        dense->activate(x, which == LOGISTIC ? KERNEL_LOGISTIC : KERNEL_TANH, count);
}

static void T(test_functions)(void **state)
{
    (void)state;
    static long double (*const truth[])(long double) = {
        [EXP] = T(exp_true), [LOGISTIC] = T(logistic_true), [TANH] = T(tanh_true)};
    static const double most[] = {[EXP] = 1.25, [LOGISTIC] = 3, [TANH] = 3};
    static const char *const names[] = {[EXP] = "exp", [LOGISTIC] = "logistic", [TANH] = "tanh"};
    int64_t count;
    const REAL *x = T(arguments)(&count);
    for (int which = EXP; which <= TANH; which++) {
        REAL *first = T(copy)(x, count);
        double worst = 0;
        T(apply)(&sets[0]->TABLE, which, first, count);
        for (int64_t i = 0; i < count; i++) {
            double ulps = T(ulps)(first[i], truth[which]((long double)x[i]));
            worst = ulps > worst ? ulps : worst;
            if (ulps > most[which])
                fail_msg("%s(%a) is %a, %g units off", names[which], (double)x[i], (double)first[i], ulps);
            if (which != EXP && !(x[i] != x[i]) && !(first[i] >= (which == TANH ? -1 : 0) && first[i] <= 1))
                fail_msg("%s(%a) = %a is out of range", names[which], (double)x[i], (double)first[i]);
        }
        print_message("%s of %d digits: within %.3f units\n", names[which], DIGITS, worst);
        for (int set = 1; set < count_sets; set++) {
            REAL *other = T(copy)(x, count);
            T(apply)(&sets[set]->TABLE, which, other, count);
            T(expect)(other, first, count, names[which], sets[set]->name);
        }
    }
    drop_fences();
}

/* ---- value by value ---------------------------------------------------------------------------------------------- */

static REAL T(slope_of)(REAL y, kernel_activation f)
{
    switch (f) {
    case KERNEL_LOGISTIC: return y * (1 - y);
    case KERNEL_TANH: return (1 - y) * (1 + y);
    case KERNEL_RELU: return y > 0 ? 1 : 0;
    default: return 1;
    }
}

/* Every count up to a few vectors, at the end of a page; exp and activations once more for their last lanes. */
static void T(check_elements)(const kernel_set *set, int64_t count, int kind)
{
    const T(table) *dense = &set->TABLE, *first = &sets[0]->TABLE;
    const REAL *x = T(values)(count, kind), *y = T(values)(count, kind);
    REAL *out = T(copy)(x, count), *expected = T(copy)(x, count);
    for (int f = KERNEL_LINEAR; f <= KERNEL_RELU; f++) {
        double lanes[KERNEL_LANES], lanes_expected[KERNEL_LANES];
        memcpy(out, x, (size_t)count * sizeof *x);
        memcpy(expected, x, (size_t)count * sizeof *x);
        dense->activate(out, (kernel_activation)f, count);
        first->activate(expected, (kernel_activation)f, count);
        if (f == KERNEL_LINEAR || f == KERNEL_RELU)
            for (int64_t i = 0; i < count; i++)
                expected[i] = f == KERNEL_RELU && x[i] < 0 ? 0 : x[i];
        T(expect)(out, expected, count, "activate", set->name);
        for (int64_t i = 0; i < count; i++)
            expected[i] = T(slope_of)(y[i], (kernel_activation)f);
        dense->slope(out, y, (kernel_activation)f, count);
        T(expect)(out, expected, count, "slope", set->name);
        for (int i = 0; i < KERNEL_LANES; i++)
            lanes[i] = lanes_expected[i] = i * 0.7;
        memcpy(out, x, (size_t)count * sizeof *x);
        for (int64_t i = 0; i < count; i++) {
            REAL miss = x[i] - y[i];
            lanes_expected[i % KERNEL_LANES] = fma(miss, miss, lanes_expected[i % KERNEL_LANES]);
            expected[i] = miss * T(slope_of)(x[i], (kernel_activation)f);
        }
        dense->miss(out, y, (kernel_activation)f, lanes, count);
        T(expect)(out, expected, count, "miss", set->name);
        for (int i = 0; i < KERNEL_LANES; i++)
            if (!same_double(lanes[i], lanes_expected[i]))
                fail_msg("miss of %s: lane %d is %a, not %a", set->name, i, lanes[i], lanes_expected[i]);
    }
    memcpy(out, x, (size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        expected[i] = x[i] * y[i];
    dense->multiply(out, y, count);
    T(expect)(out, expected, count, "multiply", set->name);
    memcpy(out, x, (size_t)count * sizeof *x);
    memcpy(expected, x, (size_t)count * sizeof *x);
    dense->exp(out, count);
    first->exp(expected, count);
    T(expect)(out, expected, count, "exp", set->name);
    double greatest = 0;
    for (int64_t i = 0; i < count; i++)
        greatest = isfinite(x[i]) ? fmax(greatest, fabs((double)x[i])) : INFINITY;
    assert_true(dense->greatest(x, count) == greatest);
    drop_fences();
}

static void T(test_elements)(void **state)
{
    (void)state;
    for (int set = 0; set < count_sets; set++)
        for (int64_t count = 0; count < 140; count++)
            T(check_elements)(sets[set], count, (int)(count % KINDS));
}

/* One value that is not finite, anywhere, decides. */
static void T(test_greatest)(void **state)
{
    (void)state;
    enum { COUNT = 77 };
    REAL *x = T(values)(COUNT, SIMILAR);
    for (int set = 0; set < count_sets; set++)
        for (int i = 0; i < COUNT; i++) {
            static const double greatest[] = {INFINITY, -INFINITY, NAN, -NAN, -1e30, 1e30};
            REAL was = x[i];
            for (int g = 0; g < 6; g++) {
                x[i] = (REAL)greatest[g];
                double expected = isfinite(x[i]) ? fabs((double)x[i]) : INFINITY;
                assert_true(sets[set]->TABLE.greatest(x, COUNT) == expected);
            }
            x[i] = was;
        }
    drop_fences();
}

static void T(test_add_rows)(void **state)
{
    (void)state;
    for (int set = 0; set < count_sets; set++)
        for (int i = 0; i < 100; i++) {
            int64_t rows = i % 11, columns = (int64_t)(random_bits() % 70), row = columns + i % 3;
            const REAL *v = T(values)(rows ? (rows - 1) * row + columns : 0, i % KINDS);
            REAL *sum = T(values)(columns, SIMILAR), *expected = T(copy)(sum, columns);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < columns; j++)
                    expected[j] += v[r * row + j];
            sets[set]->TABLE.add_rows(sum, v, row, rows, columns);
            T(expect)(sum, expected, columns, "add_rows", sets[set]->name);
            drop_fences();
        }
}

/* Products of all sizes up to 2^62, halves among them, which go to the even neighbour. */
static void T(test_quantise)(void **state)
{
    (void)state;
    for (int set = 0; set < count_sets; set++)
        for (int i = 0; i < 400; i++) {
            int64_t count = i % 70;
            int exponent = i % 63, scale = (int)(random_bits() % 60) - 30;
            double inverse = ldexp(1, scale);
            REAL *v = fence((size_t)count * sizeof *v);
            int64_t *sum = fence((size_t)count * sizeof *sum), *expected = fence((size_t)count * sizeof *sum);
            for (int64_t k = 0; k < count; k++) {
                double value = k % 3 ? ldexp(random_unit() - 0.5, exponent + 1)
                                     : (double)((int64_t)(random_bits() % 4096) - 2048) / 4;
                v[k] = (REAL)(value * (1 - 0x1p-24) / inverse);
                sum[k] = (int64_t)random_bits() >> 2;
                expected[k] = sum[k] + llrint((double)v[k] * inverse);
            }
            sets[set]->TABLE.quantise(sum, v, inverse, count);
            for (int64_t k = 0; k < count; k++)
                if (sum[k] != expected[k])
                    fail_msg("quantise of %s: %a * %a came out %lld off", sets[set]->name, (double)v[k], inverse,
                             (long long)(sum[k] - expected[k]));
            drop_fences();
        }
}

/* ---- convert ----------------------------------------------------------------------------------------------------- */

#define EACH_TYPE(DO)                                                                                                  \
    DO(SHOAL_FLOAT32, float)                                                                                           \
    DO(SHOAL_FLOAT64, double)                                                                                          \
    DO(SHOAL_INT8, int8_t)                                                                                             \
    DO(SHOAL_INT16, int16_t)                                                                                           \
    DO(SHOAL_INT32, int32_t)                                                                                           \
    DO(SHOAL_INT64, int64_t)                                                                                           \
    DO(SHOAL_UINT8, uint8_t)                                                                                           \
    DO(SHOAL_UINT16, uint16_t)                                                                                         \
    DO(SHOAL_UINT32, uint32_t)                                                                                         \
    DO(SHOAL_UINT64, uint64_t)                                                                                         \
    DO(SHOAL_BOOL, uint8_t)

static REAL T(value_of)(const void *values, shoal_type type, int64_t i)
{
    switch (type) {
#define VALUE(name, c_type)                                                                                            \
    case name: return (REAL)((const c_type *)values)[i];
        EACH_TYPE(VALUE)
#undef VALUE
    default: return 0;
    }
}

static void T(test_convert)(void **state)
{
    (void)state;
    static const double affine[][2] = {{1, 0}, {1.0 / 255, 0}, {0.1, -3.7}, {0, 1}};
    for (int set = 0; set < count_sets; set++)
        for (int type = 0; type < SHOAL_TYPES; type++)
            for (int64_t count = 0; count < 75; count++) {
                unsigned char *values = fence((size_t)count * shoal_type_size((shoal_type)type));
                REAL *out = fence((size_t)count * sizeof *out), *expected = fence((size_t)count * sizeof *out);
                for (int64_t i = 0; i < count; i++) {
                    uint64_t bits = type == SHOAL_BOOL ? random_bits() & 1 : random_bits() >> i % 40;
                    float narrow = random_float();
                    double wide = narrow * (1 + random_unit());
                    const void *from = type == SHOAL_FLOAT32   ? (void *)&narrow
                                       : type == SHOAL_FLOAT64 ? (void *)&wide
                                                               : &bits;
                    memcpy(values + (size_t)i * shoal_type_size((shoal_type)type), from,
                           shoal_type_size((shoal_type)type));
                }
                for (size_t a = 0; a < sizeof affine / sizeof *affine; a++) {
                    REAL scale = (REAL)affine[a][0], shift = (REAL)affine[a][1];
                    for (int64_t i = 0; i < count; i++) {
                        expected[i] = T(value_of)(values, (shoal_type)type, i);
                        if (a > 0)
                            expected[i] = FMA(expected[i], scale, shift);
                    }
                    sets[set]->TABLE.convert(out, values, (shoal_type)type, scale, shift, count);
                    T(expect)(out, expected, count, "convert", sets[set]->name);
                }
                drop_fences();
            }
}

#undef EACH_TYPE
#undef T
#undef REAL
#undef TABLE
#undef FMA
#undef DIGITS
#undef EXPONENT_LEAST
#undef EXPONENT_MOST
