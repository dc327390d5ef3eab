/* Labels: threads
 * The input of a run on ranks: what has to be parsed is parsed by the first rank of each host and lent to the others,
 * all have what load would have given them, and what fails or differs anywhere is told to all.  The ranks are
 * threads of this process. */
#include <sys/stat.h>
#include <sys/types.h>

#include "data_support.h"

static ssize_t readlink_here(const char *path, char *out, size_t size);
static pid_t process_here(void);
static int wrap_here(shoal_data **out, const void *values, int64_t rows, int64_t columns, shoal_type type);
#define readlink readlink_here
#define getpid process_here
#define shoal_data_wrap wrap_here
#define run_load_alone load_here
#include "run/ranks_data.c"
#undef readlink
#undef getpid
#undef shoal_data_wrap
#undef run_load_alone

#include "ranks_here.h"

enum { RANKS_MOST = 7 };
static const char table[] = "alpha,beta\n1,2\n3,4\n5,6\n";
static const double values[] = {1, 2, 3, 4, 5, 6}, weights[] = {0.5, 1, 2};

/* ---- hosts that are none ----------------------------------------------------------------------------------------- */

static _Thread_local int of_rank;
static int ranks_a_host; /* 0: all are on one */
static bool without_namespaces, unseen, wraps_nothing;

static ssize_t readlink_here(const char *path, char *out, size_t size)
{
    int host = ranks_a_host && strstr(path, "mnt") ? of_rank / ranks_a_host : 0;
    return without_namespaces ? -1 : snprintf(out, size, "%s:[%d]", path, host);
}

static pid_t process_here(void)
{
    return unseen ? 1 << 29 : getpid(); /* there is no such process */
}

