// More threads than processors, of which some are stopped now and then, as by busy neighbours: every bit is
// the same, and of equal logits the lowest ids are the best.
#include "tests/support/check.h"
#include "tests/support/exact_suite.h"

#include "engine/cpu/cpu.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int THREADS[] = {2, 4, 8, 16};
enum { COUNTS = sizeof THREADS / sizeof *THREADS, PERIOD = 40, TOP = 60 };

static void rest(long microseconds) {
    struct timespec t = {0, microseconds * 1000};
    nanosleep(&t, NULL);
}

static void stop_here(int signal) {
    (void)signal;
    rest(500);
}

// Stops one of this process's threads after another, until it's told to end.
static void *disturb(void *argument) {
    while (!atomic_load((atomic_bool *)argument)) {
        DIR *threads = opendir("/proc/self/task");
        assert_non_null(threads);
        for (struct dirent *d; (d = readdir(threads));) {
            long id = strtol(d->d_name, NULL, 10);
            if (id <= 0 || id == syscall(SYS_gettid)) continue;
            syscall(SYS_tgkill, getpid(), id, SIGUSR1); // which may have ended
            rest(1000);
        }
        closedir(threads);
    }
    return NULL;
}

static bool open_crowd(const Model *model, const BackendOptions *o, void **self, Error *e) {
    static int turn;
    BackendOptions crowd = *o;
    crowd.threads = THREADS[turn++ % COUNTS];
    return cpu_open(model, &crowd, self, e);
}

static void same_bits(void **state) {
    (void)state;
    const ExactBackend b = {.backend = &cpu_backend, .open = open_crowd, .most_context = EXACT_MAX_CONTEXT};
    exact_suite(&b, 0, test_some(4, 40), test_some(12, 40));
}

// Each row of the head is repeated all over the vocabulary.
static void repeat_rows(RandomModel *m) {
    const Tensor *head = &m->model.head;
    size_t bytes = tensor_row_bytes(head);
    unsigned char *rows = m->weights + ((const unsigned char *)head->data - m->weights);
    for (int id = PERIOD; id < head->rows; id++)
        memcpy(rows + (size_t)id * bytes, rows + (size_t)(id % PERIOD) * bytes, bytes);
}

static void check_best(Session *s, int node) {
    int ids[TOP];
    float logits[TOP];
    assert_true(session_top(s, &node, 1, TOP, ids, logits, NULL));
    assert_int_equal(session_argmax(s, node), ids[0]);
    const float *all = session_logits(s, node);
    for (int i = 0; i < TOP; i++) {
        int better = 0; // ids in front of this one
        for (int id = 0; id < s->shape.real_vocab; id++)
            better += all[id] > logits[i] || (all[id] == logits[i] && id < ids[i]);
        if (better != i || all[ids[i]] != logits[i])
            fail_msg("place %d of %d: id %d, in front of which are %d others", i, TOP, ids[i], better);
    }
}

static void the_lowest_id_wins(void **state) {
    (void)state;
    Random r = test_random(61);
    for (int round = 0; round < test_some(8, 60); round++) {
        RandomModel m;
        Shape shape = random_plain_shape(&r);
        shape.vocab = shape.real_vocab = test_between(&r, 3000, 6000);
        random_model_init(&m, &shape, round % 2 ? DTYPE_F32 : DTYPE_BF16, false, &r);
        repeat_rows(&m);
        BackendOptions o = {.max_nodes = 8, .threads = THREADS[round % COUNTS]};
        Session s;
        void *self;
        assert_true(cpu_open(&m.model, &o, &self, NULL));
        session_init(&s, &cpu_backend, self, &m.model.shape, &o);
        session_begin_step(&s, false, LAYOUT_TREE);
        int root = tree_root(&s.tree, test_between(&r, 0, shape.real_vocab - 1));
        assert_true(session_run(&s, shape.layers, NULL) && session_read(&s, HEAD_LOGITS, NULL));
        for (int again = 0; again < 50; again++) check_best(&s, root);
        session_release(&s);
        random_model_release(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(the_lowest_id_wins)};
    struct sigaction stopping = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    atomic_bool end = false;
    pthread_t id;
    sigaction(SIGUSR1, &stopping, NULL);
    if (pthread_create(&id, NULL, disturb, &end)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    atomic_store(&end, true);
    pthread_join(id, NULL);
    return failed;
}
