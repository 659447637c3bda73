/* A load tool: N connections, each asking again as soon as it is answered, or at a fixed rate; one line of JSON.
 *
 * One thread, one epoll. Answers are read as HTTP/1.1 and checked: status, framing, and the end marker. Tokens are the
 * stamps in the body (wire.h); a stamp counts when it is later than those before it in the same answer, so a dialect
 * that repeats its text at the end is not counted twice. After the warm-up a window opens: only what is received within
 * it is counted, and the processor time of the processes named with --watch is read at both of its ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "histogram.h"
#include "watched.h"
#include "wire.h"

#define MAX_EVENTS 512
#define TAIL 1024
#define MAX_HEAD 16384
#define SLOW_TICK_US 10000u
#define MAX_ERRORS 10000u

enum phase { IDLE, SENDING, HEAD, BODY };
enum framing { BY_LENGTH, BY_CHUNKS, BY_CLOSE };
enum chunk_state { SIZE, SIZE_END, DATA, DATA_END, TRAILER };
enum fault { STATUS, CUT, FRAMING, UNFINISHED, CONNECT, FAULTS };

struct conn {
  int fd;
  enum phase phase;
  enum framing framing;
  enum chunk_state chunk;
  bool writing, closing, digits_seen;
  int status;
  size_t sent, head_len, tail_len, line;
  uint64_t started, left, stamp, value;
  unsigned matched;
  bool told; /* the first token was seen */
  char head[MAX_HEAD], tail[TAIL];
};

static const char *fault_names[FAULTS] = {"status", "cut", "framing", "unfinished", "connect"};
static struct text request;
static const char *end_marker = "";
static struct sockaddr_in address;
static struct conn *conns;
static size_t connections = 1;
static uint64_t seconds_us = 1000000, patience_us = 10000000, settle_us, ramp_us, warmup, count, slow;
static uint64_t start_us, open_us, close_us;
static double rate;
static uint64_t rate_begun, late;
static size_t ramped;
static struct conn **idle;
static size_t idle_count;
static bool open_window, told_error;
static uint64_t answered, answers, tokens, bytes, errors, faults[FAULTS];
static struct histogram request_us, first_us, token_us;
static int poller;
static struct cpu cpu_at_open;
static char buffer[1 << 18];

/* The window, and the end. */

static void finish(void) {
  struct cpu cpu = watched_cpu();
  uint64_t now = now_us();
  printf("{\"seconds\": %.6f, \"answers\": %llu, \"tokens\": %llu, \"bytes\": %llu, \"late\": %llu, \"errors\": {",
         open_window ? (double)(now - open_us) / 1e6 : 0, (unsigned long long)answers, (unsigned long long)tokens,
         (unsigned long long)bytes, (unsigned long long)late);
  for (int i = 0; i < FAULTS; i++)
    printf("%s\"%s\": %llu", i ? ", " : "", fault_names[i], (unsigned long long)faults[i]);
  printf("}");
  print_histogram("request_us", &request_us);
  print_histogram("first_us", &first_us);
  print_histogram("token_us", &token_us);
  printf(", \"cpu_ns\": %llu, \"loop_ns\": %llu, \"rss_kb\": %llu, \"peak_kb\": %llu}\n",
         (unsigned long long)(cpu.all - cpu_at_open.all), (unsigned long long)(cpu.first - cpu_at_open.first),
         (unsigned long long)watched_memory("VmRSS:"), (unsigned long long)watched_memory("VmHWM:"));
  exit(0);
}

static void open_when_warm(uint64_t now) {
  if (open_window || now < start_us + settle_us) return;
  if (answered < warmup && now < start_us + patience_us) return;
  open_window = true;
  cpu_at_open = watched_cpu();
  open_us = now_us();
  close_us = open_us + seconds_us;
}

/* Connections. */

static void watch(struct conn *conn, int how, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = conn};
  if (epoll_ctl(poller, how, conn->fd, &event) < 0) die("epoll_ctl");
}

