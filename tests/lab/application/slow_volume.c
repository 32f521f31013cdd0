/* Preloaded into a JVM: below LIVE_SLOW_BELOW every unlink and rmdir first takes LIVE_SLOW_US microseconds, every fsync
   and fdatasync LIVE_SLOW_SYNC_US, as on a slow volume. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_if_below(const char *path, const char *name) {
  const char *below = getenv("LIVE_SLOW_BELOW"), *us = getenv(name);
  if (below && us && strncmp(path, below, strlen(below)) == 0) usleep((useconds_t)atoi(us));
}

static void wait_if_file_below(int fd) {
  char link[64], path[PATH_MAX + 1];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX);
  if (length < 0) return;
  path[length] = 0;
  wait_if_below(path, "LIVE_SLOW_SYNC_US");
}

int unlink(const char *path) {
  static int (*next)(const char *);
  if (!next) next = dlsym(RTLD_NEXT, "unlink");
  wait_if_below(path, "LIVE_SLOW_US");
  return next(path);
}

int rmdir(const char *path) {
  static int (*next)(const char *);
  if (!next) next = dlsym(RTLD_NEXT, "rmdir");
  wait_if_below(path, "LIVE_SLOW_US");
  return next(path);
}

int fsync(int fd) {
  static int (*next)(int);
  if (!next) next = dlsym(RTLD_NEXT, "fsync");
  wait_if_file_below(fd);
  return next(fd);
}

int fdatasync(int fd) {
  static int (*next)(int);
  if (!next) next = dlsym(RTLD_NEXT, "fdatasync");
  wait_if_file_below(fd);
  return next(fd);
}
