// engine/cuda/kernels/runtime.h on a machine without a GPU. Everything that is put into a stream happens as late as
// the program allows: when somebody waits. So reading a result too early, or changing a copy's source too
// early, shows; and so does a copy from another device that has not waited for it. A device reaches its own
// memory alone (memory.hpp), and its kernels, fills and graphs are put in while it is the thread's.
#include "engine/cuda/kernels/runtime.h"

#include "tests/simt/memory.hpp"
#include "tests/simt/settings.h"
#include "tests/simt/simt.hpp"

#include <ctime>
#include <memory>
#include <vector>

enum { FAILED = 1, NO_MEMORY = 2, BROKEN = 3, ANOTHER = 4, LOST = 5, INVALID = 6 };

const bool simt_emulated = true;

typedef std::vector<SimtWork> Works;
struct Stream {
    int device;
    Works queue;
    size_t happened;                 // of them
    std::shared_ptr<Works> captured; // empty: nothing is being captured
};
struct Mark {
    Stream *stream;
    bool come;
};
struct Event {
    int device;
    std::shared_ptr<Mark> mark; // the last; empty: none
    double at;
};
struct Graph {
    int device;
    std::shared_ptr<Works> works;
};

static thread_local int current, last; // device; failure of a launch
// So much work of $OUTPACE_FAKE_FAULT is done, the next fails; from then on every call fails, as after a
// fault of a kernel. Negative: nothing does.
static long &work_left() {
    static const char *given = getenv("OUTPACE_FAKE_FAULT");
    static long left = given ? strtol(given, nullptr, 10) : -1;
    return left;
}
static int answer() { return work_left() == 0 ? BROKEN : 0; }
static int answer_of(int device) { return device == simt_settings.lost ? LOST : answer(); }

// Work for a stream is refused while another device is current.
static int usable(const void *stream) {
    int device = ((const Stream *)stream)->device;
    return device != current ? ANOTHER : answer_of(device);
}

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
static int put(void *stream, SimtWork work) {
    int code = answer_of(((const Stream *)stream)->device);
    if (code) return code;
    push(stream, std::move(work));
    if (simt_settings.tick > 0) push(stream, [] { ticked() += simt_settings.tick; });
    return 0;
}

void simt_enqueue(void *stream, SimtWork work) {
    int code = usable(stream);
    if (!code) put(stream, std::move(work));
    else if (!last) last = code;
}

void simt_call(void *stream, void (*function)(void *), const void *data, size_t bytes) {
    std::vector<max_align_t> copy((bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t));
    memcpy(copy.data(), data, bytes);
    simt_enqueue(stream, [=]() mutable { function(copy.data()); });
}

static void happen_next(Stream *s) {
    if (s->happened == s->queue.size()) {
        fprintf(stderr, "simt: a stream waits for an event that nothing leads to\n");
        abort();
    }
    SimtWork &work = s->queue[s->happened++];
    if (answer()) return;
    work();
    work_left() -= work_left() > 0;
}

static void drain(Stream *s) {
    int before = device_reach(s->device);
    while (s->happened < s->queue.size()) happen_next(s);
    s->queue.clear();
    s->happened = 0;
    device_reach(before);
}

const char *gpu_error(int code) {
    static const char *const words[] = {"no error",
                                        "the call failed",
                                        "out of memory",
                                        "an illegal memory access was encountered",
                                        "it is another device's",
                                        "the device is lost",
                                        "invalid argument"};
    return words[code];
}

// Codes that the build might have: $OUTPACE_FAKE_CODES.
const char *gpu_codes(void) {
    const char *given = getenv("OUTPACE_FAKE_CODES");
    return given ? given : "sm_80 sm_90a compute_90";
}

int gpu_versions(int *driver, int *runtime) {
    *driver = simt_settings.driver;
    *runtime = 13000;
    return 0;
}

// Each device's compute capability, 90 for 9.0, and after a colon, if it isn't 1,024, its memory in MB:
// "90:300,80". $OUTPACE_FAKE_GPUS lists them; there may be none.
struct Fake {
    int capability;
    size_t bytes;
};
static std::vector<Fake> devices() {
    const char *given = getenv("OUTPACE_FAKE_GPUS");
    std::vector<Fake> list;
    for (const char *p = given ? given : "90"; *p; p += *p == ',') {
        const char *at = p;
        int capability = (int)strtol(p, (char **)&p, 10);
        if (p == at) break; // no number: the list ends
        long megabytes = *p == ':' ? strtol(p + 1, (char **)&p, 10) : 1024;
        list.push_back({capability, (size_t)megabytes << 20});
    }
    return list;
}
static size_t free_bytes(int device) {
    size_t live = device_live_bytes(device), bytes = devices()[(size_t)device].bytes;
    return live < bytes ? bytes - live : 0;
}
int gpu_count(int *count) {
    *count = simt_settings.driver >= 13000 ? (int)devices().size() : 0;
    return simt_settings.driver && simt_settings.driver < 13000 ? FAILED : 0;
}
int gpu_use(int ordinal) {
    if ((size_t)ordinal >= devices().size()) return FAILED;
    current = ordinal;
    return 0;
}
int gpu_facts(int ordinal, GpuFacts *out) {
    int capability = devices()[(size_t)ordinal].capability;
    *out = {};
    snprintf(out->name, sizeof out->name, "SIMT shim");
    snprintf(out->uuid, sizeof out->uuid, "GPU-00000000-0000-0000-0000-%012d", ordinal + 1);
    gpu_versions(&out->driver, &out->runtime);
    out->major = capability / 10;
    out->minor = capability % 10;
    out->multiprocessors = 4;
    int kilobytes = capability == 80 ? 163 : out->major == 8 || out->major == 12 ? 99 : 227;
    out->shared_bytes = (size_t)kilobytes << 10;
    out->shared_processor = out->shared_bytes + 1024;
    out->l2_bytes = (size_t)50 << 20;
    out->total_bytes = devices()[(size_t)ordinal].bytes;
    out->free_bytes = free_bytes(ordinal);
    return answer();
}

