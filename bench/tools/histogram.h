/* Histograms of microseconds: exact below 128, then 64 steps to each power of two, which is 1.6 %. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#define STEPS 64u
#define BUCKETS (64u * STEPS)

struct histogram {
  uint64_t counts[BUCKETS], n, sum, max;
};

static inline unsigned bucket(uint64_t v) {
  if (v < 2 * STEPS) return (unsigned)v;
  unsigned shift = 63u - (unsigned)__builtin_clzll(v) - 6u;
  return shift * STEPS + (unsigned)(v >> shift);
}

static inline double bucket_middle(unsigned b) {
  if (b < 2 * STEPS) return b;
  unsigned shift = b / STEPS - 1;
  return ((double)(b - shift * STEPS) + 0.5) * (double)(1ull << shift);
}

static inline void record(struct histogram *h, uint64_t v) {
  unsigned b = bucket(v);
  h->counts[b < BUCKETS ? b : BUCKETS - 1]++;
  h->n++;
  h->sum += v;
  if (v > h->max) h->max = v;
}

static inline double quantile(const struct histogram *h, double q) {
  uint64_t seen = 0, wanted = (uint64_t)(q * (double)h->n);
  for (unsigned b = 0; b < BUCKETS; b++)
    if ((seen += h->counts[b]) > wanted) return bucket_middle(b);
  return (double)h->max;
}

static inline void print_histogram(const char *name, const struct histogram *h) {
  if (h->n == 0) {
    printf(", \"%s\": null", name);
    return;
  }
  printf(", \"%s\": {\"n\": %llu, \"mean\": %.1f, \"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %llu}", name,
         (unsigned long long)h->n, (double)h->sum / (double)h->n, quantile(h, 0.5), quantile(h, 0.99),
         quantile(h, 0.999), (unsigned long long)h->max);
}

#endif
