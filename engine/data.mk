# Calibration data: .npz and .npy files, cut and cast into a model's inputs.
engine_libqdqi_la_SOURCES += \
	engine/data/cast.c engine/data/cast.h \
	engine/data/dataset.c engine/data/dataset.h \
	engine/data/feed.c engine/data/feed.h \
	engine/data/file.c engine/data/file.h \
	engine/data/npy.c engine/data/npy.h \
	engine/data/npz.c engine/data/npz.h \
	engine/data/reader.c engine/data/reader.h \
	engine/data/stream.c engine/data/stream.h \
	engine/tbl/casts.h
