// datasets/fetch against a server on this machine: whole, true files are kept; truncated, longer, changed or
// missing ones aren't, and leave nothing behind.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char WHOLE[] = "{\"prompt\": \"What is true stays.\"}\n";

// The server's answer for a file: a length, and the bytes that it sends.
typedef struct {
    const char *name;
    size_t claims;
    const char *sends;
} Served;

static const Served SERVED[] = {
    {"whole", sizeof WHOLE - 1, WHOLE},
    {"cut", sizeof WHOLE - 1, "{\"prompt\": \"What is"},
    {"short", 8, "{\"prompt"},
    {"tampered", sizeof WHOLE - 1, "{\"prompt\": \"What is true strays\"}\n"},
    {"longer", 70, "{\"prompt\": \"What is true stays.\"}\n{\"prompt\": \"And more, and more.\"}\n"},
};

static const Served *served(const char *request) {
    for (size_t i = 0; i < sizeof SERVED / sizeof *SERVED; i++) {
        char line[64];
        snprintf(line, sizeof line, "GET /%s ", SERVED[i].name);
        if (strncmp(request, line, strlen(line)) == 0) return &SERVED[i];
    }
    return NULL;
}

static void answer(int client) {
    char request[4096] = "", head[256];
    ssize_t n = read(client, request, sizeof request - 1);
    const Served *file = n > 0 ? served(request) : NULL;
    if (file)
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                 file->claims);
    else
        snprintf(head, sizeof head,
                 "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    n = write(client, head, strlen(head));
    if (file) n += write(client, file->sends, strlen(file->sends));
    close(client);
}

typedef struct {
    char folder[FOLDER_PATH_SIZE];
    pid_t server;
    int port;
} Fixture;

static int set_up(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8) ||
        getsockname(listener, (struct sockaddr *)&at, &size))
        return -1;
    f->port = ntohs(at.sin_port);
    f->server = fork();
    if (f->server == 0) {
        signal(SIGPIPE, SIG_IGN); // a client that hangs up early is what one case is about
        for (;;) answer(accept(listener, NULL, NULL));
    }
    close(listener);
    folder_make(f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    folder_remove(f->folder);
    free(f);
    return 0;
}

static void write_sources(const Fixture *f) {
    static const char *const names[] = {"whole", "cut", "short", "tampered", "longer", "absent"};
    char sha256[SHA256_TEXT];
    Text table = {0};
    assert_true(sha256_bytes(WHOLE, sizeof WHOLE - 1, sha256, NULL));
    text_puts(&table, "name\tsplit\tformat\tfile\trows\tbytes\tsha256\tlicence\turl\tabout\n");
    for (size_t i = 0; i < 6; i++)
        text_printf(&table, "%s\t-\tjsonl\tsub/%s.jsonl\t1\t%zu\t%s\tCC0\thttp://127.0.0.1:%d/%s\ta test\n",
                    names[i], names[i], sizeof WHOLE - 1, sha256, f->port, names[i]);
    text_puts(&table, "mine\t-\tjsonl\tmine.jsonl\t-\t-\t-\tnone\t-\tnot to be had\n");
    scratch_write(f->folder, "sources.tsv", text_get(&table), table.length);
    text_release(&table);
}

// Fetches `name`; checks the exit code, the text in its output, and the number of files in the folder.
static void fetch(const Fixture *f, const char *name, int code, const char *says, int files) {
    Child c = {0};
    const char *argv[] = {"datasets/fetch", folder_path(f->folder, "data"), name, NULL};
    child_run(&c, NULL, NULL, argv);
    bool said = strstr(text_get(&c.out), says) || strstr(text_get(&c.err), says);
    if (c.code != code || !said)
        fail_msg("%s: wanted %d and '%s', got %d, '%s%s'", name, code, says, c.code, text_get(&c.out),
                 text_get(&c.err));
    if (files) assert_int_equal(folder_count(folder_path(f->folder, "data/sub")), files);
    child_release(&c);
}

static void good_and_bad(void **state) {
    Fixture *f = *state;
    write_sources(f);
    setenv("OUTPACE_SOURCES", folder_path(f->folder, "sources.tsv"), 1);
    fetch(f, "whole", 0, "licence: CC0", 1);
    size_t n;
    char *got = scratch_read(f->folder, "data/sub/whole.jsonl", &n);
    assert_string_equal(got, WHOLE);
    mem_free(got);
    fetch(f, "whole", 0, "is there already", 1);
    fetch(f, "cut", 1, "could not be downloaded whole", 1);
    fetch(f, "short", 1, "it was changed or cut", 1);
    fetch(f, "tampered", 1, "it was changed or cut", 1);
    fetch(f, "longer", 1, "fetch:", 1);
    fetch(f, "absent", 1, "could not be downloaded", 1);
    fetch(f, "mine", 1, "no dataset 'mine' to fetch", 1);
    fetch(f, "nothing", 1, "no dataset 'nothing'", 1);
    scratch_write(f->folder, "data/sub/whole.jsonl", "rotten", 6);
    fetch(f, "whole", 0, "wrote", 1);
    unsetenv("OUTPACE_SOURCES");
}

// Without curl, a server that never ends is cut at the file's size.
static void endless(void **state) {
    static const char TOOLS[] =
        "mkdir tools; for t in sh awk wc tr cut sha256sum mkdir rm mv dirname head yes; do"
        " ln -s \"$(command -v $t)\" tools/; done; printf '#!/bin/sh\n[ \"$3\" = - ] || exit 1;"
        " exec yes\n' >tools/wget; chmod +x tools/wget";
    Fixture *f = *state;
    Child c = {0};
    char *path = mem_text(getenv("PATH"), strlen(getenv("PATH")));
    child_run(&c, f->folder, NULL, (const char *const[]){"sh", "-c", TOOLS, NULL});
    assert_int_equal(c.code, 0);
    child_release(&c);
    write_sources(f);
    setenv("OUTPACE_SOURCES", folder_path(f->folder, "sources.tsv"), 1);
    setenv("PATH", folder_path(f->folder, "tools"), 1);
    fetch(f, "whole", 1, "it was changed or cut", 0);
    setenv("PATH", path, 1);
    unsetenv("OUTPACE_SOURCES");
    mem_free(path);
}

static bool has_client(void) {
    Child c = {0};
    const char *argv[] = {"sh", "-c", "command -v curl || command -v wget", NULL};
    child_run(&c, NULL, NULL, argv);
    bool found = c.code == 0;
    child_release(&c);
    return found;
}

static void runs(void **state) {
    if (!has_client()) skip();
    good_and_bad(state);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(runs, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(endless, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
