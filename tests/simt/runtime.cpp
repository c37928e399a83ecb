// engine/cuda/runtime.h on a machine without a GPU. Everything that is put into a stream happens as late as
// the program allows: when somebody waits. So reading a result too early, or changing a copy's source too
// early, shows.
#include "engine/cuda/runtime.h"

#include "tests/simt/memory.hpp"
#include "tests/simt/settings.h"
#include "tests/simt/simt.hpp"

#include <ctime>
#include <memory>
#include <vector>

enum { FAILED = 1, NO_MEMORY = 2, BROKEN = 3 };

const bool simt_emulated = true;

typedef std::vector<SimtWork> Works;
struct Stream {
    Works queue;
    std::shared_ptr<Works> captured; // empty: nothing is being captured
};
struct Event {
    Stream *stream;
    int coming; // marks that have not come yet
    double at;
};

static std::vector<Stream *> &streams() {
    static std::vector<Stream *> list;
    return list;
}

static void push(void *stream, SimtWork work) {
    Stream *s = (Stream *)stream;
    (s->captured ? *s->captured : s->queue).push_back(std::move(work));
}

static double &ticked() {
    static double seconds;
    return seconds;
}

// Ticks in the order in which things happen.
void simt_enqueue(void *stream, SimtWork work) {
    push(stream, std::move(work));
    if (simt_settings.tick > 0) push(stream, [] { ticked() += simt_settings.tick; });
}

void simt_call(void *stream, void (*function)(void *), const void *data, size_t bytes) {
    std::vector<max_align_t> copy((bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t));
    memcpy(copy.data(), data, bytes);
    simt_enqueue(stream, [=]() mutable { function(copy.data()); });
}

// So much work of $OUTPACE_FAKE_FAULT is done, the next fails; from then on every call fails, as after a fault of a
// kernel. Negative: nothing does.
static long &work_left() {
    static const char *given = getenv("OUTPACE_FAKE_FAULT");
    static long left = given ? strtol(given, nullptr, 10) : -1;
    return left;
}
static int answer() { return work_left() == 0 ? BROKEN : 0; }

static void drain(Stream *s) {
    if (s->queue.empty()) return;
    if (simt_settings.locked) device_lock(false);
    for (SimtWork &work : s->queue) {
        if (answer()) break;
        work();
        work_left() -= work_left() > 0;
    }
    s->queue.clear();
    if (simt_settings.locked) device_lock(true);
}

const char *gpu_error(int code) {
    return code == NO_MEMORY ? "out of memory"
           : code == BROKEN  ? "an illegal memory access was encountered"
           : code == FAILED  ? "the call failed"
                             : "no error";
}

int gpu_versions(int *driver, int *runtime) {
    *driver = simt_settings.driver;
    *runtime = 13000;
    return 0;
}

// What each device can do, 90 for 9.0: the numbers of $OUTPACE_FAKE_GPUS, which may be none.
static std::vector<int> devices() {
    const char *given = getenv("OUTPACE_FAKE_GPUS");
    std::vector<int> list;
    for (const char *p = given ? given : "90"; *p; p += *p == ',')
        list.push_back((int)strtol(p, (char **)&p, 10));
    return list;
}
int gpu_count(int *count) {
    *count = simt_settings.driver >= 13000 ? (int)devices().size() : 0;
    return simt_settings.driver && simt_settings.driver < 13000 ? FAILED : 0;
}
int gpu_use(int ordinal) { return (size_t)ordinal < devices().size() ? 0 : FAILED; }
int gpu_facts(int ordinal, GpuFacts *out) {
    int capability = devices()[(size_t)ordinal];
    *out = {};
    snprintf(out->name, sizeof out->name, "SIMT shim");
    snprintf(out->uuid, sizeof out->uuid, "GPU-00000000-0000-0000-0000-%012d", ordinal + 1);
    gpu_versions(&out->driver, &out->runtime);
    out->major = capability / 10;
    out->minor = capability % 10;
    out->multiprocessors = 4;
    out->shared_bytes = 227 << 10;
    out->total_bytes = out->free_bytes = (size_t)1 << 30;
    return answer();
}

