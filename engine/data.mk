# Calibration data: .npz and .npy files, ONNX's test data and random samples, cut and
# cast into a model's inputs.
engine_libqdqi_la_SOURCES += \
	engine/data/buffer.c engine/data/buffer.h \
	engine/data/cast.c engine/data/cast.h \
	engine/data/dataset.c engine/data/dataset.h \
	engine/data/feed.c engine/data/feed.h \
	engine/data/file.c engine/data/file.h \
	engine/data/gunzip.c engine/data/gunzip.h \
	engine/data/inputs.c engine/data/inputs.h \
	engine/data/npy.c engine/data/npy.h \
	engine/data/npz.c engine/data/npz.h \
	engine/data/proto.c engine/data/proto.h \
	engine/data/random.c engine/data/random.h \
	engine/data/reader.c engine/data/reader.h \
	engine/data/sets.c engine/data/sets.h \
	engine/data/stream.c engine/data/stream.h \
	engine/data/tar.c engine/data/tar.h \
	engine/tbl/casts.h
