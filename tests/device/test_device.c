/* A table of a device against the definition, computed here for every pair: labels, sums, the end, and rounds on end.
 *
 *     test_device [NAME] [--quick|--short]   NAME: "cuda:0"; without one a table that computes here (fake_device.h)
 *
 * Rows are hostile: ties and copies, far from the origin, subnormal, one cluster, all of them ambiguous in fp16. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"
#include "device/fake_device.h"
#include "kernel/kernel.h"
#include "shoal/learn.h"

typedef enum kind { UNIFORM, BLOBS, GRID, OFFSET, TINY, COPIES, ONE, LINE, AMBIGUOUS, MIXED, KINDS } kind;
static const char *const kind_names[] = {"uniform", "blobs", "grid", "offset",    "tiny",
                                         "copies",  "one",   "line", "ambiguous", "mixed"};

typedef struct trial {
    kind kind;
    kernel_device_form form;
    bool weighted, unit;
    int64_t rows, columns, k;
} trial;

typedef struct made {
    trial t;
    void *values;
    double *exact, *weights, *centres, *origin, *inverse;
    kernel_device_units units;
    int32_t *label;
} made;

static int failures;
static const kernel_set *cpu;

static double draw(uint64_t index, uint32_t which)
{
    return base_random_unit(7, BASE_FOR_DATA, index, which);
}

static double value_of(const trial *t, int64_t i, int64_t k)
{
    const double u = draw((uint64_t)(i * t->columns + k), 0);
    const uint64_t blob = base_random_below(50, 7, BASE_FOR_CENTRES, (uint64_t)i, 0);
    if (t->form == KERNEL_DEVICE_UINT8)
        return floor((t->kind == GRID ? 4 : 256) * u);
    switch (t->kind) {
    case BLOBS: return draw(blob * 1000 + (uint64_t)k, 1) * 4 + 0.3 * u;
    case GRID: return floor(4 * u) / 4;
    case OFFSET: return 1e4 * (1 + (double)(k % 7)) + u;
    case TINY: return floor(8 * u) * 0x1p-149;
    case COPIES: return draw((uint64_t)(i % 37 * t->columns + k), 2);
    case ONE: return 3.25;
    case LINE: return (double)i / 1024;
    case AMBIGUOUS: return 1 + 0x1p-20 * floor(16 * u);
    case MIXED: return ldexp(u - 0.5, (int)(k % 40) - 20);
    default: return u;
    }
}

static void make_rows(made *m)
{
    const trial *t = &m->t;
    const size_t count = (size_t)(t->rows * t->columns);
    m->exact = calloc(count, sizeof(double));
    m->weights = t->weighted ? calloc((size_t)t->rows, sizeof(double)) : NULL;
    m->values = calloc(count, sizeof(double));
    for (int64_t i = 0; i < t->rows; i++) {
        double *row = m->exact + i * t->columns, length = 0;
        for (int64_t k = 0; k < t->columns; k++) {
            row[k] = value_of(t, i, k);
            if (t->form != KERNEL_DEVICE_FLOAT64)
                row[k] = (float)row[k];
            length += row[k] * row[k];
        }
        for (int64_t k = 0; t->unit && k < t->columns; k++)
            row[k] = length > 0 ? row[k] / sqrt(length) : k == 0;
        if (t->weighted)
            m->weights[i] = floor(5 * draw((uint64_t)i, 9)) / 4;
    }
    for (size_t i = 0; i < count; i++)
        switch (t->form) {
        case KERNEL_DEVICE_UINT8: ((uint8_t *)m->values)[i] = (uint8_t)m->exact[i]; break;
        case KERNEL_DEVICE_FLOAT32: ((float *)m->values)[i] = (float)m->exact[i]; break;
        default: ((double *)m->values)[i] = m->exact[i];
        }
}

static double power_above(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(1, fraction == 0.5 ? exponent - 1 : exponent);
}

/* As the scan has it. */
static void make_units(made *m)
{
    const trial *t = &m->t;
    double widest = 0;
    static int64_t wide_column[2];
    static double wide_inverse[2];
    m->origin = calloc((size_t)t->columns, sizeof(double));
    m->inverse = calloc((size_t)t->columns, sizeof(double));
    for (int64_t k = 0; k < t->columns; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < t->rows; i++) {
            low = fmin(low, m->exact[i * t->columns + k]);
            high = fmax(high, m->exact[i * t->columns + k]);
        }
        m->origin[k] = t->unit ? 0 : (float)(low / 2 + high / 2);
        double width = fmax(high - m->origin[k], m->origin[k] - low);
        m->inverse[k] = width > 0 ? fmin(0x1p62 / power_above(width * 1.25 * (double)t->rows * 1.01), 0x1p1000) : 1;
        widest = fmax(widest, width);
    }
    m->units = (kernel_device_units){.origin = m->origin,
                                     .inverse = m->inverse,
                                     .prescale = 1,
                                     .scale = widest > 0 ? fmin(fmax(1 / power_above(widest), 0x1p-126), 0x1p126) : 1,
                                     .weight_scale = t->weighted ? 0.5 : 1,
                                     .weight_inverse = t->weighted ? 0x1p40 : 1,
                                     .most = 0x1p62 / (double)t->rows,
                                     .wide_column = wide_column,
                                     .wide_inverse = wide_inverse,
                                     .wide_bits = shoal_wide_bits(t->rows)};
    if (t->kind == MIXED) { /* a column whose sums are wide */
        m->units.wide = 1;
        wide_column[0] = t->columns - 1;
        m->inverse[t->columns - 1] = 0;
        wide_inverse[0] = 0x1p60;
    }
}

