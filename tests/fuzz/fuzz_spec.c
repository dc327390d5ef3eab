/* Fuzzes the reader of specs.  What is read is whole: its slices cover all grains, its tree is one of them, nothing
 * overflows, and it is written to bytes that read back and are written to the same bytes.  A round 0 that passes the
 * check of its learner is done, over rows of zeros. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/store/job_model.h"
#include "engine/store/job_spec.h"
#include "forged.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const job_spec *spec)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < spec->slices; i++) {
        if (job_slice_first_row(spec, i) != rows || job_slice_rows(spec, i) < 1)
            abort();
        rows += job_slice_rows(spec, i);
    }
    if (rows != spec->shape.rows || spec->tree.count[0] != spec->slices || spec->first->number != 0 || !spec->place)
        abort();
}

static void write_again(job_spec *spec)
{
    void *once = NULL, *twice = NULL;
    size_t size = 0, size_twice = 0;
    job_spec *back = NULL;
    if (job_spec_encode(&once, &size, spec) < 0 || job_spec_decode(&back, spec->id, once, size) < 0 ||
        job_spec_encode(&twice, &size_twice, back) < 0)
        abort();
    if (size != size_twice || memcmp(once, twice, size) != 0 || memcmp(spec->sha256, back->sha256, BASE_HASH_SIZE) != 0)
        abort();
    job_spec_free(&back);
    base_free(&once);
    base_free(&twice);
}

static void do_first_round(job_spec *spec)
{
    const learn_face *face = learn_face_find(spec->algorithm);
    const shoal_algorithm *algorithm = face && !face->runs_code ? learn_algorithm_find(spec->algorithm) : NULL;
    if (algorithm && learn_round_check(algorithm, spec->first, &spec->shape) == SHOAL_OK)
        do_round(algorithm, spec->first, &spec->shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    job_spec *spec = NULL;
    if (job_spec_decode(&spec, "fuzz", bytes, size) < 0) {
        if (spec || shoal_error()[0] == '\0')
            abort();
        return 0;
    }
    check(spec);
    write_again(spec);
    do_first_round(spec);
    job_spec_free(&spec);
    return 0;
}
