// Device memory is watched by the allocation: the engine has none that two streams share in parts.
#include "tests/ptx/order.h"

#include "tests/ptx/machine.h"

static struct {
    uint32_t work, device[MOST_STREAMS];
    int stream;
    Clock now;
} m;

void order_begin(int stream, uint32_t device, const Clock *now) {
    m.work++;
    m.stream = stream;
    m.device[stream] = device;
    m.now = *now;
}

static void check(const Clock *others, const char *here, const char *there) {
    for (int i = 0; i < MOST_STREAMS; i++)
        if (i != m.stream && others->at[i] > m.now.at[i])
            machine_fault(
                "race of streams: a stream of device %u %s what a stream of device %u %s, and neither "
                "waits for the other's event",
                m.device[m.stream], here, m.device[i], there);
}

void order_touch(History *h, bool write) {
    uint32_t *last = write ? &h->writing : &h->reading;
    if (*last == m.work) return;
    *last = m.work;
    check(&h->wrote, write ? "writes" : "reads", "writes");
    if (write) check(&h->read, "writes", "reads");
    (write ? &h->wrote : &h->read)->at[m.stream] = m.now.at[m.stream];
}