static void make_centres(made *m)
{
    const trial *t = &m->t;
    m->centres = calloc((size_t)(t->k * t->columns), sizeof(double));
    for (int64_t j = 0; j < t->k; j++) {
        const int64_t row = (int64_t)base_random_below((uint64_t)t->rows, 3, BASE_FOR_CENTRES, (uint64_t)j, 0);
        memcpy(m->centres + j * t->columns, m->exact + row * t->columns, (size_t)t->columns * sizeof(double));
        for (int64_t k = 0; k < t->columns && !t->unit && j % 5 == 1; k++) /* between rows; and copies elsewhere */
            m->centres[j * t->columns + k] += 0.25 * (m->exact[k] - m->centres[j * t->columns + k]);
        if (t->kind == OFFSET && j == 2 && !t->unit) /* far away from all rows */
            m->centres[j * t->columns] = 1e30;
    }
}

static void define_labels(made *m)
{
    const trial *t = &m->t;
    if (!m->label)
        m->label = calloc((size_t)t->rows, sizeof(int32_t));
    for (int64_t i = 0; i < t->rows; i++) {
        const double *x = m->exact + i * t->columns;
        double least = INFINITY;
        m->label[i] = 0;
        for (int64_t j = 0; j < t->k; j++) {
            const double *c = m->centres + j * t->columns;
            double v = t->unit ? -cpu->product64(x, c, t->columns) : cpu->distance64(x, c, t->columns);
            if (v < least) {
                least = v;
                m->label[i] = (int32_t)j;
            }
        }
    }
}

static void complain(const made *m, const char *what, int64_t wrong)
{
    static const char *const forms[] = {"uint8", "float32", "float64"};
    if (wrong == 0)
        return;
    failures++;
    printf("FAILED %s %s%s%s %lld x %lld, k %lld: %lld %s differ\n", kind_names[m->t.kind], forms[m->t.form],
           m->t.weighted ? " weighted" : "", m->t.unit ? " unit" : "", (long long)m->t.rows, (long long)m->t.columns,
           (long long)m->t.k, (long long)wrong, what);
}

static int64_t differing(const int64_t *a, const int64_t *b, int64_t count)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong += a[i] != b[i];
    return wrong;
}

