/* Checkpoints: what comes back is what went in, with all that the round keeps; anything else is refused, by a sentence
 * that names the place; and a place has the old one or the new one, never half of either, and nothing beside it. */
#include "job_support.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/file.h"
#include "engine/checkpoint.h"
#include "learn/partial.h"

enum { KEEPS = 3, MODEL = 40 };

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* Each part of another size, the middle one empty. */
static void keep_part(shoal_round *round, int64_t born, int i)
{
    size_t bytes = i == 1 ? 0 : 10 + 3 * (size_t)i;
    unsigned char *values = shoal_round_keep(round, bytes);
    assert_non_null(values);
    for (size_t k = 0; k < bytes; k++)
        values[k] = (unsigned char)(7 * i + (int)k);
    round->kept[i]->born = born;
}

static shoal_round *make_round(int keeps, size_t model_bytes)
{
    shoal_round *round = NULL;
    EXPECT_OK(shoal_round_new(&round, model_bytes));
    for (size_t i = 0; i < model_bytes; i++)
        ((unsigned char *)round->model)[i] = (unsigned char)(i * 31);
    for (int i = 0; i < keeps; i++)
        keep_part(round, 2 + 3 * i, i);
    round->number = 12;
    strcpy(round->phase, "run");
    round->step = 9;
    round->steps = 20;
    round->objective = 3.5;
    round->layout.cells = 2;
    round->layout.cell[0] = (shoal_cell){"sums", SHOAL_CELL_SUM, 6, 0, true};
    round->layout.cell[1] = (shoal_cell){"labels", SHOAL_CELL_ROW, 0, 4, false};
    round->layout.memo_row_bytes = 12;
    round->layout.carry_from = 11;
    round->layout.writes_memo = true;
    return round;
}

static engine_checkpoint make_checkpoint(int keeps, size_t model_bytes)
{
    engine_checkpoint out = {.round = make_round(keeps, model_bytes), .seconds = 12.25, .rounds = 12, .phases = 2};
    for (size_t i = 0; i < sizeof out.identity; i++)
        out.identity[i] = (unsigned char)(200 - i);
    out.phase[0] = (shoal_phase){"load", 0.5, 0};
    out.phase[1] = (shoal_phase){"a phase of 23 letters..", 11.75, 12};
    for (int i = 0; i < SHOAL_COUNTERS; i++)
        out.counter[i] = INT64_MIN + i;
    return out;
}

typedef struct encoded {
    unsigned char *bytes;
    size_t size;
} encoded;

static encoded encode(const engine_checkpoint *checkpoint)
{
    encoded out = {0};
    void *bytes = NULL;
    EXPECT_OK(engine_checkpoint_encode(&bytes, &out.size, checkpoint));
    out.bytes = bytes;
    return out;
}

static encoded make_encoded(int keeps, size_t model_bytes)
{
    engine_checkpoint checkpoint = make_checkpoint(keeps, model_bytes);
    encoded out = encode(&checkpoint);
    engine_checkpoint_release(&checkpoint);
    return out;
}

static void expect_same_rounds(const shoal_round *a, const shoal_round *b)
{
    assert_int_equal(a->number, b->number);
    assert_string_equal(a->phase, b->phase);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(&a->objective, &b->objective, sizeof a->objective);
    assert_memory_equal(&a->change, &b->change, sizeof a->change); /* NaN here */
    assert_int_equal(a->model_bytes, b->model_bytes);
    assert_memory_equal(a->model, b->model, a->model_bytes);
    assert_true(learn_layout_equal(&a->layout, &b->layout));
    assert_int_equal(a->layout.memo_row_bytes, b->layout.memo_row_bytes);
    assert_int_equal(a->layout.carry_from, b->layout.carry_from);
    assert_int_equal(a->layout.writes_memo, b->layout.writes_memo);
    assert_int_equal(a->keeps, b->keeps);
    for (int i = 0; i < a->keeps; i++) {
        assert_int_equal(a->kept[i]->born, b->kept[i]->born);
        assert_int_equal(a->kept[i]->bytes, b->kept[i]->bytes);
        assert_int_equal(a->kept[i]->holders, 1);
        assert_int_equal((uintptr_t)a->kept[i]->values % 64, 0);
        assert_memory_equal(a->kept[i]->values, b->kept[i]->values, a->kept[i]->bytes);
    }
}