// The counted-down allocation fails, and all behind it.
static int take(void **out, size_t bytes) {
    *out = nullptr;
    if (answer()) return answer();
    if (simt_settings.fail_after == 0) return NO_MEMORY;
    if (simt_settings.fail_after > 0) simt_settings.fail_after--;
    *out = device_take(bytes);
    return 0;
}

// A device finishes all its work before it gives memory back.
static int give(void *data) {
    for (Stream *s : streams()) drain(s);
    if (simt_settings.locked) device_lock(false);
    if (data) device_give(data);
    if (simt_settings.locked) device_lock(true);
    return 0;
}

int gpu_take(void **device, size_t bytes) {
    int code = take(device, bytes);
    if (simt_settings.locked) device_lock(true);
    return code;
}
int gpu_give(void *device) { return give(device); }

// Pinned memory is the host's too, so it is never locked.
int gpu_take_pinned(void **host, size_t bytes) {
    *host = nullptr;
    if (answer()) return answer();
    if (simt_settings.fail_after == 0) return NO_MEMORY;
    if (simt_settings.fail_after > 0) simt_settings.fail_after--;
    *host = malloc(bytes);
    memset(*host, simt_settings.poison, bytes);
    return 0;
}
int gpu_give_pinned(void *host) {
    free(host);
    return 0;
}

int gpu_stream_open(void **stream) {
    Stream *s = new Stream;
    streams().push_back(s);
    *stream = s;
    return 0;
}
int gpu_stream_close(void *stream) {
    for (size_t i = 0; i < streams().size(); i++)
        if (streams()[i] == stream) {
            streams().erase(streams().begin() + (long)i);
            delete (Stream *)stream;
            return 0;
        }
    return FAILED;
}
int gpu_stream_wait(void *stream) {
    drain((Stream *)stream);
    return answer();
}
int gpu_copy(void *to, const void *from, size_t bytes, void *stream) {
    simt_enqueue(stream, [=] { memcpy(to, from, bytes); });
    return answer();
}
int gpu_fill(void *device, int byte, size_t bytes, void *stream) {
    simt_enqueue(stream, [=] { memset(device, byte, bytes); });
    return answer();
}
int gpu_launched() { return answer(); }
bool gpu_begins_early() {
    const char *wanted = getenv("OUTPACE_EARLY");
    return !wanted || strcmp(wanted, "no") != 0;
}

bool gpu_has_clusters() { return false; } // blocks run one after another

static double now() {
    timespec t;
    if (simt_settings.tick > 0) return ticked();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gpu_event_open(void **event) {
    *event = new Event();
    return 0;
}
int gpu_event_close(void *event) {
    delete (Event *)event;
    return 0;
}
int gpu_event_record(void *event, void *stream) {
    Event *e = (Event *)event;
    e->stream = (Stream *)stream;
    e->coming++;
    push(stream, [=] {
        e->at = now();
        e->coming--;
    });
    return answer();
}
int gpu_event_wait(void *event) {
    Event *e = (Event *)event;
    if (e->coming) drain(e->stream);
    return answer();
}
int gpu_event_seconds(void *from, void *to, double *seconds) {
    *seconds = ((Event *)to)->at - ((Event *)from)->at;
    return answer();
}

int gpu_graph_begin(void *stream) {
    ((Stream *)stream)->captured = std::make_shared<Works>();
    return answer();
}
int gpu_graph_end(void *stream, void **graph) {
    Stream *s = (Stream *)stream;
    *graph = simt_settings.no_graphs ? nullptr : new std::shared_ptr<Works>(s->captured);
    s->captured.reset();
    return simt_settings.no_graphs ? FAILED : answer();
}
int gpu_graph_run(void *graph, void *stream) {
    std::shared_ptr<Works> works = *(std::shared_ptr<Works> *)graph;
    push(stream, [=] {
        for (SimtWork &work : *works) work();
    });
    return answer();
}
int gpu_graph_close(void *graph) {
    delete (std::shared_ptr<Works> *)graph;
    return 0;
}