// The counted-down allocation fails, and all behind it.
static int take(void **out, size_t bytes) {
    *out = nullptr;
    if (answer_of(current)) return answer_of(current);
    if (simt_settings.fail_after == 0 || bytes > free_bytes(current)) return NO_MEMORY;
    if (simt_settings.fail_after > 0) simt_settings.fail_after--;
    *out = device_take(bytes, current);
    return 0;
}

// A device finishes all its work before it gives memory back.
static int give(void *data) {
    for (Stream *s : streams()) drain(s);
    if (data) device_give(data);
    return 0;
}

int gpu_take(void **device, size_t bytes) {
    if (simt_settings.locked) device_reach(OF_NONE);
    return take(device, bytes);
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
    Stream *s = new Stream{current, {}, 0, nullptr};
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
    return answer_of(((Stream *)stream)->device);
}
int gpu_copy(void *to, const void *from, size_t bytes, void *stream) {
    return put(stream, [=] { memcpy(to, from, bytes); });
}
int gpu_copy_peer(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes, void *stream) {
    return put(stream, [=] {
        std::vector<unsigned char> staged(bytes);
        int before = device_reach(from_ordinal);
        memcpy(staged.data(), from, bytes);
        device_reach(to_ordinal);
        memcpy(to, staged.data(), bytes);
        device_reach(before);
    });
}
int gpu_fill(void *device, int byte, size_t bytes, void *stream) {
    int code = usable(stream);
    if (!code && !device_holds(device, bytes)) code = INVALID;
    return code ? code : put(stream, [=] { memset(device, byte, bytes); });
}
int gpu_launched() {
    int code = last;
    last = 0;
    return code ? code : answer();
}
bool gpu_has_warpgroups() { return true; }
bool gpu_begins_early() {
    const char *wanted = getenv("OUTPACE_EARLY");
    return !wanted || strcmp(wanted, "no") != 0;
}

static double now() {
    timespec t;
    if (simt_settings.tick > 0) return ticked();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gpu_event_open(void **event) {
    *event = new Event{current, nullptr, 0};
    return 0;
}
int gpu_event_close(void *event) {
    delete (Event *)event;
    return 0;
}
int gpu_event_record(void *event, void *stream) {
    Event *e = (Event *)event;
    if (e->device != ((Stream *)stream)->device) return ANOTHER;
    if (answer_of(e->device)) return answer_of(e->device);
    std::shared_ptr<Mark> mark = std::make_shared<Mark>(Mark{(Stream *)stream, false});
    e->mark = mark;
    push(stream, [=] {
        e->at = now();
        mark->come = true;
    });
    return answer();
}
int gpu_event_wait(void *event) {
    Event *e = (Event *)event;
    if (e->mark && !e->mark->come) drain(e->mark->stream);
    return answer_of(e->device);
}
// As late as may be: nothing happens that is behind the event.
int gpu_stream_after(void *stream, void *event) {
    std::shared_ptr<Mark> mark = ((Event *)event)->mark;
    if (answer_of(((Stream *)stream)->device)) return answer_of(((Stream *)stream)->device);
    if (mark)
        push(stream, [=] {
            if (mark->come) return;
            int before = device_reach(mark->stream->device);
            while (!mark->come && !answer()) happen_next(mark->stream);
            device_reach(before);
        });
    return 0;
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
    int code = gpu_launched();
    if (!code && simt_settings.no_graphs) code = FAILED;
    *graph = code ? nullptr : new Graph{s->device, s->captured};
    s->captured.reset();
    return code;
}
int gpu_graph_run(void *graph, void *stream) {
    std::shared_ptr<Works> works = ((Graph *)graph)->works;
    if (((Graph *)graph)->device != ((Stream *)stream)->device) return ANOTHER;
    if (usable(stream)) return usable(stream);
    push(stream, [=] {
        for (SimtWork &work : *works) work();
    });
    return answer();
}
int gpu_graph_close(void *graph) {
    delete (Graph *)graph;
    return 0;
}
