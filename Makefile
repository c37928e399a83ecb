# Outpace. `make help` lists what there is to make; the settings below can be given on the command line.
CC       = gcc
OPT      = -O3
PREFIX   = /usr/local
BUILD    = build

STD      = -std=c11 -D_GNU_SOURCE
WARN     = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
# No contraction of a*b+c: the same source must give the same bits in every place it is inlined to.
EXACT    = -ffp-contract=off
CFLAGS   = $(STD) $(OPT) -g $(WARN) $(EXACT) -I. -MMD -MP
PACKAGES = jansson libpcre2-8 libutf8proc yaml-0.1 sqlite3 gsl libcrypto
LIBS     = $(shell pkg-config --libs $(PACKAGES)) -lpthread -lm

SOURCES  = $(shell find engine simulate datasets results plots harness -name '*.c')
OBJECTS  = $(SOURCES:%.c=$(BUILD)/%.o)
LIBRARY  = $(filter-out $(BUILD)/harness/main.o,$(OBJECTS))
TESTS    = $(patsubst %.c,$(BUILD)/%,$(shell find tests -name '*_test.c'))

outpace: $(OBJECTS)
	$(CC) $(OPT) -g $^ -o $@ $(LIBS)

$(BUILD)/liboutpace.a: $(LIBRARY)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(BUILD)/liboutpace.a
	$(CC) $(OPT) -g $^ -o $@ -lcmocka $(LIBS)

tests: $(TESTS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: tests
.SECONDARY:
