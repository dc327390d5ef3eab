/* What tests of the folder store share: checks for child processes, and looking into a store's folder. */
#ifndef FOLDER_SUPPORT_H
#define FOLDER_SUPPORT_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>
#include <shoal/error.h>

/* For use in children, where cmocka can't help: says what is wrong and ends with 1. */
#define ENSURE(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, shoal_error());                                 \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

/* How many entries FOLDER/NAME has. */
static inline int count_in(const char *folder, const char *name)
{
    char path[128];
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DIR *names = opendir(path);
    ENSURE(names);
    for (struct dirent *entry; (entry = readdir(names));)
        count += entry->d_name[0] != '.';
    closedir(names);
    return count;
}

/* The index of the store in FOLDER/store, which SQLite must find intact; the caller closes it. */
static inline sqlite3 *open_intact_index(const char *folder)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/store/index.db", folder);
    ENSURE(sqlite3_open(path, &db) == SQLITE_OK);
    ENSURE(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK);
    ENSURE(sqlite3_step(statement) == SQLITE_ROW);
    ENSURE(strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0);
    sqlite3_finalize(statement);
    return db;
}

#endif