static void expect_same(const engine_checkpoint *a, const engine_checkpoint *b)
{
    assert_memory_equal(a->identity, b->identity, sizeof a->identity);
    assert_true(a->seconds == b->seconds);
    assert_int_equal(a->rounds, b->rounds);
    assert_int_equal(a->phases, b->phases);
    for (int i = 0; i < a->phases; i++) {
        assert_string_equal(a->phase[i].name, b->phase[i].name);
        assert_true(a->phase[i].seconds == b->phase[i].seconds);
        assert_int_equal(a->phase[i].rounds, b->phase[i].rounds);
    }
    assert_memory_equal(a->counter, b->counter, sizeof a->counter);
    expect_same_rounds(a->round, b->round);
}

static void expect_refused(const void *bytes, size_t size, const char *words)
{
    engine_checkpoint out;
    unsigned char *copy = malloc(size ? size : 1); /* so that a sanitizer sees accesses beyond its end */
    memcpy(copy, bytes, size);
    EXPECT_FAIL(engine_checkpoint_decode(&out, copy, size, "the-place"), SHOAL_BROKEN, words);
    assert_non_null(strstr(shoal_error(), "the-place"));
    assert_null(out.round);
    free(copy);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void test_there_and_back(void **state)
{
    (void)state;
    for (int keeps = 0; keeps <= KEEPS; keeps++) {
        engine_checkpoint before = make_checkpoint(keeps, keeps == 2 ? 0 : MODEL), after;
        encoded once = encode(&before);
        EXPECT_OK(engine_checkpoint_decode(&after, once.bytes, once.size, "x"));
        expect_same(&after, &before);
        encoded twice = encode(&after);
        assert_int_equal(once.size, twice.size);
        assert_memory_equal(once.bytes, twice.bytes, once.size);
        engine_checkpoint_release(&after);
        assert_null(after.round);
        engine_checkpoint_release(&after); /* harmless once more */
        engine_checkpoint_release(&before);
        base_free(&once.bytes);
        base_free(&twice.bytes);
    }
}

/* As many phases and things kept as there can be. */
static void test_the_most_there_can_be(void **state)
{
    (void)state;
    engine_checkpoint before = make_checkpoint(0, 1), after;
    before.phases = SHOAL_PHASES_MOST;
    for (int i = 0; i < SHOAL_PHASES_MOST; i++)
        before.phase[i] = (shoal_phase){"a phase of 23 letters..", i, i};
    before.round->number = 100;
    for (int i = 0; i < SHOAL_KEPT_MOST; i++)
        keep_part(before.round, 1 + i, i);
    encoded bytes = encode(&before);
    EXPECT_OK(engine_checkpoint_decode(&after, bytes.bytes, bytes.size, "x"));
    expect_same(&after, &before);
    engine_checkpoint_release(&after);
    engine_checkpoint_release(&before);
    base_free(&bytes.bytes);
}

static void test_every_damaged_byte_is_found(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    static const unsigned char flips[] = {1, 0x80, 0xff};
    for (size_t i = 0; i < of.size; i++)
        for (size_t k = 0; k < sizeof flips; k++) {
            of.bytes[i] ^= flips[k];
            expect_refused(of.bytes, of.size, i < 8 ? "is not a shoal checkpoint" : "the checkpoint is");
            of.bytes[i] ^= flips[k];
        }
    base_free(&of.bytes);
}

static void test_every_other_length_is_found(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    for (size_t size = 0; size < of.size; size++)
        expect_refused(of.bytes, size, size < 8 ? "is not a shoal checkpoint" : "cut short");
    unsigned char *longer = calloc(1, of.size + 9);
    memcpy(longer, of.bytes, of.size);
    expect_refused(longer, of.size + 1, "too long");
    expect_refused(longer, of.size + 9, "too long");
    free(longer);
    base_free(&of.bytes);
}

static void put_number(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* Makes the length and the checksum fit whatever the rest is, as only someone could who means it. */
static void seal(unsigned char *bytes, size_t size)
{
    put_number(bytes + 16, size, 8);
    put_number(bytes + 12, base_crc32c(base_crc32c(0, bytes, 12), bytes + 16, size - 16), 4);
}

static void test_another_version_is_told_from_damage(void **state)
{
    (void)state;
    encoded of = make_encoded(0, MODEL);
    put_number(of.bytes + 8, 2, 4);
    expect_refused(of.bytes, of.size, "damaged");
    seal(of.bytes, of.size);
    expect_refused(of.bytes, of.size, "another version of shoal");
    base_free(&of.bytes);
}

/* With a checksum that fits, every byte may be anything: refused or read, never a crash, and never memory that is not
 * there. */
static void test_sealed_nonsense_is_harmless(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    int refused = 0;
    for (size_t i = 24; i < of.size; i++) {
        unsigned char old = of.bytes[i];
        for (size_t k = 0; k < sizeof values; k++) {
            engine_checkpoint out;
            of.bytes[i] = values[k];
            seal(of.bytes, of.size);
            int status = engine_checkpoint_decode(&out, of.bytes, of.size, "x");
            if (status != SHOAL_OK)
                assert_int_equal(status, SHOAL_BROKEN);
            refused += status < 0;
            engine_checkpoint_release(&out);
        }
        of.bytes[i] = old;
    }
    assert_true(refused > 100);
    for (size_t size = 24; size < of.size; size++) {
        unsigned char *cut = malloc(size);
        memcpy(cut, of.bytes, size);
        seal(cut, size);
        expect_refused(cut, size, "is malformed");
        free(cut);
    }
    base_free(&of.bytes);
}

/* Where a field lies whose eight bytes are `value`. */
static unsigned char *find_number(encoded of, uint64_t value)
{
    unsigned char wanted[8];
    put_number(wanted, value, sizeof wanted);
    unsigned char *at = memmem(of.bytes, of.size, wanted, sizeof wanted);
    assert_non_null(at);
    return at;
}

static void test_damaged_sizes_ask_for_no_memory(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 1 << 20, UINT64_C(1) << 40, INT64_MAX / 16, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int field = 0; field < 2; field++) {
            encoded of = make_encoded(1, 12345);
            put_number(find_number(of, field ? 12345 : 10), sizes[i], 8); /* the model's, and what it keeps */
            seal(of.bytes, of.size);
            expect_refused(of.bytes, of.size, "is malformed");
            base_free(&of.bytes);
        }
}

/* What is kept has a checksum of its own, too, in the round: values that are not those it had are refused. */
static void test_what_is_kept_is_checked(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    of.bytes[of.size - 1] ^= 1;
    seal(of.bytes, of.size);
    expect_refused(of.bytes, of.size, "is malformed");
    base_free(&of.bytes);
}

static void test_numbers_that_make_no_sense(void **state)
{
    (void)state;
    static const double seconds[] = {-1, INFINITY, NAN};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        for (int where = 0; where < 2; where++) {
            engine_checkpoint of = make_checkpoint(0, MODEL);
            *(where ? &of.phase[1].seconds : &of.seconds) = seconds[i];
            encoded bytes = encode(&of);
            expect_refused(bytes.bytes, bytes.size, "is malformed");
            base_free(&bytes.bytes);
            engine_checkpoint_release(&of);
        }
    engine_checkpoint of = make_checkpoint(0, MODEL);
    of.rounds = -1;
    encoded bytes = encode(&of);
    expect_refused(bytes.bytes, bytes.size, "is malformed");
    base_free(&bytes.bytes);
    engine_checkpoint_release(&of);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Everything in the test's folder but a store's own. */
static int count_here(void)
{
    int count = 0;
    DIR *folder = opendir(job_folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void expect_there(const char *place, encoded of)
{
    void *bytes = NULL;
    size_t size = 0;
    EXPECT_OK(engine_checkpoint_get(&bytes, &size, place));
    assert_int_equal(size, of.size);
    assert_memory_equal(bytes, of.bytes, size);
    base_free(&bytes);
}

static void expect_not_got(const char *place, int status, const char *words)
{
    void *bytes = (void *)place;
    size_t size = 1;
    EXPECT_FAIL(engine_checkpoint_get(&bytes, &size, place), status, words);
    assert_null(bytes);
    assert_int_equal(size, 0);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The life of a checkpoint in any place. */
static void live(const char *place)
{
    encoded first = make_encoded(KEEPS, MODEL), second = make_encoded(0, 70000);
    expect_not_got(place, SHOAL_ABSENT, "");
    assert_non_null(strstr(shoal_error(), strrchr(place, '/')));
    EXPECT_OK(engine_checkpoint_remove(place));
    EXPECT_OK(engine_checkpoint_check(place));
    expect_not_got(place, SHOAL_ABSENT, "");
    EXPECT_OK(engine_checkpoint_put(place, first.bytes, first.size));
    expect_there(place, first);
    EXPECT_OK(engine_checkpoint_check(place));
    expect_there(place, first);
    EXPECT_OK(engine_checkpoint_put(place, second.bytes, second.size));
    expect_there(place, second);
    EXPECT_OK(engine_checkpoint_put(place, first.bytes, first.size));
    expect_there(place, first);
    EXPECT_OK(engine_checkpoint_remove(place));
    expect_not_got(place, SHOAL_ABSENT, "");
    EXPECT_OK(engine_checkpoint_remove(place));
    base_free(&first.bytes);
    base_free(&second.bytes);
}

static void test_a_file(void **state)
{
    (void)state;
    live(at("kmeans.checkpoint"));
    live(at("with:colon"));
    assert_int_equal(count_here(), 0);
}

static void test_a_name_in_this_folder(void **state)
{
    (void)state;
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    encoded of = make_encoded(1, MODEL);
    assert_int_equal(chdir(job_folder), 0);
    int put = engine_checkpoint_put("kmeans.checkpoint", of.bytes, of.size);
    int colon = engine_checkpoint_put("./kmeans:1", of.bytes, of.size);
    assert_int_equal(fchdir(before), 0);
    close(before);
    EXPECT_OK(put);
    EXPECT_OK(colon);
    expect_there(at("kmeans.checkpoint"), of);
    expect_there(at("kmeans:1"), of);
    base_free(&of.bytes);
}

static void test_a_link_stays_one(void **state)
{
    (void)state;
    encoded of = make_encoded(1, MODEL);
    struct stat info;
    assert_int_equal(mkdir(at("elsewhere"), 0777), 0);
    assert_int_equal(symlink("elsewhere/file", at("link")), 0);
    EXPECT_OK(engine_checkpoint_put(at("link"), of.bytes, of.size));
    expect_there(at("elsewhere/file"), of);
    EXPECT_OK(engine_checkpoint_remove(at("link")));
    assert_int_equal(lstat(at("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    expect_not_got(at("elsewhere/file"), SHOAL_ABSENT, "elsewhere/file");
    expect_not_got(at("link"), SHOAL_ABSENT, "link");
    base_free(&of.bytes);
}

static void expect_impossible(const char *place, int status, const char *words)
{
    encoded of = make_encoded(1, MODEL);
    EXPECT_FAIL(engine_checkpoint_put(place, of.bytes, of.size), status, words);
    EXPECT_FAIL(engine_checkpoint_check(place), status, words);
    base_free(&of.bytes);
}

static void test_places_that_can_not_be(void **state)
{
    (void)state;
    assert_int_equal(mkdir(at("folder"), 0777), 0);
    assert_int_equal(mkfifo(at("pipe"), 0666), 0);
    write_file(at("text"), "abc", 3);
    int before = count_here();
    expect_impossible(at("nowhere/x"), SHOAL_SYSTEM, "nowhere/x: can't write");
    expect_impossible(at("text/x"), SHOAL_SYSTEM, "text/x: can't write");
    expect_impossible(at("folder"), SHOAL_SYSTEM, "it is a folder");
    expect_impossible(at("pipe"), SHOAL_SYSTEM, "it is not a plain file");
    expect_impossible("", SHOAL_SYSTEM, "without a name");
    expect_impossible("/dev/null", SHOAL_SYSTEM, "/dev/null: can't be a checkpoint: it is not a plain file");
    expect_not_got(at("folder"), SHOAL_SYSTEM, "it is a folder");
    expect_not_got(at("pipe"), SHOAL_SYSTEM, "it is not a plain file"); /* and does not wait for a writer */
    expect_not_got(at("text/x"), SHOAL_SYSTEM, "text/x: can't read");
    EXPECT_FAIL(engine_checkpoint_remove(at("folder")), SHOAL_SYSTEM, "folder: can't remove");
    assert_int_equal(count_here(), before);
}

static void test_files_that_are_something_else(void **state)
{
    (void)state;
    write_file(at("text"), "abc", 3);
    expect_not_got(at("text"), SHOAL_BROKEN, "text: is not a shoal checkpoint");
    write_file(at("empty"), "", 0);
    expect_not_got(at("empty"), SHOAL_BROKEN, "empty: is not a shoal checkpoint");
    encoded of = make_encoded(KEEPS, MODEL);
    for (size_t size = 0; size < of.size; size++) {
        write_file(at("cut"), of.bytes, size);
        expect_not_got(at("cut"), SHOAL_BROKEN, "cut: ");
    }
    write_file(at("huge"), of.bytes, of.size); /* of which no more than the first bytes are read */
    assert_int_equal(truncate(at("huge"), (off_t)1 << 42), 0);
    expect_not_got(at("huge"), SHOAL_BROKEN, "huge: the checkpoint is too long");
    unlink(at("huge"));
    put_number(of.bytes + 16, UINT64_C(1) << 60, 8);
    write_file(at("length"), of.bytes, of.size);
    expect_not_got(at("length"), SHOAL_BROKEN, "length: the checkpoint is cut short");
    base_free(&of.bytes);
}

/* A disk that takes no more leaves the old one. */
static void test_a_full_disk_leaves_the_old_one(void **state)
{
    (void)state;
    encoded old = make_encoded(1, MODEL), fresh = make_encoded(1, 1 << 20);
    EXPECT_OK(engine_checkpoint_put(at("x"), old.bytes, old.size));
    struct rlimit callers, small = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &callers), 0);
    small = (struct rlimit){.rlim_cur = 100000, .rlim_max = callers.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* what a write beyond the limit would end us by */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = engine_checkpoint_put(at("x"), fresh.bytes, fresh.size);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &callers), 0);
    signal(SIGXFSZ, before);
    assert_int_equal(status, SHOAL_SYSTEM);
    assert_non_null(strstr(shoal_error(), "x: can't write"));
    assert_int_equal(count_here(), 1);
    expect_there(at("x"), old);
    base_free(&old.bytes);
    base_free(&fresh.bytes);
}

static void test_stores(void **state)
{
    (void)state;
    char url[600];
    shoal_store *made = open_store(at("store"));
    snprintf(url, sizeof url, "dir:%s", at("store/runs/kmeans.checkpoint"));
    live(url);
    shoal_listing page = {0};
    EXPECT_OK(shoal_store_list(made, "", NULL, &page, shoal_after(30)));
    assert_int_equal(page.count, 0);
    shoal_listing_release(&page);
    shoal_store_close(&made);
    shoal_store *held = open_store("mem:checkpoints"); /* exists while someone has it open */
    live("mem:checkpoints/a/b");
    shoal_store_close(&held);
}

static void test_blobs_that_are_something_else(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    shoal_store *held = open_store("mem:checkpoints");
    EXPECT_OK(shoal_store_put(held, "text", "abc", 3, NULL, NULL, shoal_after(30)));
    expect_not_got("mem:checkpoints/text", SHOAL_BROKEN, "mem:checkpoints/text: is not a shoal checkpoint");
    for (size_t size = 0; size < of.size; size++) {
        EXPECT_OK(shoal_store_put(held, "cut", of.bytes, size, NULL, NULL, shoal_after(30)));
        expect_not_got("mem:checkpoints/cut", SHOAL_BROKEN, "mem:checkpoints/cut: ");
    }
    shoal_store_close(&held);
    base_free(&of.bytes);
}

static void test_urls_that_can_not_be(void **state)
{
    (void)state;
    char url[600];
    shoal_store *made = open_store(at("store"));
    shoal_store_close(&made);
    expect_impossible("nobody://knows/this", SHOAL_USAGE, "unknown kind of store 'nobody'");
    expect_not_got("gen:blobs", SHOAL_USAGE, "unknown kind of store 'gen'");
    snprintf(url, sizeof url, "dir:%s", at("store"));
    expect_impossible(url, SHOAL_USAGE, "names a store, but no blob in it");
    expect_impossible("mem:checkpoints/x/", SHOAL_USAGE, "segment");
    snprintf(url, sizeof url, "dir:%s", at("nowhere/x"));
    expect_impossible(url, SHOAL_SYSTEM, "nowhere/x: there is no store at");
    expect_not_got(url, SHOAL_SYSTEM, "there is no store at");
    EXPECT_FAIL(engine_checkpoint_remove(url), SHOAL_SYSTEM, "there is no store at");
    expect_impossible("s3://u:secret@b/x", SHOAL_USAGE, "must not contain a user");
    assert_null(strstr(shoal_error(), "secret@"));
    assert_int_equal(access(at("nowhere"), F_OK), -1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef int attempt(const char *place, encoded of);

static int try_to_code(const char *place, encoded of)
{
    engine_checkpoint read;
    void *bytes = NULL;
    size_t size = 0;
    int status = engine_checkpoint_decode(&read, of.bytes, of.size, place);
    if (status == SHOAL_OK)
        status = engine_checkpoint_encode(&bytes, &size, &read);
    if (status == SHOAL_OK)
        assert_memory_equal(bytes, of.bytes, size);
    engine_checkpoint_release(&read);
    base_free(&bytes);
    return status;
}

static int try_to_put(const char *place, encoded of)
{
    return engine_checkpoint_put(place, of.bytes, of.size);
}

static int try_to_get(const char *place, encoded of)
{
    void *bytes = NULL;
    size_t size = 0;
    int status = engine_checkpoint_get(&bytes, &size, place);
    assert_true((bytes != NULL) == (status == SHOAL_OK));
    assert_int_equal(size, bytes ? of.size : 0);
    base_free(&bytes);
    return status;
}

static int try_to_check(const char *place, encoded of)
{
    (void)of;
    return engine_checkpoint_check(place);
}

static int try_to_remove(const char *place, encoded of)
{
    (void)of;
    return engine_checkpoint_remove(place);
}

/* Fails every allocation in turn; the attempt says so each time, leaves nothing, and works when there is memory. */
static void starve(attempt *what, const char *place, encoded of, int files)
{
    int status = SHOAL_MEMORY;
    for (int64_t n = 0; status != SHOAL_OK; n++) {
        base_memory_fail_after(n);
        status = what(place, of);
        base_memory_fail_after(-1);
        assert_true(n < 1000);
        if (status != SHOAL_OK) {
            assert_int_equal(status, SHOAL_MEMORY);
            assert_int_equal(count_here(), files);
        }
    }
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    encoded of = make_encoded(KEEPS, MODEL);
    starve(try_to_code, "x", of, 0);
    starve(try_to_check, at("x"), of, 0);
    starve(try_to_put, at("x"), of, 0);
    starve(try_to_get, at("x"), of, 1);
    starve(try_to_remove, at("x"), of, 1);
    shoal_store *held = open_store("mem:checkpoints");
    starve(try_to_check, "mem:checkpoints/x", of, 0);
    starve(try_to_put, "mem:checkpoints/x", of, 0);
    starve(try_to_get, "mem:checkpoints/x", of, 0);
    starve(try_to_remove, "mem:checkpoints/x", of, 0);
    shoal_store_close(&held);
    base_free(&of.bytes);
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, job_setup, job_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_the_most_there_can_be),
        cmocka_unit_test(test_every_damaged_byte_is_found),
        cmocka_unit_test(test_every_other_length_is_found),
        cmocka_unit_test(test_another_version_is_told_from_damage),
        cmocka_unit_test(test_sealed_nonsense_is_harmless),
        cmocka_unit_test(test_damaged_sizes_ask_for_no_memory),
        cmocka_unit_test(test_what_is_kept_is_checked),
        cmocka_unit_test(test_numbers_that_make_no_sense),
        IN_A_FOLDER(test_a_file),
        IN_A_FOLDER(test_a_name_in_this_folder),
        IN_A_FOLDER(test_a_link_stays_one),
        IN_A_FOLDER(test_places_that_can_not_be),
        IN_A_FOLDER(test_files_that_are_something_else),
        IN_A_FOLDER(test_a_full_disk_leaves_the_old_one),
        IN_A_FOLDER(test_stores),
        IN_A_FOLDER(test_blobs_that_are_something_else),
        IN_A_FOLDER(test_urls_that_can_not_be),
        IN_A_FOLDER(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
