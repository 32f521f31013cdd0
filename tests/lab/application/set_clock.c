/* Preloaded into an agent: its wall clock is wrong by the seconds that the file HUNT_CLOCK holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile long long *by_s;

__attribute__((constructor)) static void open_file(void) {
  const char *path = getenv("HUNT_CLOCK");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *at = mmap(NULL, sizeof *by_s, PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) by_s = at;
}

int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
  int result = next(which, now);
  if (result == 0 && by_s && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *by_s;
  return result;
}
