// A paper's text for a method against a method that ran: defaults, presets and open parameters.
#include "tests/support/check.h"

#include "harness/papers/match.h"

#include <string.h>

static void differ(const char *text, const char *ran, int count, const char *want) {
    Text out = {0};
    int got = method_text_differences(text, ran, &out);
    if (got != count || strcmp(text_get(&out), want) != 0)
        fail_msg("%s and %s: wanted %d '%s', got %d '%s'", text, ran, count, want, got, text_get(&out));
    assert_int_equal(method_text_differences(text, ran, NULL), count);
    text_release(&out);
}

static void differences(void **state) {
    (void)state;
    differ("autoregressive", "autoregressive", 0, "");
    differ("lookahead:W=15,N=5,G=15", "lookahead:G=15,W=15", 0, "");
    differ("lookahead:W=15", "lookahead:W=5,N=3", 2, "W=5, not 15; N=3, not 5");
    differ("kangaroo:eta=0.6", "kangaroo:eta=0.59999999999999998", 0, "");
    differ("kangaroo:eta=0.6", "kangaroo:eta=0.4", 1, "eta=0.4, not 0.6");
    differ("rest", "rest:datastore=a/b.store", 0, ""); // a file that the paper does not name
    differ("rest:datastore=c", "rest:datastore=a", 1, "datastore=a, not c");
}

static void presets(void **state) {
    (void)state;
    differ("lookahead:W=10,N=5,G=10", "lookahead:preset=paper-13b", 0, "");
    differ("lookahead:W=10,N=5,G=10", "lookahead:preset=paper-7b", 3,
           "W=15, not 10; G=15, not 10; pool_cap=15, not 10");
    differ("lookahead:mode=reference", "lookahead:verify_while_filling=off,bonus=drop,replace_eos=sampled", 0,
           "");
    differ("prompt-lookup:preset=hf-4.37", "prompt-lookup:ngram_max=2,allow_short=on", 0, "");
    differ("ouroboros:preset=code,suffixes=off", "ouroboros:preset=code,K=3,suffixes=off", 0, "");
}

// What follows from an open parameter is open, too.
static void open_ones(void **state) {
    (void)state;
    assert_true(method_text_open("ngrammys:k=*,w=*"));
    assert_false(method_text_open("ngrammys:k=10,w=10"));
    differ("ngrammys:k=*,w=*", "ngrammys:k=3,w=4", 0, "");
    differ("ngrammys:k=*,w=*", "ngrammys:k=3,w=4,q=2", 1, "q=2, not 1");
    differ("ngrammys:k=*,w=*", "ngrammys:k=3,w=4,table=whole", 0, "");
    differ("lookahead:N=5,W=*,G=*", "lookahead:W=2,N=5,G=2", 0, "");
}

static void checked(void **state) {
    (void)state;
    Error e = {0};
    Text all = {0};
    assert_true(method_text_expand("lookahead:W=*,N=5", "", &all, &e));
    assert_false(method_text_expand("lookahead:X=*", "", &all, &e));
    assert_false(method_text_expand("lookahead:W=0", "", &all, &e));
    assert_false(method_text_expand("lookahaed", "", &all, &e));
    text_release(&all);
    assert_non_null(strstr(e.text, "lookahead"));
    assert_true(method_text_same_method("lookahead:W=3", "lookahead"));
    assert_false(method_text_same_method("look", "lookahead"));
    differ("lookahead:W=3", "some imported text", 0, ""); // of which nothing is known
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences), cmocka_unit_test(presets),
                                       cmocka_unit_test(open_ones), cmocka_unit_test(checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