/* Sums by the CPU's own kernels. */
static void check_sums(const made *m, kernel_device *device, kernel_device_rows *held)
{
    const trial *t = &m->t;
    const int64_t cells = t->k * t->columns, wide = t->k * m->units.wide;
    int64_t *memory = calloc((size_t)(2 * (cells + 2 * t->k + 2 * wide)), sizeof *memory), *at = memory;
    int64_t *values = at, *rows = (at += cells), *weight = (at += t->k), *digits = (at += t->k);
    kernel_device_sums sums = {.values = (at += 2 * wide)};
    sums.rows = (at += cells);
    sums.weight = t->weighted ? (at += t->k) : (at += t->k, NULL);
    sums.wide = at + t->k;
    int status = device->sums(held, &sums);
    for (int64_t i = 0; i < t->rows; i++) {
        const double w = t->weighted ? m->weights[i] * m->units.weight_scale : 1;
        const double *x = m->exact + i * t->columns;
        const int32_t j = m->label[i];
        cpu->move64(values + j * t->columns, NULL, x, m->origin, m->inverse, w, t->columns);
        rows[j] += w > 0;
        weight[j] += llrint(w * m->units.weight_inverse);
        for (int64_t c = 0; c < m->units.wide; c++) {
            const int64_t k = m->units.wide_column[c];
            shoal_wide_add(digits, wide, j * m->units.wide + c,
                           rint(w * (x[k] - m->origin[k]) * m->units.wide_inverse[c]), m->units.wide_bits);
        }
    }
    complain(m, "sums (no answer)", status < 0);
    complain(m, "sums", differing(values, sums.values, cells));
    complain(m, "counts", differing(rows, sums.rows, t->k));
    complain(m, "weights", sums.weight ? differing(weight, sums.weight, t->k) : 0);
    complain(m, "wide sums", differing(digits, sums.wide, 2 * wide));
    free(memory);
}

static void check_ending(const made *m, kernel_device *device, kernel_device_rows *held, const char *way)
{
    const trial *t = &m->t;
    kernel_device_ending end = {.inverse = 0x1p20, .bits = shoal_wide_bits(t->rows)};
    int64_t *sizes = calloc((size_t)t->k, sizeof *sizes), objective[2] = {0}, wrong = 0, off = 0;
    double most = 0;
    end.sizes = calloc((size_t)t->k, sizeof *sizes);
    end.label = calloc((size_t)t->rows, sizeof *end.label);
    end.distance = calloc((size_t)t->rows, sizeof *end.distance);
    int status = device->ending(held, &end);
    for (int64_t i = 0; i < t->rows; i++) {
        double d = cpu->distance64(m->exact + i * t->columns, m->centres + m->label[i] * t->columns, t->columns);
        double term = (t->weighted ? m->weights[i] * m->units.weight_scale : 1) * d;
        wrong += end.label[i] != m->label[i];
        off += memcmp(&end.distance[i], &d, sizeof d) != 0;
        shoal_wide_add(objective, 1, 0, rint(term * end.inverse), end.bits);
        most = fmax(most, term);
        sizes[m->label[i]]++;
    }
    char what[64];
    snprintf(what, sizeof what, "labels (%s)", way);
    complain(m, "ends (no answer)", status < 0);
    complain(m, what, wrong);
    complain(m, "distances", off);
    complain(m, "objectives", objective[0] != end.objective[0] || objective[1] != end.objective[1] || most != end.most);
    complain(m, "sizes", differing(sizes, end.sizes, t->k));
    free(sizes);
    free(end.sizes);
    free(end.label);
    free(end.distance);
}

/* Rounds on end and one by one come to the same centres. */
static void check_rounds(made *m, kernel_device *device, kernel_device_rows *held)
{
    const trial *t = &m->t;
    const size_t bytes = (size_t)(t->k * t->columns) * sizeof(double);
    double *one = malloc(bytes), *all = malloc(bytes);
    kernel_device_rounds step = {.k = t->k, .most = 1, .centres = one}, leap = {.k = t->k, .most = 4, .centres = all};
    if (!device->rounds || m->units.wide > 0 || t->unit)
        goto done;
    memcpy(one, m->centres, bytes);
    memcpy(all, m->centres, bytes);
    int64_t done = 0;
    int status = device->rounds(held, &leap);
    for (int r = 0; r < 4 && status == 0; r++) {
        status = device->rounds(held, &step);
        done += step.done;
        if (step.done == 0 || step.converged)
            break;
    }
    complain(m, "rounds (no answer)", status < 0);
    complain(m, "rounds done", status == 0 && done != leap.done);
    complain(m, "centres of rounds", status == 0 && memcmp(one, all, bytes) != 0);
done:
    free(one);
    free(all);
}

static int put_all(const made *m, kernel_device *device, kernel_device_rows *held)
{
    const size_t size = m->t.form == KERNEL_DEVICE_UINT8 ? 1 : m->t.form == KERNEL_DEVICE_FLOAT32 ? 4 : 8;
    for (int64_t done = 0; done < m->t.rows;) {
        int64_t room = 0;
        double *weights = NULL;
        void *to = device->room(held, &room, &weights);
        room = room < m->t.rows - done ? room : m->t.rows - done;
        if (!to)
            return KERNEL_DEVICE_LOST;
        memcpy(to, (char *)m->values + (size_t)(done * m->t.columns) * size, (size_t)(room * m->t.columns) * size);
        if (weights)
            memcpy(weights, m->weights + done, (size_t)room * sizeof *weights);
        int status = device->put(held, room);
        if (status < 0)
            return status;
        done += room;
    }
    return 0;
}

