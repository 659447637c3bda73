/* What the mock upstream and the load tool share: the clock, growing buffers, the stamp that travels in each token.
 *
 * A token is "@T" and sixteen digits: the microsecond at which it was written, on the clock both programs read. It
 * passes any translator unchanged, for it needs no escape in JSON. */
#ifndef WIRE_H
#define WIRE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STAMP_MARK "@T"
#define STAMP_DIGITS 16
#define STAMP_PLACE "@T0000000000000000"

struct text {
  char *data;
  size_t len;
};

static inline uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static inline void die(const char *what) {
  perror(what);
  exit(1);
}

static inline void refuse(const char *why, const char *what) {
  fprintf(stderr, "%s: %s\n", why, what);
  exit(2);
}

static inline void *grown(void *old, size_t size) {
  void *new = realloc(old, size);
  if (!new) die("memory");
  return new;
}

static inline void append(struct text *to, const char *data, size_t len) {
  if (len == 0) return;
  to->data = grown(to->data, to->len + len);
  memcpy(to->data + to->len, data, len);
  to->len += len;
}

static inline struct text file_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die(path);
  struct text text = {0};
  char part[65536];
  for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) append(&text, part, n);
  fclose(file);
  return text;
}

static inline void put_stamp(char *place, uint64_t us) {
  for (int i = STAMP_DIGITS - 1; i >= 0; i--, us /= 10) place[i] = (char)('0' + us % 10);
}

static inline void not_blocking(int fd) {
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) die("fcntl");
}

static inline void many_files(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

static inline struct timespec until(uint64_t now, uint64_t then) {
  uint64_t us = then > now ? then - now : 0;
  return (struct timespec){(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};
}

#endif