static void fail(struct conn *conn, enum fault fault) {
  faults[fault]++;
  if (!told_error)
    fprintf(stderr, "first error: %s, status %d, head %.*s, body ends %.*s\n", fault_names[fault], conn->status,
            (int)conn->head_len, conn->head, (int)conn->tail_len, conn->tail);
  told_error = true;
  if (++errors > MAX_ERRORS) finish();
}

static void reconnect(struct conn *conn) {
  int one = 1, small = 4096;
  if (conn->fd >= 0) close(conn->fd);
  conn->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (conn->fd < 0) die("socket");
  setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (slow) setsockopt(conn->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  while (connect(conn->fd, (struct sockaddr *)&address, sizeof address) < 0) {
    fail(conn, CONNECT);
    usleep(10000);
  }
  not_blocking(conn->fd);
  watch(conn, EPOLL_CTL_ADD, slow ? 0 : EPOLLIN);
  conn->phase = IDLE;
  conn->writing = conn->closing = false;
}

static void begin(struct conn *conn, uint64_t started);

static void rest(struct conn *conn) {
  conn->phase = IDLE;
  if (rate > 0) idle[idle_count++] = conn;
  else begin(conn, now_us());
}

static void lose(struct conn *conn, enum fault fault) {
  bool was_busy = conn->phase != IDLE;
  if (was_busy) fail(conn, fault);
  reconnect(conn);
  if (was_busy) rest(conn);
}

/* Sending. */

static void send_more(struct conn *conn) {
  ssize_t n = send(conn->fd, request.data + conn->sent, request.len - conn->sent, MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) return lose(conn, CUT);
  conn->sent += n < 0 ? 0 : (size_t)n;
  bool more = conn->sent < request.len;
  if (more != conn->writing) watch(conn, EPOLL_CTL_MOD, (slow ? 0 : EPOLLIN) | (more ? EPOLLOUT : 0));
  conn->writing = more;
}

static void begin(struct conn *conn, uint64_t started) {
  conn->phase = HEAD;
  conn->started = started;
  conn->sent = conn->head_len = conn->tail_len = conn->line = 0;
  conn->stamp = conn->left = 0;
  conn->matched = 0;
  conn->told = conn->closing = false;
  conn->status = 0;
  send_more(conn);
}

/* Receiving: the payload. */

static void on_token(struct conn *conn, uint64_t stamp, uint64_t now) {
  if (stamp <= conn->stamp) return;
  conn->stamp = stamp;
  bool first = !conn->told;
  conn->told = true;
  if (!open_window) return;
  tokens++;
  record(&token_us, now > stamp ? now - stamp : 0);
  if (first && conn->started >= open_us) record(&first_us, now > conn->started ? now - conn->started : 0);
}

static void on_digit(struct conn *conn, char c, uint64_t now) {
  if (c < '0' || c > '9') {
    conn->matched = c == '@';
    return;
  }
  conn->value = conn->value * 10 + (uint64_t)(c - '0');
  if (++conn->matched < 2 + STAMP_DIGITS) return;
  conn->matched = 0;
  on_token(conn, conn->value, now);
}

/* Finds the stamps, wherever the reads cut them. */
static void scan(struct conn *conn, const char *p, const char *end, uint64_t now) {
  while (p < end) {
    if (conn->matched == 0) {
      p = memchr(p, '@', (size_t)(end - p));
      if (!p) return;
      conn->matched = 1;
    } else if (conn->matched == 1) {
      conn->matched = *p == 'T' ? 2 : *p == '@';
      conn->value = 0;
    } else {
      on_digit(conn, *p, now);
    }
    p++;
  }
}

static void keep_tail(struct conn *conn, const char *data, size_t n) {
  if (n >= TAIL) {
    memcpy(conn->tail, data + n - TAIL, TAIL);
    conn->tail_len = TAIL;
    return;
  }
  size_t kept = conn->tail_len + n > TAIL ? TAIL - n : conn->tail_len;
  memmove(conn->tail, conn->tail + conn->tail_len - kept, kept);
  memcpy(conn->tail + kept, data, n);
  conn->tail_len = kept + n;
}

static void payload(struct conn *conn, const char *data, size_t n, uint64_t now) {
  if (n == 0) return;
  if (open_window) bytes += n;
  keep_tail(conn, data, n);
  scan(conn, data, data + n, now);
}

static void complete(struct conn *conn, uint64_t now) {
  bool ended = !*end_marker || memmem(conn->tail, conn->tail_len, end_marker, strlen(end_marker));
  answered++;
  if (conn->status != 200) fail(conn, STATUS);
  else if (!ended) fail(conn, UNFINISHED);
  else if (open_window) {
    answers++;
    if (conn->started >= open_us) record(&request_us, now - conn->started);
    if (count && answers >= count) finish();
  }
  open_when_warm(now);
  conn->phase = IDLE;
  if (conn->closing) reconnect(conn);
  rest(conn);
}

/* Receiving: chunks. Every function gives how many bytes it took, or -1 when they are no HTTP. */

static ssize_t on_size(struct conn *conn, const char *p, size_t n) {
  size_t i = 0;
  for (; i < n && p[i] != '\n'; i++) {
    char c = p[i] | 0x20;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 && p[i] != '\r') return -1;
    if (digit < 0) continue;
    conn->left = conn->left * 16 + (uint64_t)digit;
    conn->digits_seen = true;
  }
  if (i == n) return (ssize_t)n;
  if (!conn->digits_seen) return -1;
  conn->digits_seen = false;
  conn->chunk = conn->left ? DATA : TRAILER;
  return (ssize_t)i + 1;
}