static int wrap_here(shoal_data **out, const void *from, int64_t rows, int64_t columns, shoal_type type)
{
    return wraps_nothing ? shoal_fail(SHOAL_MEMORY, "no room") : shoal_data_wrap(out, from, rows, columns, type);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct scene {
    char path[RANKS_MOST][512]; /* of each rank */
    bool weighted, joins;
    bool expects_names, alone;
    bool replaces;            /* rank 1 writes the blob again */
    bool read_once;           /* from a pipe */
    bool loaded[RANKS_MOST];  /* who called load */
    bool weighed[RANKS_MOST]; /* who read the weights */
    int status[RANKS_MOST];
    char message[RANKS_MOST][512];
    char wrong[512]; /* what a rank that was fine had wrong; "" when nothing */
} scene;

static shoal_store *store;

static void put_blob(void)
{
    char npy[4096];
    FILE *file = fopen(file_path("t.npy"), "r");
    size_t size = fread(npy, 1, sizeof npy, file);
    fclose(file);
    if (shoal_store_put(store, "t", npy, size, NULL, NULL, shoal_after(20)) < 0)
        abort();
}

static _Thread_local scene *seen; /* by this rank */

int load_here(shoal_outcome *job)
{
    scene *of = seen;
    of->loaded[of_rank] = true;
    if (of->replaces && of_rank == 1)
        put_blob();
    int status = strncmp(of->path[of_rank], "mem:", 4) == 0
                     ? shoal_job_data_open(&job->data, of->path[of_rank], NULL, shoal_after(20))
                     : shoal_data_open(&job->data, of->path[of_rank], NULL);
    if (status == SHOAL_OK)
        status = run_note_data(job, "DATA", shoal_data_rows(job->data), shoal_data_columns(job->data),
                               shoal_data_type(job->data));
    job->read_once = of->read_once;
    if (status == SHOAL_OK && of->weighted && !job->weights) {
        of->weighed[of_rank] = true;
        status = base_alloc(&job->own_weights, 3, sizeof *weights, "weights");
        if (status == SHOAL_OK)
            memcpy(job->own_weights, weights, sizeof weights);
        job->weights = job->own_weights;
    }
    if (status == SHOAL_OK && of->joins) { /* rows that this process made */
        shoal_data_free(&job->data);
        status = shoal_data_wrap(&job->data, values, 3, 2, SHOAL_FLOAT64);
    }
    return status;
}

/* As shoal_outcome_free does. */
static void release(shoal_outcome *job)
{
    shoal_data_free(&job->data);
    shoal_data_free(&job->lent_weights);
    base_free(&job->own_weights);
    base_free(&job->data_name);
}

static void look(scene *of, const shoal_outcome *job)
{
    const char *wrong = NULL;
    const void *read = NULL;
    unsigned char scratch[sizeof values];
    if (data_place_of(job->data).kind == DATA_IN_BLOB)
        return;
    if (strcmp(job->data_name, "DATA") != 0 || job->rows != 3 || job->columns != 2 || shoal_data_rows(job->data) != 3)
        wrong = "name or shape";
    else if (shoal_data_read(&read, job->data, 0, 3, scratch) < 0)
        wrong = "rows that can't be read";
    else if (of->expects_names && (memcmp(read, values, sizeof values) != 0 || job->type != SHOAL_FLOAT64))
        wrong = "rows";
    else if (of->expects_names && strcmp(shoal_data_column_name(job->data, 1), "beta") != 0)
        wrong = "names of columns";
    else if (of->expects_names && strcmp(shoal_data_path(job->data), of->path[of_rank]) != 0)
        wrong = "the path of another host's";
    else if (of->alone && job->lent_weights)
        wrong = "what is lent to nobody";
    else if (of->weighted != (job->weights != NULL) || (job->weights && memcmp(job->weights, weights, sizeof weights)))
        wrong = "weights";
    if (wrong)
        snprintf(of->wrong, sizeof of->wrong, "rank %d: %s", of_rank, wrong);
}

static void body(shoal_ranks *ranks, void *context)
{
    scene *of = context;
    shoal_outcome job = {0};
    of_rank = ranks->rank;
    seen = of;
    int status = of->status[of_rank] = run_ranks_load(&job, ranks);
    if (status < 0)
        snprintf(of->message[of_rank], sizeof of->message[of_rank], "%s", shoal_error());
    else
        look(of, &job);
    release(&job);
}

static int64_t run(scene *of, int ranks)
{
    memset(of->loaded, 0, sizeof of->loaded);
    memset(of->weighed, 0, sizeof of->weighed);
    of->wrong[0] = '\0';
    ranks_here_end end = ranks_here_run(ranks, body, of, NULL);
    if (end.aborted)
        fail_msg("rank %d: %s", end.rank, end.message);
    assert_string_equal(of->wrong, "");
    int64_t loaded = 0;
    for (int i = 0; i < ranks; i++)
        loaded += of->loaded[i];
    return loaded;
}

static scene scene_of(const char *path)
{
    scene of = {0};
    for (int i = 0; i < RANKS_MOST; i++)
        snprintf(of.path[i], sizeof of.path[i], "%s", path);
    return of;
}

static void expect_fine(const scene *of, int ranks)
{
    for (int i = 0; i < ranks; i++)
        if (of->status[i] != SHOAL_OK)
            fail_msg("rank %d: %s", i, of->message[i]);
}

static void expect_failure(const scene *of, int ranks, int status, const char *message)
{
    for (int i = 0; i < ranks; i++) {
        assert_int_equal(of->status[i], status);
        assert_string_equal(of->message[i], message);
    }
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static int start(void **state)
{
    ranks_a_host = 0;
    without_namespaces = unseen = wraps_nothing = false;
    if (folder_setup(state) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(file_path(i ? "another.csv" : "t.csv"), "w");
        if (!file || fputs(table, file) < 0 || fclose(file) != 0)
            return -1;
    }
    return shoal_npy_write(file_path("t.npy"), values, SHOAL_FLOAT64, 2, (const int64_t[]){3, 2});
}

static void alone(void **state)
{
    scene of = scene_of(file_path("t.csv"));
    shoal_outcome job = {0};
    (void)state;
    of_rank = 0;
    seen = &of;
    assert_int_equal(run_ranks_load(&job, NULL), SHOAL_OK);
    assert_true(of.loaded[0]);
    release(&job);
}

static void text_is_parsed_once_a_host(void **state)
{
    const int sizes[] = {1, 2, 3, 7};
    (void)state;
    for (int i = 0; i < 16; i++) {
        const int ranks = sizes[i / 4];
        scene of = scene_of(file_path("t.csv"));
        of.weighted = i % 2 != 0;
        of.expects_names = true;
        of.alone = ranks == 1;
        ranks_a_host = i % 4 < 2 ? 0 : 2;
        for (int rank = 2; ranks_a_host && rank < ranks; rank++)
            snprintf(of.path[rank], sizeof of.path[rank], "%s", file_path(rank < 4 ? "another.csv" : "t.csv"));
        int before = count_descriptors();
        assert_int_equal(run(&of, ranks), ranks_a_host ? (ranks + 1) / 2 : 1);
        expect_fine(&of, ranks);
        for (int rank = 0; rank < ranks; rank++)
            assert_int_equal(of.loaded[rank], ranks_a_host ? rank % 2 == 0 : rank == 0);
        assert_int_equal(count_descriptors(), before);
    }
}

static void rows_beside_labels(void **state)
{
    scene of = scene_of(file_path("t.csv"));
    (void)state;
    of.joins = true;
    assert_int_equal(run(&of, 4), 1);
    expect_fine(&of, 4);
}

static void who_shares_nothing_parses(void **state)
{
    scene of = scene_of(file_path("t.csv"));
    (void)state;
    of.expects_names = of.weighted = true;
    without_namespaces = true;
    assert_int_equal(run(&of, 3), 3);
    without_namespaces = false;
    unseen = true;
    assert_int_equal(run(&of, 3), 3);
    expect_fine(&of, 3);
}

/* Whoever opened a pipe that was read already would wait forever. */
static void what_was_read_from_a_pipe(void **state)
{
    const char *paths[] = {file_path("t.csv"), file_path("t.npy")}; /* the rows, or only the weights */
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene of = scene_of(paths[i]);
        of.weighted = of.read_once = true;
        unseen = false;
        assert_int_equal(run(&of, 3), i ? 3 : 1);
        expect_fine(&of, 3);
        assert_true(of.weighed[0] && !of.weighed[1] && !of.weighed[2]);
        unseen = true;
        assert_int_equal(run(&of, 3), 1);
        for (int rank = 0; rank < 3; rank++) {
            assert_int_equal(of.status[rank], SHOAL_SYSTEM);
            assert_non_null(strstr(of.message[rank], "rank 1 on "));
            assert_non_null(strstr(of.message[rank], "can't see the rows that another process has at /proc/"));
        }
    }
}

static void what_need_not_be_parsed(void **state)
{
    const char *paths[] = {file_path("t.npy"), "gen:uniform?rows=3&cols=2"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        scene of = scene_of(paths[i]);
        of.weighted = true;
        assert_int_equal(run(&of, 3), 3);
        expect_fine(&of, 3);
        assert_true(of.weighed[0] && !of.weighed[1] && !of.weighed[2]);
        unseen = true;
        assert_int_equal(run(&of, 3), 3);
        expect_fine(&of, 3);
        assert_true(of.weighed[0] && of.weighed[1] && of.weighed[2]);
        unseen = false;
    }
}

/* The rows were lent when it turned out that the weights can't be. */
static void weights_that_cant_be_lent(void **state)
{
    scene of = scene_of(file_path("t.csv"));
    (void)state;
    of.weighted = wraps_nothing = true;
    assert_int_equal(run(&of, 3), 1);
    expect_failure(&of, 3, SHOAL_MEMORY, "no room");
}

static void failures(void **state)
{
    char message[1200], host[ENGINE_HOST_BYTES], none[512];
    scene of = scene_of(file_path("none.csv"));
    (void)state;
    snprintf(none, sizeof none, "%s", file_path("none.csv"));
    snprintf(message, sizeof message, "%s: can't read: No such file or directory", none);
    assert_int_equal(run(&of, 3), 1);
    expect_failure(&of, 3, SHOAL_SYSTEM, message); /* all of them have it */
    ranks_a_host = 2;
    assert_int_equal(run(&of, 5), 3);
    expect_failure(&of, 5, SHOAL_SYSTEM, message);
    engine_host(host);
    snprintf(message, sizeof message, "rank 2 on %s: %s: can't read: No such file or directory", host, none);
    of = scene_of(file_path("t.csv"));
    snprintf(of.path[2], sizeof of.path[2], "%s", none);
    assert_int_equal(run(&of, 5), 3);
    expect_failure(&of, 5, SHOAL_SYSTEM, message);
    of = scene_of(file_path("t.npy"));
    snprintf(of.path[3], sizeof of.path[3], "%s", none);
    snprintf(message, sizeof message, "rank 3 on %s: %s: can't read: No such file or directory", host, none);
    run(&of, 5);
    expect_failure(&of, 5, SHOAL_SYSTEM, message);
}

static void other_data_elsewhere(void **state)
{
    const char *others[] = {"gen:uniform?rows=4&cols=2&type=float64", "gen:uniform?rows=3&cols=3&type=float64",
                            "gen:uniform?rows=3&cols=2&type=float32"};
    char host[ENGINE_HOST_BYTES], expected[256];
    (void)state;
    engine_host(host);
    snprintf(expected, sizeof expected,
             "rank 4 on %s has another number of rows or columns, or type of values, in DATA", host);
    for (int i = 0; i < 3; i++) {
        scene of = scene_of(file_path("t.csv"));
        snprintf(of.path[4], sizeof of.path[4], "%s", others[i]);
        ranks_a_host = 4;
        ranks_here_end end = ranks_here_run(5, body, &of, NULL);
        assert_false(end.aborted);
        for (int rank = 0; rank < 5; rank++) {
            assert_true(of.status[rank] < 0);
            assert_memory_equal(of.message[rank], expected, strlen(expected));
        }
    }
}

static void a_blob_that_is_replaced(void **state)
{
    char host[ENGINE_HOST_BYTES], expected[256];
    scene of = scene_of("mem:ranks/t");
    (void)state;
    assert_int_equal(shoal_store_open(&store, "mem:ranks", &(shoal_store_options){.create = true}, shoal_after(20)),
                     SHOAL_OK);
    put_blob();
    assert_int_equal(run(&of, 2), 2);
    expect_fine(&of, 2);
    of.replaces = true;
    assert_int_equal(run(&of, 2), 2);
    engine_host(host);
    snprintf(expected, sizeof expected, "rank 1 on %s has another version of DATA than rank 0", host);
    expect_failure(&of, 2, SHOAL_CONFLICT, expected);
    shoal_store_close(&store);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, start, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(alone),
        CASE(text_is_parsed_once_a_host),
        CASE(rows_beside_labels),
        CASE(who_shares_nothing_parses),
        CASE(what_was_read_from_a_pipe),
        CASE(what_need_not_be_parsed),
        CASE(weights_that_cant_be_lent),
        CASE(failures),
        CASE(other_data_elsewhere),
        CASE(a_blob_that_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
