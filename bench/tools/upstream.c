/* A scripted model server: it plays canned answers, whole or in pieces, as fast or as slowly as told.
 *
 * One thread, one epoll. An answer is chosen by a part of the request's path; it streams when the body says
 * "stream":true, or the path says stream. A stream is a head, N times the same piece with a fresh stamp in it, and an
 * end; each piece is one HTTP chunk and one write. Streams wait in a heap ordered by when their next piece is due:
 * paced ones a pace apart, with offsets spread over the pace; un-paced ones are due at once, one piece each in turn.
 *
 * GET /set?pieces=N&pace=MICROSECONDS&batch=0|1 changes the script of every later stream. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "wire.h"

#define MAX_ANSWERS 64
#define MAX_EVENTS 512
#define MAX_REQUEST ((size_t)64 << 20)

struct answer {
  const char *path, *type;
  struct text whole, first, piece, last; /* as given, then as sent */
  size_t stamp;                          /* where the digits begin in piece */
};

struct conn {
  int fd;
  bool streaming, blocked;
  char *in;
  size_t used, room;
  struct text pending; /* what the socket did not take, from `sent` on */
  size_t sent;
  const struct answer *answer;
  unsigned left;
  uint64_t due, stamp;
  size_t place; /* in the heap, or NOWHERE */
};

#define NOWHERE ((size_t)-1)

static struct answer answers[MAX_ANSWERS];
static size_t answer_count;
static unsigned pieces = 100;
static uint64_t pace;
static bool batch;
static int poller;
static struct conn **heap;
static size_t waiting, heap_room;
static uint64_t streams_begun;

/* The heap of streams, the next due first. */

static void settle(struct conn *conn, size_t place) {
  heap[place] = conn;
  conn->place = place;
}

static void sift_up(struct conn *conn, size_t place) {
  while (place > 0 && heap[(place - 1) / 2]->due > conn->due) {
    settle(heap[(place - 1) / 2], place);
    place = (place - 1) / 2;
  }
  settle(conn, place);
}

static void sift_down(struct conn *conn, size_t place) {
  for (size_t child; (child = 2 * place + 1) < waiting; place = child) {
    if (child + 1 < waiting && heap[child + 1]->due < heap[child]->due) child++;
    if (heap[child]->due >= conn->due) break;
    settle(heap[child], place);
  }
  settle(conn, place);
}

static void await(struct conn *conn, uint64_t due) {
  conn->due = due;
  if (waiting == heap_room) heap = grown(heap, (heap_room = heap_room * 2 + 64) * sizeof *heap);
  sift_up(conn, waiting++);
}

static void forget(struct conn *conn) {
  size_t place = conn->place;
  if (place == NOWHERE) return;
  conn->place = NOWHERE;
  struct conn *moved = heap[--waiting];
  if (moved == conn) return;
  sift_down(moved, place);
  if (moved->place == place) sift_up(moved, place);
}

/* Connections. */

static void watch(struct conn *conn, int how, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = conn};
  if (epoll_ctl(poller, how, conn->fd, &event) < 0) die("epoll_ctl");
}

/* Not freed at once: an event of the same turn may still point here. */
static struct conn *graveyard[MAX_EVENTS * 4];
static size_t graves;

static void drop(struct conn *conn) {
  if (conn->fd < 0) return;
  forget(conn);
  close(conn->fd);
  conn->fd = -1;
  if (graves < sizeof graveyard / sizeof *graveyard) graveyard[graves++] = conn;
}

static void bury(void) {
  while (graves > 0) {
    struct conn *conn = graveyard[--graves];
    free(conn->in);
    free(conn->pending.data);
    free(conn);
  }
}

/* Writes what the socket takes and keeps the rest; false when the peer is gone. */
static bool put(struct conn *conn, const char *data, size_t len) {
  ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) {
    drop(conn);
    return false;
  }
  size_t taken = n < 0 ? 0 : (size_t)n;
  if (taken == len) return true;
  append(&conn->pending, data + taken, len - taken);
  conn->blocked = true;
  watch(conn, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  return true;
}

/* Streams. */

static uint64_t fresh_stamp(struct conn *conn) {
  uint64_t now = now_us();
  conn->stamp = now > conn->stamp ? now : conn->stamp + 1; /* rising, so that a token repeated in an end is known */
  return conn->stamp;
}

static void put_batch(struct conn *conn) {
  const struct answer *a = conn->answer;
  struct text all = {0};
  all.data = grown(NULL, a->first.len + pieces * a->piece.len + a->last.len);
  memcpy(all.data, a->first.data, a->first.len);
  all.len = a->first.len;
  for (unsigned i = 0; i < pieces; i++, all.len += a->piece.len) {
    memcpy(all.data + all.len, a->piece.data, a->piece.len);
    if (a->stamp) put_stamp(all.data + all.len + a->stamp, fresh_stamp(conn));
  }
  memcpy(all.data + all.len, a->last.data, a->last.len);
  put(conn, all.data, all.len + a->last.len);
  free(all.data);
}

