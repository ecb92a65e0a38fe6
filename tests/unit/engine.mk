# Unit programs of the engine (without engine/data).
EXTRA_DIST += tests/unit/builder.h tests/unit/quantized.h
check_PROGRAMS += tests/unit/test_engine_skeleton
tests_unit_test_engine_skeleton_SOURCES = tests/unit/test_engine_skeleton.c
tests_unit_test_engine_skeleton_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_engine_skeleton_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_engine_model
tests_unit_test_engine_model_SOURCES = tests/unit/test_engine_model.c
tests_unit_test_engine_model_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_engine_model_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_engine_number
tests_unit_test_engine_number_SOURCES = tests/unit/test_engine_number.c
tests_unit_test_engine_number_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_engine_number_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_engine_plan
tests_unit_test_engine_plan_SOURCES = tests/unit/test_engine_plan.c
tests_unit_test_engine_plan_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_engine_plan_LDADD = $(UNIT_LDADD)
check_PROGRAMS += tests/unit/test_engine_rewrite
tests_unit_test_engine_rewrite_SOURCES = tests/unit/test_engine_rewrite.c
tests_unit_test_engine_rewrite_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_engine_rewrite_LDADD = $(UNIT_LDADD)

# The Nth allocation fails; the arena makes one malloc for many, see --enable-arena-emulator.
check_PROGRAMS += tests/fault/test_engine_memory
tests_fault_test_engine_memory_SOURCES = tests/fault/test_engine_memory.c
tests_fault_test_engine_memory_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_fault_test_engine_memory_LDADD = $(UNIT_LDADD)
tests_fault_test_engine_memory_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

# The model door: hunts under libFuzzer, replays its corpus here.
check_PROGRAMS += tests/fuzz/fuzz_model
tests_fuzz_fuzz_model_SOURCES = tests/fuzz/fuzz_model.c tests/fuzz/replay.h
tests_fuzz_fuzz_model_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_fuzz_fuzz_model_LDADD = $(UNIT_LDADD)
EXTRA_DIST += tests/fuzz/corpus/model
