// A file in use by a child is cut: one line that names it, exit code 2, whatever thread finds out.
#include "tests/support/check.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/model/make/synth.h"
#include "harness/cli/signals.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 64, PAGE = 4096, THREADS = 4 };

typedef struct {
    char folder[FOLDER_PATH_SIZE];
    char file[FOLDER_PATH_SIZE + 64];
    char err[4096]; // what the child wrote
} Place;

static int enter(void **state) {
    static Place p;
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    folder_make(p.folder);
    *state = &p;
    return 0;
}

static int leave(void **state) {
    folder_remove(((Place *)*state)->folder);
    return 0;
}

static void *read_backwards(void *argument) {
    const FileView *view = argument;
    unsigned sum = 0;
    for (size_t i = view->size; i-- > 0;) sum += view->data[i];
    return (void *)(uintptr_t)sum;
}

// The child maps the file, cuts it to `rest` bytes and reads all of it with some threads.
static _Noreturn void use_and_cut(const char *path, off_t rest, int err) {
    FileView view;
    pthread_t threads[THREADS];
    dup2(err, STDERR_FILENO);
    shrunk_catch();
    if (!file_map(path, &view, NULL) || truncate(path, rest)) _exit(99);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, read_backwards, &view)) _exit(98);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    _exit(0);
}

static int run_child(Place *p, const char *name, off_t rest) {
    static const char pages[PAGES * PAGE];
    scratch_write(p->folder, name, pages, sizeof pages);
    snprintf(p->file, sizeof p->file, "%s/%s", p->folder, name);
    FILE *err = tmpfile();
    pid_t child = fork();
    if (child == 0) use_and_cut(p->file, rest, fileno(err));
    int code = child_wait(child);
    ssize_t n = pread(fileno(err), p->err, sizeof p->err - 1, 0);
    p->err[n > 0 ? n : 0] = 0;
    fclose(err);
    return code;
}

static void one_line_names_the_file(void **state) {
    Place *p = *state;
    static const char *const names[] = {"weights", "with some spaces (deleted)", "-", "0-f r--p 0"};
    static const off_t rests[] = {0, 1, PAGE, 7 * PAGE, (PAGES - 2) * PAGE};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 5; k++) {
            char wanted[sizeof p->file + 128];
            int code = run_child(p, names[i], rests[k]);
            snprintf(wanted, sizeof wanted,
                     "outpace: cannot read '%s': it shrank while in use; fetch it again\n", p->file);
            if (code != 2 || strcmp(p->err, wanted) != 0)
                fail_msg("cut to %ld: exit code %d, '%s', wanted '%s'", (long)rests[k], code, p->err, wanted);
        }
    assert_int_equal(run_child(p, "whole", PAGES * PAGE), 0); // nothing was cut
    assert_string_equal(p->err, "");
}

// A SIGBUS that another process sends is no file's fault.
static void sent_ones_kill(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        shrunk_catch();
        raise(SIGBUS);
        _exit(0);
    }
    assert_int_equal(child_wait(child), 128 + SIGBUS);
}

// Until the process has mapped a file of that name.
static bool wait_for_mapping(pid_t pid, const char *path) {
    char maps[64], line[8192];
    snprintf(maps, sizeof maps, "/proc/%d/maps", (int)pid);
    for (double end = clock_now(clock_monotonic()) + 20; clock_now(clock_monotonic()) < end;) {
        FILE *f = fopen(maps, "r");
        bool found = false;
        while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, path) != NULL;
        if (f) fclose(f);
        if (found) return true;
    }
    return false;
}

// The program waits for its prompt on standard input while its weights are cut.
static void generating(void **state) {
    Place *p = *state;
    const char *program = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    char dir[sizeof p->folder + 16], weights[sizeof p->file];
    Error e = {0};
    int ends[2];
    snprintf(dir, sizeof dir, "%s/model", p->folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", dir);
    if (!model_synth(dir, &(SynthOptions){.shape = "tiny"}, &e)) fail_msg("%s", e.text);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    FILE *out = tmpfile(), *err = tmpfile();
    const char *const argv[] = {program, "generate", dir, "-", "-n", "4", NULL};
    pid_t child = child_start(NULL, argv, ends[0], fileno(out), fileno(err));
    assert_true(wait_for_mapping(child, weights));
    assert_int_equal(truncate(weights, 2 * PAGE), 0); // the header stays: it may be parsed right now
    assert_int_equal(write(ends[1], "abc", 3), 3);
    close(ends[0]);
    close(ends[1]);
    int code = child_wait(child);
    ssize_t n = pread(fileno(err), p->err, sizeof p->err - 1, 0);
    p->err[n > 0 ? n : 0] = 0;
    char wanted[sizeof weights + 64];
    snprintf(wanted, sizeof wanted, "cannot read '%s': it shrank while in use", weights);
    if (code != 2 || !strstr(p->err, wanted))
        fail_msg("exit code %d, '%s', wanted '%s'", code, p->err, wanted);
    fclose(out);
    fclose(err);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_names_the_file),
        cmocka_unit_test(sent_ones_kill),
        cmocka_unit_test(generating),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
