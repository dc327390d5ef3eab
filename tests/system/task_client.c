/* A client of tasks, for the system's tests and benches: submits, judges every result, and prints what it took.
 *
 *     task_client URL KEY MODULE TASKS [option...]
 *
 * KEY is a file of 64 hexadecimal digits, MODULE the path of task_functions, or "-" for tasks that are commands.
 *
 *     --function NAME      echo (default), doze (20 ms), nothing
 *     --size BYTES         of each argument (default: 8)
 *     --same               all arguments are the same
 *     --lease SECONDS      (default: that of the store)
 *     --workers SPEC       starts workers; may be given several times
 *     --program PATH       of shoal, for those
 *     --ssh COMMAND        for those
 *     --await N            waits until that many threads work before it begins
 *     --repeat N           all of it N times, in the same client (default: 1)
 *
 * It prints a line when it has opened ("open ID"), one for each repetition ("done SECONDS"), one before it closes
 * ("closing") and one after ("closed").  Anything that is not as it must be ends it with code 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shoal/run.h>
#include <shoal/store.h>
#include <shoal/task.h>

static struct {
    const char *url, *key, *module, *function, *program, *ssh, *workers[16];
    long tasks, size, slots, repeat;
    int specs, same;
    double lease;
} asked = {.function = "echo", .size = 8, .repeat = 1};

static void must(int status, const char *what)
{
    if (status == SHOAL_OK)
        return;
    fprintf(stderr, "%s: status %d, %s\n", what, status, shoal_error());
    exit(1);
}

static void warn(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "warning: %s\n", line);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = file && fseek(file, 0, SEEK_END) == 0 ? malloc((size_t)ftell(file) + 1) : NULL;
    if (!bytes)
        return perror(path), exit(1), NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    if (fread(bytes, 1, *size, file) != *size)
        return perror(path), exit(1), NULL;
    fclose(file);
    bytes[*size] = '\0';
    return bytes;
}

static void read_key(unsigned char key[SHOAL_TASK_KEY_BYTES])
{
    size_t size;
    char *text = read_file(asked.key, &size);
    for (int i = 0; i < SHOAL_TASK_KEY_BYTES; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            exit(1);
        key[i] = (unsigned char)byte;
    }
    free(text);
}

/* The argument of a task, which its result repeats. */
static void fill(char *bytes, long number)
{
    snprintf(bytes, (size_t)asked.size + 1, "%-*ld", (int)asked.size, asked.same ? 7 : number);
}

static void run_all(shoal_tasks *tasks, char *bytes, char *seen)
{
    static const char *const cat[] = {"cat", NULL};
    int64_t first = shoal_tasks_count(tasks).submitted;
    memset(seen, 0, (size_t)asked.tasks);
    for (long i = 0; i < asked.tasks; i++) {
        int64_t number;
        shoal_task task = {.bytes = bytes, .size = (size_t)asked.size};
        fill(bytes, i);
        if (strcmp(asked.module, "-") == 0)
            task.command = cat;
        else
            task.function = asked.function;
        must(shoal_task_submit(&number, tasks, &task), "submitting");
    }
    for (long i = 0; i < asked.tasks; i++) {
        shoal_task_result *result = NULL;
        must(shoal_task_next(&result, tasks, shoal_after(300)), "waiting");
        long number = (long)(result->number - first);
        if (number < 0 || number >= asked.tasks || seen[number]++) {
            fprintf(stderr, "task %ld has two results\n", number);
            exit(1);
        }
        fill(bytes, number);
        size_t expected = strcmp(asked.function, "nothing") == 0 ? 0 : (size_t)asked.size;
        if (result->state != SHOAL_TASK_DONE || result->size != expected ||
            (expected && memcmp(result->bytes, bytes, expected) != 0)) {
            fprintf(stderr, "task %ld: state %d, %zu bytes, %s\n", number, (int)result->state, result->size,
                    result->message);
            exit(1);
        }
        shoal_task_result_free(&result);
    }
}

static void read_arguments(int count, char **word)
{
    if (count < 5) {
        fprintf(stderr, "usage: task_client URL KEY MODULE TASKS [option...]\n");
        exit(2);
    }
    asked.url = word[1], asked.key = word[2], asked.module = word[3], asked.tasks = atol(word[4]);
    for (int i = 5; i < count; i++) {
        const char *value = i + 1 < count ? word[i + 1] : "";
        if (strcmp(word[i], "--same") == 0) {
            asked.same = 1;
            continue;
        }
        if (strcmp(word[i], "--function") == 0)
            asked.function = value;
        else if (strcmp(word[i], "--size") == 0)
            asked.size = atol(value);
        else if (strcmp(word[i], "--lease") == 0)
            asked.lease = atof(value);
        else if (strcmp(word[i], "--workers") == 0 && asked.specs < 15)
            asked.workers[asked.specs++] = value;
        else if (strcmp(word[i], "--program") == 0)
            asked.program = value;
        else if (strcmp(word[i], "--ssh") == 0)
            asked.ssh = value;
        else if (strcmp(word[i], "--await") == 0)
            asked.slots = atol(value);
        else if (strcmp(word[i], "--repeat") == 0)
            asked.repeat = atol(value);
        i++;
    }
}

int main(int count, char **word)
{
    unsigned char key[SHOAL_TASK_KEY_BYTES];
    shoal_store *store = NULL;
    shoal_tasks *tasks = NULL;
    shoal_task_workers *workers = NULL;
    shoal_tasks_options options = {.key = key, .warn = warn};
    read_arguments(count, word);
    read_key(key);
    setvbuf(stdout, NULL, _IOLBF, 0);
    options.lease = asked.lease;
    if (strcmp(asked.module, "-") != 0)
        options.module = read_file(asked.module, &options.module_size);
    must(shoal_store_open(&store, asked.url, &(shoal_store_options){.create = true}, shoal_after(60)), "the store");
    must(shoal_tasks_open(&tasks, store, &options), "opening");
    printf("open %s\n", shoal_tasks_id(tasks));
    char *bytes = malloc((size_t)asked.size + 1), *seen = malloc((size_t)asked.tasks + 1);
    if (asked.specs > 0)
        must(shoal_task_workers_start(
                 &workers, tasks, asked.url,
                 &(shoal_task_workers_options){.workers = asked.workers, .program = asked.program, .ssh = asked.ssh}),
             "starting workers");
    if (asked.slots > 0) { /* a first task for each, since who is there is looked at when there is work */
        long tasks_asked = asked.tasks;
        asked.tasks = 1;
        while (run_all(tasks, bytes, seen), shoal_tasks_count(tasks).slots < asked.slots)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        asked.tasks = tasks_asked;
    }
    for (long i = 0; i < asked.repeat; i++) {
        double began = now();
        run_all(tasks, bytes, seen);
        printf("done %.6f\n", now() - began);
    }
    printf("closing\n");
    shoal_task_workers_stop(&workers);
    must(shoal_tasks_close(&tasks), "closing");
    printf("closed\n");
    shoal_store_close(&store);
    free((void *)options.module);
    free(bytes);
    free(seen);
    return 0;
}