/* Two centres, if there are two. */
static void exchange(made *m)
{
    double *last = m->centres + (m->t.k - 1) * m->t.columns;
    for (int64_t k = 0; k < m->t.columns; k++) {
        const double value = m->centres[k];
        m->centres[k] = last[k];
        last[k] = value;
    }
}

static void run_trial(kernel_device *device, trial t)
{
    static const struct {
        kernel_device_way way;
        const char *name;
    } ways[] = {{KERNEL_DEVICE_BEST, "best"},
                {KERNEL_DEVICE_OLD, "old"},
                {KERNEL_DEVICE_PLAIN, "plain"},
                {KERNEL_DEVICE_BEST, "best, with labels"}};
    made m = {.t = t};
    kernel_device_rows *held = NULL;
    const kernel_device_shape shape = {t.rows, t.columns, t.form, t.weighted, t.unit};
    make_rows(&m);
    make_units(&m);
    make_centres(&m);
    define_labels(&m);
    int status = device->open(&held, device, &shape);
    if (status == 0)
        status = put_all(&m, device, held);
    for (size_t w = 0; status == 0 && w < sizeof ways / sizeof *ways; w++) {
        status = device->measure(held, &m.units); /* forgets the labels of the way before */
        if (status == 0 && w == 3) {              /* other centres first, so that labels change */
            exchange(&m);                         /* unit vectors stay unit vectors */
            status = device->assign(held, m.centres, t.k, KERNEL_DEVICE_BEST);
            define_labels(&m);
            if (status == 0)
                check_sums(&m, device, held);
            exchange(&m);
            define_labels(&m);
        }
        if (status == 0)
            status = device->assign(held, m.centres, t.k, ways[w].way);
        if (status < 0)
            break;
        check_ending(&m, device, held, ways[w].name);
        check_sums(&m, device, held);
    }
    if (status == 0)
        check_rounds(&m, device, held);
    if (status < 0)
        printf("%s\n", device->message);
    complain(&m, "answers", status < 0);
    device->close(&held);
    free(m.values);
    free(m.exact);
    free(m.weights);
    free(m.centres);
    free(m.origin);
    free(m.inverse);
    free(m.label);
}

int main(int argc, char **argv)
{
    static fake_device fake;
    kernel_device *device = fake_device_init(&fake);
    const bool real = argc > 1 && argv[1][0] != '-', quick = !real || strcmp(argv[argc - 1], "--quick") == 0;
    static const int64_t sizes[][3] = {{1, 1, 1},         {70, 3, 5},        {1000, 20, 17},  {3000, 128, 300},
                                       {2500, 130, 1030}, {1300, 1000, 260}, {4000, 64, 2500}};
    if (kernel_choose(&cpu, NULL) < 0 || (real && kernel_device_choose(&device, argv[1]) < 0)) {
        printf("%s\n", shoal_error());
        return 77;
    }
    printf("%s: %s\n", device->name, device->about);
    int trials = 0;
    const bool brief = strcmp(argv[argc - 1], "--short") == 0; /* for a checker that makes it a hundred times slower */
    const size_t all = sizeof sizes / sizeof *sizes;
    for (size_t s = brief ? 2 : 0; s < (brief ? 4 : quick ? all - 4 : all); s++)
        for (int kind = 0; kind < (brief ? 1 : KINDS); kind++)
            for (int form = 0; form < 3; form++)
                for (int more = 0; more < 3; more++) {
                    trial t = {.kind = (enum kind)kind,
                               .form = (kernel_device_form)form,
                               .weighted = more == 1,
                               .unit = more == 2,
                               .rows = sizes[s][0],
                               .columns = sizes[s][1],
                               .k = sizes[s][2]};
                    if ((t.unit && form != KERNEL_DEVICE_FLOAT64) || (s > 3 && more != kind % 3))
                        continue;
                    if (form == KERNEL_DEVICE_UINT8 && kind != UNIFORM && kind != GRID && kind != MIXED)
                        continue;
                    run_trial(device, t);
                    trials++;
                }
    printf("%d trials, %d failures\n", trials, failures);
    return failures > 0;
}