static ssize_t on_data_end(struct conn *conn, const char *p) {
  if (*p != '\r' && *p != '\n') return -1;
  if (*p == '\n') conn->chunk = SIZE;
  return 1;
}

/* Trailer lines until an empty one; `line` counts the bytes of the present one. */
static ssize_t on_trailer(struct conn *conn, const char *p, bool *done) {
  if (*p == '\n') {
    *done = conn->line == 0;
    conn->line = 0;
  } else if (*p != '\r') {
    conn->line++;
  }
  return 1;
}

static ssize_t on_data(struct conn *conn, const char *p, size_t n, uint64_t now) {
  size_t taken = n < conn->left ? n : conn->left;
  payload(conn, p, taken, now);
  conn->left -= taken;
  if (conn->left == 0) conn->chunk = DATA_END;
  return (ssize_t)taken;
}

static ssize_t on_chunks(struct conn *conn, const char *p, size_t n, uint64_t now, bool *done) {
  switch (conn->chunk) {
    case SIZE: return on_size(conn, p, n);
    case DATA: return on_data(conn, p, n, now);
    case DATA_END: return on_data_end(conn, p);
    default: return on_trailer(conn, p, done);
  }
}

static void on_chunked(struct conn *conn, const char *p, size_t n, uint64_t now) {
  bool done = false;
  while (n > 0 && !done) {
    ssize_t taken = on_chunks(conn, p, n, now, &done);
    if (taken < 0) return lose(conn, FRAMING);
    p += taken;
    n -= (size_t)taken;
  }
  if (done && n > 0) return lose(conn, FRAMING);
  if (done) complete(conn, now);
}

static void on_counted(struct conn *conn, const char *p, size_t n, uint64_t now) {
  if (n > conn->left) return lose(conn, FRAMING);
  conn->left -= n;
  payload(conn, p, n, now);
  if (conn->left == 0) complete(conn, now);
}

static void on_body(struct conn *conn, const char *p, size_t n, uint64_t now) {
  if (conn->framing == BY_CHUNKS) on_chunked(conn, p, n, now);
  else if (conn->framing == BY_LENGTH) on_counted(conn, p, n, now);
  else payload(conn, p, n, now);
}

/* Receiving: the head. */