/* The golden ratio spreads any number of streams evenly over the pace. */
static uint64_t spread(void) {
  double turn = (double)++streams_begun * 0.6180339887498949;
  return 1 + (uint64_t)((double)pace * (turn - (double)(uint64_t)turn));
}

static void put_next(struct conn *conn, uint64_t now) {
  const struct answer *a = conn->answer;
  if (conn->left == 0) {
    conn->streaming = false;
    put(conn, a->last.data, a->last.len);
    return;
  }
  if (a->stamp) put_stamp(a->piece.data + a->stamp, fresh_stamp(conn));
  bool begun = conn->left == pieces;
  conn->left--;
  if (!put(conn, a->piece.data, a->piece.len) || conn->blocked) return;
  if (!pace) return await(conn, now_us());
  await(conn, begun ? now + spread() : conn->due + pace);
}

static void begin_stream(struct conn *conn, const struct answer *answer) {
  conn->answer = answer;
  if (batch) return put_batch(conn);
  conn->left = pieces;
  conn->streaming = true;
  if (put(conn, answer->first.data, answer->first.len) && !conn->blocked) await(conn, now_us());
}

static void run_due(void) {
  uint64_t now = now_us();
  for (size_t turns = waiting * 4; turns > 0 && waiting > 0 && heap[0]->due <= now; turns--) {
    struct conn *conn = heap[0];
    forget(conn);
    put_next(conn, now);
  }
}

/* Requests. */

static void put_setting(const char *name, uint64_t value) {
  if (strcmp(name, "pieces") == 0) pieces = (unsigned)value;
  else if (strcmp(name, "pace") == 0) pace = value;
  else if (strcmp(name, "batch") == 0) batch = value != 0;
}

static void read_settings(const char *query) {
  char name[16];
  unsigned long long value;
  for (int n; sscanf(query, "%15[a-z]=%llu%n", name, &value, &n) == 2; query += n + (query[n] == '&'))
    put_setting(name, value);
}

static const struct answer *answer_for(const char *line, size_t len) {
  for (size_t i = 0; i < answer_count; i++)
    if (memmem(line, len, answers[i].path, strlen(answers[i].path))) return &answers[i];
  return NULL;
}

static bool wants_stream(const char *line, size_t line_len, const char *body, size_t body_len) {
  if (memmem(line, line_len, "tream", 5)) return true; /* Gemini says it in the path */
  static const char key[] = "\"stream\"";
  const char *at = memmem(body, body_len, key, sizeof key - 1);
  if (!at) return false;
  const char *end = body + body_len;
  for (at += sizeof key - 1; at < end && (*at == ':' || *at == ' ');) at++;
  return end - at >= 4 && memcmp(at, "true", 4) == 0;
}

static void put_plain(struct conn *conn, const char *status, const char *body) {
  char out[256];
  int n = snprintf(out, sizeof out, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                   status, strlen(body), body);
  put(conn, out, (size_t)n);
}

static void respond(struct conn *conn, const char *head, const char *body, size_t body_len) {
  size_t line_len = strcspn(head, "\r");
  if (strncmp(head, "GET /set?", 9) == 0) read_settings(head + 9);
  if (strncmp(head, "GET ", 4) == 0) return put_plain(conn, "200 OK", "{}");
  const struct answer *answer = answer_for(head, line_len);
  if (!answer) return put_plain(conn, "404 Not Found", "{\"error\":\"no answer for this path\"}");
  if (wants_stream(head, line_len, body, body_len) && answer->piece.len) return begin_stream(conn, answer);
  put(conn, answer->whole.data, answer->whole.len);
}

static size_t body_length(const char *head) {
  const char *at = strcasestr(head, "\r\ncontent-length:");
  return at ? strtoull(at + 17, NULL, 10) : 0;
}

/* Answers the requests that are whole, one after the other. */
static void serve(struct conn *conn) {
  while (conn->fd >= 0 && !conn->streaming && !conn->blocked && conn->place == NOWHERE && conn->used > 0) {
    char *end = memmem(conn->in, conn->used, "\r\n\r\n", 4);
    if (!end) return;
    *end = 0; /* headers become a string */
    size_t head = (size_t)(end - conn->in) + 4, body = body_length(conn->in);
    if (conn->used < head + body) {
      *end = '\r';
      return;
    }
    respond(conn, conn->in, conn->in + head, body);
    conn->used -= head + body;
    memmove(conn->in, conn->in + head + body, conn->used);
  }
}

static void make_room(struct conn *conn) {
  if (conn->room - conn->used >= 4096) return;
  conn->room = conn->room ? conn->room * 2 : 16384;
  conn->in = grown(conn->in, conn->room);
}

