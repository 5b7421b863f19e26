/* A batch: workspaces, and threads. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "ctc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#endif

#include "ctc_row.h"
#include "vector.h"

#define BLOCK 32 /* frames that a thread takes at a time */

typedef struct {
  const ctc_problem *problem;
  row_workspace *slots;
  int64_t slot_count, next;
  int stage; /* -1: whole rows; 0, 1, 2: that stage of all rows */
} work;

static int64_t blocks_of(const ctc_problem *p) { return (p->frames + BLOCK - 1) / BLOCK; }

static void block_of(row_workspace *w, const ctc_problem *p, int64_t block, int stage) {
  const int64_t end = stage == 0 ? w->frames : p->frames;
  const int64_t from = block * BLOCK, to = from + BLOCK < end ? from + BLOCK : end;
  if (stage == 0)
    row_probabilities(w, p, from, to);
  else
    row_result(w, p, from, to);
}

static void whole_row(row_workspace *w, const ctc_problem *p, int64_t row) {
  row_begin(w, p, row);
  row_probabilities(w, p, 0, w->frames);
  row_alignments(w, p);
  if (p->result) row_result(w, p, 0, p->frames);
}

typedef struct {
  work *shared;
  int64_t index;
} worker;

static void *run(void *argument) {
  worker *self = argument;
  work *shared = self->shared;
  const ctc_problem *p = shared->problem;
  const int64_t blocks = blocks_of(p);
  const int64_t count = shared->stage == 0 || shared->stage == 2 ? p->rows * blocks : p->rows;
#if defined(__SSE__)
  const unsigned mode = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(mode | 0x8040); /* numbers below the range are 0: the slow ones are of no use here */
#endif
  for (;;) {
    const int64_t i = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
    if (i >= count) break;
    if (shared->stage < 0)
      whole_row(&shared->slots[self->index], p, i);
    else if (shared->stage == 1)
      row_alignments(&shared->slots[i], p);
    else
      block_of(&shared->slots[i / blocks], p, i % blocks, shared->stage);
  }
#if defined(__SSE__)
  __builtin_ia32_ldmxcsr(mode);
#endif
  return 0;
}

static void run_on(work *shared, int64_t threads) {
  pthread_t started[64];
  worker workers[64];
  shared->next = 0;
  int64_t more = 0;
  for (int64_t i = 1; i < threads; i++) {
    workers[i] = (worker){shared, i};
    if (pthread_create(&started[more], 0, run, &workers[i])) break; /* what cannot be started, the others do */
    more++;
  }
  workers[0] = (worker){shared, 0};
  run(&workers[0]);
  for (int64_t i = 0; i < more; i++) pthread_join(started[i], 0);
}

static int64_t processors(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? count : 1;
}

static int64_t threads_for(const ctc_problem *p, int threads) {
  int64_t count = threads > 0 ? threads : processors();
  /* A thread costs some 30 microseconds to start, in which one does this much. */
  const double elements = (double)p->rows * (double)p->frames * ((double)p->classes + 8 * (double)p->count + 8);
  if (count > elements / 50000) count = (int64_t)(elements / 50000) + 1;
  return count > 64 ? 64 : count;
}

/* Fresh memory comes page by page at its first touch, which for a large result takes as long as computing it. */
static void expect_large(void *memory, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = 1 << 21, from = ((uintptr_t)memory + page - 1) & ~(page - 1);
  const uintptr_t to = ((uintptr_t)memory + size) & ~(page - 1);
  if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE); /* a hint: where it fails nothing changes */
#else
  (void)memory, (void)size;
#endif
}

int ctc_compute(const ctc_problem *p, int threads) {
  if (p->rows <= 0) return 0;
  const int64_t count = threads_for(p, threads);
  const int by_rows = p->rows >= count;
  const int64_t slots = by_rows ? count : p->rows;
  const int64_t size = row_workspace_size(p);
  const size_t bytes = (size_t)slots * (sizeof(row_workspace) + (size_t)size * sizeof(float));
  char *memory = malloc(bytes);
  if (!memory) return 1;
  expect_large(memory, bytes);
  if (p->result) {
    const int64_t last = (p->rows - 1) * p->row_stride + (p->frames - 1) * p->frame_stride + p->classes;
    if (p->frames > 0) expect_large(p->result, (size_t)last * sizeof(float));
  }
  work shared = {p, (row_workspace *)memory, slots, 0, -1};
  float *floats = (float *)(memory + (size_t)slots * sizeof(row_workspace));
  for (int64_t i = 0; i < slots; i++) row_workspace_at(&shared.slots[i], p, floats + i * size);
  if (by_rows) {
    run_on(&shared, count);
  } else {
    for (int64_t i = 0; i < p->rows; i++) row_begin(&shared.slots[i], p, i);
    for (shared.stage = 0; shared.stage < 3; shared.stage++)
      if (shared.stage < 2 || p->result) run_on(&shared, count);
  }
  free(memory);
  return 0;
}

static int64_t width_of(const ctc_problem *p) { return (p->count + 1 + LANES - 1) / LANES * LANES; }

static int64_t lay_out(row_workspace *w, const ctc_problem *p, float *memory) {
  const int64_t width = width_of(p), stride = width + LANES, frames = p->frames;
  int64_t used = 0;
  w->width = width;
  w->stride = stride;
#define ARRAY(name, count) (w->name = memory ? (void *)(memory + used) : 0, used += (count))
  ARRAY(label_mantissa, frames * width);
  ARRAY(label_exponent, frames * width);
  ARRAY(blank_mantissa, frames);
  ARRAY(blank_exponent, frames);
  ARRAY(peak, frames);
  ARRAY(inverse_size, frames);
  ARRAY(states, (frames + 1) * 4 * stride + LANES);
  ARRAY(jump, stride + LANES);
  ARRAY(jump_exponent, stride + LANES);
  ARRAY(back, 2 * (4 * stride + LANES));
  ARRAY(share, p->result ? frames * width : 0);
  ARRAY(blank_share, frames);
  ARRAY(far, 4 * width);
  ARRAY(distinct, width);
  ARRAY(first, p->count);
  ARRAY(contained, p->classes / (int64_t)sizeof(float) + 1);
#undef ARRAY
  return used;
}

int64_t row_workspace_size(const ctc_problem *p) {
  row_workspace unused;
  return lay_out(&unused, p, 0);
}

void row_workspace_at(row_workspace *w, const ctc_problem *p, float *memory) { lay_out(w, p, memory); }

void row_begin(row_workspace *w, const ctc_problem *p, int64_t row) {
  const int32_t *labels = p->labels + row * p->count;
  const int64_t frames = p->input_lengths[row], count = p->label_lengths[row];
  w->row = row;
  w->invalid = frames < 0 || frames > p->frames || count < 0 || count > p->count;
  w->impossible = 0;
  for (int64_t n = 0; !w->invalid && n < count; n++)
    w->invalid = labels[n] < 0 || labels[n] >= p->classes || labels[n] == p->blank;
  w->frames = w->invalid ? 0 : frames;
  w->count = w->invalid ? 0 : count;
  for (int64_t n = 0; n < w->stride + LANES; n++) {
    const int may = n > 0 && n < w->count && labels[n] != labels[n - 1];
    w->jump[n] = may;
    w->jump_exponent[n] = may ? 0 : LOWEST;
  }
  memset(w->contained, 0, (size_t)p->classes);
  w->contained[p->blank] = 1;
  for (int64_t n = 0; n < w->count; n++) w->contained[labels[n]] = 1;
}
