# Unit programs of the engine (without engine/data).
EXTRA_DIST += tests/unit/builder.h tests/unit/cases.h tests/unit/failing.h tests/unit/quantized.h
check_PROGRAMS += \
	tests/unit/test_engine_cases \
	tests/unit/test_engine_catalog \
	tests/unit/test_engine_constant \
	tests/unit/test_engine_equalize \
	tests/unit/test_engine_external \
	tests/unit/test_engine_fake \
	tests/unit/test_engine_half \
	tests/unit/test_engine_gates \
	tests/unit/test_engine_hunt \
	tests/unit/test_engine_low \
	tests/unit/test_engine_model \
	tests/unit/test_engine_number \
	tests/unit/test_engine_observations \
	tests/unit/test_engine_parts \
	tests/unit/test_engine_plan \
	tests/unit/test_engine_range \
	tests/unit/test_engine_rewrite \
	tests/unit/test_engine_rules \
	tests/unit/test_engine_sandbox \
	tests/unit/test_engine_scopes \
	tests/unit/test_engine_select \
	tests/unit/test_engine_skeleton \
	tests/unit/test_engine_twin \
	tests/unit/test_engine_weights

# The Nth allocation fails (failing.h); the arena makes one malloc for many, see
# --enable-arena-emulator.
FAILING = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
check_PROGRAMS += tests/fault/test_engine_memory
check_PROGRAMS += tests/fault/test_whatif_memory
tests_fault_test_whatif_memory_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_fault_test_engine_memory_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_catalog_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_observations_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_sandbox_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_external_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_equalize_LDFLAGS = $(AM_LDFLAGS) $(FAILING)
tests_unit_test_engine_twin_LDFLAGS = $(AM_LDFLAGS) $(FAILING)

# The model door: hunts under libFuzzer, replays its corpus here.
check_PROGRAMS += tests/fuzz/fuzz_model

# The door of insertion cases: hunts under libFuzzer, replays its corpus here.
check_PROGRAMS += tests/fuzz/fuzz_case

# These run models.
tests_fault_test_whatif_memory_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-DQDQ_ORT_LIBRARY='"$(ORT_LIBRARY)"'
tests_unit_test_engine_parts_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-DQDQ_ORT_LIBRARY='"$(ORT_LIBRARY)"'
tests_unit_test_engine_fake_CPPFLAGS = $(UNIT_CPPFLAGS) \
	-DQDQ_ORT_LIBRARY='"$(ORT_LIBRARY)"'

# The door of observations: hunts under libFuzzer, replays its corpus here.
check_PROGRAMS += tests/fuzz/fuzz_observations