static void on_readable(struct conn *conn) {
  make_room(conn);
  ssize_t n = recv(conn->fd, conn->in + conn->used, conn->room - conn->used, 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0 || conn->used > MAX_REQUEST) return drop(conn);
  conn->used += (size_t)n;
  serve(conn);
}

static void on_writable(struct conn *conn) {
  ssize_t n = send(conn->fd, conn->pending.data + conn->sent, conn->pending.len - conn->sent, MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) return drop(conn);
  conn->sent += n < 0 ? 0 : (size_t)n;
  if (conn->sent < conn->pending.len) return;
  free(conn->pending.data);
  conn->pending = (struct text){0};
  conn->sent = 0;
  conn->blocked = false;
  watch(conn, EPOLL_CTL_MOD, EPOLLIN);
  if (conn->streaming) await(conn, now_us());
  else serve(conn);
}

static void on_accept(int listener) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn) die("memory");
    conn->fd = fd;
    conn->place = NOWHERE;
    watch(conn, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static void on_event(struct epoll_event *event, int listener) {
  struct conn *conn = event->data.ptr;
  if (!conn) return on_accept(listener);
  if (conn->fd >= 0 && event->events & EPOLLOUT) on_writable(conn);
  if (conn->fd >= 0 && event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(conn);
}

static void run(int listener) {
  static struct epoll_event events[MAX_EVENTS];
  for (;;) {
    struct timespec wait = waiting ? until(now_us(), heap[0]->due) : (struct timespec){3600, 0};
    int n = epoll_pwait2(poller, events, MAX_EVENTS, &wait, NULL);
    if (n < 0 && errno != EINTR) die("epoll_pwait2");
    for (int i = 0; i < n; i++) on_event(&events[i], listener);
    run_due();
    bury();
  }
}

static int listen_on(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0) die("socket");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
  if (listen(fd, 4096) < 0) die("listen");
  return fd;
}

/* The command line. */

static struct text chunk(struct text payload) {
  struct text out = {0};
  if (payload.len == 0) return out; /* an empty one would end the body */
  char size[32];
  append(&out, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", payload.len));
  append(&out, payload.data, payload.len);
  append(&out, "\r\n", 2);
  return out;
}

static struct text framed(const char *head, struct text body) {
  struct text out = {0};
  append(&out, head, strlen(head));
  append(&out, body.data, body.len);
  return out;
}

static const char whole_head[] =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n";
static const char stream_head[] =
    "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

static void prepare(struct answer *a) {
  char head[256];
  snprintf(head, sizeof head, whole_head, a->whole.len);
  a->whole = framed(head, a->whole);
  snprintf(head, sizeof head, stream_head, a->type);
  a->first = framed(head, chunk(a->first));
  a->piece = chunk(a->piece);
  const char *stamp = a->piece.len ? memmem(a->piece.data, a->piece.len, STAMP_PLACE, sizeof STAMP_PLACE - 1) : NULL;
  a->stamp = stamp ? (size_t)(stamp - a->piece.data) + sizeof STAMP_MARK - 1 : 0;
  a->last = chunk(a->last);
  append(&a->last, "0\r\n\r\n", 5);
}

static struct answer *new_answer(const char *path) {
  if (answer_count == MAX_ANSWERS) refuse("too many answers", path);
  answers[answer_count] = (struct answer){.path = path, .type = "text/event-stream"};
  return &answers[answer_count++];
}

static void read_option(const char *name, const char *value, int *port) {
  static struct answer *answer;
  if (strcmp(name, "--port") == 0) *port = atoi(value);
  else if (strcmp(name, "--pieces") == 0 || strcmp(name, "--pace") == 0 || strcmp(name, "--batch") == 0)
    put_setting(name + 2, strtoull(value, NULL, 10));
  else if (strcmp(name, "--answer") == 0) answer = new_answer(value);
  else if (!answer) refuse("first --answer PATH, then", name);
  else if (strcmp(name, "--type") == 0) answer->type = value;
  else if (strcmp(name, "--whole") == 0) answer->whole = file_text(value);
  else if (strcmp(name, "--first") == 0) answer->first = file_text(value);
  else if (strcmp(name, "--piece") == 0) answer->piece = file_text(value);
  else if (strcmp(name, "--last") == 0) answer->last = file_text(value);
  else refuse("unknown option", name);
}

int main(int argc, char **argv) {
  int port = 9100;
  if (argc % 2 == 0) refuse("every option has a value", argv[argc - 1]);
  for (int i = 1; i + 1 < argc; i += 2) read_option(argv[i], argv[i + 1], &port);
  for (size_t i = 0; i < answer_count; i++) prepare(&answers[i]);
  many_files();
  signal(SIGPIPE, SIG_IGN);
  poller = epoll_create1(0);
  int listener = listen_on(port);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) < 0) die("epoll_ctl");
  run(listener);
}