static bool is_field(const char *line, const char *name) { return strncasecmp(line, name, strlen(name)) == 0; }

static void read_field(struct conn *conn, const char *line) {
  if (is_field(line, "content-length:")) {
    conn->framing = BY_LENGTH;
    conn->left = strtoull(line + 15, NULL, 10);
  } else if (is_field(line, "transfer-encoding: chunked")) {
    conn->framing = BY_CHUNKS;
    conn->left = 0;
  } else if (is_field(line, "connection: close")) {
    conn->closing = true;
  }
}

static void read_head(struct conn *conn) {
  conn->status = conn->head_len > 12 ? atoi(conn->head + 9) : 0;
  conn->framing = BY_CLOSE;
  conn->chunk = SIZE;
  conn->phase = BODY;
  for (char *line = conn->head; (line = strchr(line, '\n')) && *++line != '\r';)
    if ((*line | 0x20) == 'c' || (*line | 0x20) == 't') read_field(conn, line);
}

static void on_head(struct conn *conn, const char *p, size_t n, uint64_t now) {
  size_t before = conn->head_len, room = MAX_HEAD - 1 - before, taken = n < room ? n : room;
  memcpy(conn->head + before, p, taken);
  conn->head[before + taken] = 0;
  size_t from = before > 3 ? before - 3 : 0;
  char *end = memmem(conn->head + from, before + taken - from, "\r\n\r\n", 4);
  if (!end && taken < n) return lose(conn, FRAMING);
  conn->head_len = before + taken;
  if (!end) return;
  conn->head_len = (size_t)(end - conn->head) + 4;
  conn->head[conn->head_len - 2] = '\r';
  size_t used = conn->head_len - before;
  read_head(conn);
  if (n > used) on_body(conn, p + used, n - used, now);
  else if (conn->framing == BY_LENGTH && conn->left == 0) complete(conn, now);
}

static void on_end(struct conn *conn) {
  if (conn->phase != BODY || conn->framing != BY_CLOSE) return lose(conn, CUT);
  conn->closing = true;
  complete(conn, now_us());
}

