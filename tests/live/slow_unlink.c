/* Preloaded into a JVM: every unlink and rmdir below LIVE_SLOW_BELOW first takes LIVE_SLOW_US microseconds, as on a
   slow volume. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_if_below(const char *path) {
  const char *below = getenv("LIVE_SLOW_BELOW"), *us = getenv("LIVE_SLOW_US");
  if (below && us && strncmp(path, below, strlen(below)) == 0) usleep((useconds_t)atoi(us));
}

int unlink(const char *path) {
  static int (*next)(const char *);
  if (!next) next = dlsym(RTLD_NEXT, "unlink");
  wait_if_below(path);
  return next(path);
}

int rmdir(const char *path) {
  static int (*next)(const char *);
  if (!next) next = dlsym(RTLD_NEXT, "rmdir");
  wait_if_below(path);
  return next(path);
}
