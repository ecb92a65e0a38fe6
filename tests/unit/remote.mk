# Unit programs of remote.
check_PROGRAMS += \
	tests/unit/remote/test_address \
	tests/unit/remote/test_hasher \
	tests/unit/remote/test_metrics \
	tests/unit/remote/test_mlmodel \
	tests/unit/remote/test_presign \
	tests/unit/remote/test_rate \
	tests/unit/remote/test_refs \
	tests/unit/remote/test_signature

# The fuzz target. Built without libFuzzer, it replays its corpus.
check_PROGRAMS += tests/fuzz/fuzz_remote