static void receive(struct conn *conn, size_t most) {
  ssize_t n = recv(conn->fd, buffer, most, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return on_end(conn);
  uint64_t now = now_us();
  if (conn->phase == HEAD) on_head(conn, buffer, (size_t)n, now);
  else if (conn->phase == BODY) on_body(conn, buffer, (size_t)n, now);
  else lose(conn, FRAMING);
}

/* The loop. */

static uint64_t slow_tick;

static void read_slowly(uint64_t now) {
  if (!slow || now < slow_tick) return;
  slow_tick = now + SLOW_TICK_US;
  size_t most = slow * SLOW_TICK_US / 1000000u;
  for (size_t i = 0; i < connections; i++) receive(&conns[i], most ? most : 1);
}

static uint64_t due_start(void) { return start_us + (uint64_t)((double)rate_begun * 1e6 / rate); }

/* At a fixed rate an answer's time counts from when its request should have left. */
static void start_at_rate(uint64_t now) {
  for (uint64_t due; rate > 0 && idle_count > 0 && (due = due_start()) <= now; rate_begun++) {
    if (open_window && now > due + 10000) late++;
    begin(idle[--idle_count], due);
  }
}

static uint64_t ramp_due(void) { return start_us + ramp_us * ramped / connections; }

/* The first requests are spread over the ramp, so that streams of one length do not end and begin in step. */
static void start_first(uint64_t now) {
  for (; ramped < connections && ramp_due() <= now; ramped++) rest(&conns[ramped]);
}

static uint64_t wake_time(uint64_t now) {
  uint64_t wake = now + 10000; /* the warm-up is looked at this often */
  if (open_window && close_us < wake) wake = close_us;
  if (slow && slow_tick < wake) wake = slow_tick;
  if (ramped < connections && ramp_due() < wake) wake = ramp_due();
  if (rate > 0 && idle_count > 0 && due_start() < wake) wake = due_start();
  return wake;
}

static void on_event(struct epoll_event *event) {
  struct conn *conn = event->data.ptr;
  if (event->events & EPOLLOUT) send_more(conn);
  if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(conn, sizeof buffer);
}

static void run(void) {
  static struct epoll_event events[MAX_EVENTS];
  for (;;) {
    uint64_t now = now_us();
    open_when_warm(now);
    if (open_window && now >= close_us) finish();
    start_first(now);
    start_at_rate(now);
    read_slowly(now);
    struct timespec wait = until(now, wake_time(now));
    int n = epoll_pwait2(poller, events, MAX_EVENTS, &wait, NULL);
    if (n < 0 && errno != EINTR) die("epoll_pwait2");
    for (int i = 0; i < n; i++) on_event(&events[i]);
  }
}

static void connect_all(void) {
  conns = calloc(connections, sizeof *conns);
  idle = calloc(connections, sizeof *idle);
  if (!conns || !idle) die("memory");
  for (size_t i = 0; i < connections; i++) {
    conns[i].fd = -1;
    reconnect(&conns[i]);
    if (i % 32 == 31) usleep(1000); /* a listener's queue is short */
  }
  start_us = now_us();
}

/* The command line. */

static int port = 8080;
static const char *path = "/";
static struct text body, headers;

static void add_header(const char *line) {
  append(&headers, line, strlen(line));
  append(&headers, "\r\n", 2);
}

static void make_request(void) {
  char part[512];
  static const char first[] = "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n";
  size_t n = (size_t)snprintf(part, sizeof part, first, path, port);
  append(&request, part, n < sizeof part ? n : sizeof part - 1);
  append(&request, headers.data, headers.len);
  append(&request, part, (size_t)snprintf(part, sizeof part, "content-length: %zu\r\n\r\n", body.len));
  append(&request, body.data, body.len);
}

static bool read_number(const char *name, const char *value) {
  if (strcmp(name, "--port") == 0) port = atoi(value);
  else if (strcmp(name, "--connections") == 0) connections = strtoull(value, NULL, 10);
  else if (strcmp(name, "--seconds") == 0) seconds_us = (uint64_t)(atof(value) * 1e6);
  else if (strcmp(name, "--settle") == 0) settle_us = (uint64_t)(atof(value) * 1e6);
  else if (strcmp(name, "--patience") == 0) patience_us = (uint64_t)(atof(value) * 1e6);
  else if (strcmp(name, "--ramp") == 0) ramp_us = (uint64_t)(atof(value) * 1e6);
  else if (strcmp(name, "--warmup") == 0) warmup = strtoull(value, NULL, 10);
  else if (strcmp(name, "--count") == 0) count = strtoull(value, NULL, 10);
  else if (strcmp(name, "--slow") == 0) slow = strtoull(value, NULL, 10);
  else if (strcmp(name, "--rate") == 0) rate = atof(value);
  else return false;
  return true;
}

static void read_option(const char *name, const char *value) {
  if (read_number(name, value)) return;
  if (strcmp(name, "--path") == 0) path = value;
  else if (strcmp(name, "--header") == 0) add_header(value);
  else if (strcmp(name, "--body") == 0) body = file_text(value);
  else if (strcmp(name, "--end") == 0) end_marker = value;
  else if (strcmp(name, "--watch") == 0 && pid_count < MAX_WATCHED) pids[pid_count++] = atoi(value);
  else refuse("unknown option", name);
}

int main(int argc, char **argv) {
  if (argc % 2 == 0) refuse("every option has a value", argv[argc - 1]);
  for (int i = 1; i + 1 < argc; i += 2) read_option(argv[i], argv[i + 1]);
  if (strlen(end_marker) > TAIL) refuse("too long", end_marker);
  make_request();
  many_files();
  signal(SIGPIPE, SIG_IGN);
  address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  poller = epoll_create1(0);
  connect_all();
  run();
}
