# Calibration data: .npz, .npy, .safetensors and .parquet files, archives of images, of samples
# and of ONNX's test data, and random samples, cut and
# cast into a model's inputs; and the tokenizer, which makes ids of a text.
engine_libqdqi_la_SOURCES += \
	engine/files/images/jpeg.c \
	engine/files/images/decode.c \
	engine/files/images/picture.c engine/files/images/picture.h \
	engine/files/images/png.c \
	engine/files/images/resize.c \
	engine/files/data/forms/safetensors.c engine/files/data/forms/safetensors.h \
	engine/files/data/member_names.h \
	engine/files/data/forms/sample_files.c engine/files/data/forms/sample_files.h \
	engine/files/data/forms/table.c engine/files/data/forms/table.h \
	engine/files/data/forms/table_bytes.c \
	engine/files/data/forms/table_images.c engine/files/data/forms/table_inner.h \
	engine/files/data/forms/table_reader.c engine/files/data/forms/table_shapes.c \
	engine/files/data/images/archive.c engine/files/data/images/images.h \
	engine/files/data/images/inner.h engine/files/data/images/views.c \
	engine/files/data/parquet/codec.c engine/files/data/parquet/codec.h \
	engine/files/data/parquet/cursor.c engine/files/data/parquet/cursor.h \
	engine/files/data/parquet/encodings.c engine/files/data/parquet/encodings.h \
	engine/files/data/parquet/footer.c engine/files/data/parquet/footer.h \
	engine/files/data/parquet/pages.c engine/files/data/parquet/pages.h \
	engine/files/data/parquet/thrift.c engine/files/data/parquet/thrift.h \
	engine/files/data/buffer.c engine/files/data/buffer.h \
	engine/files/data/cast.c engine/files/data/cast.h \
	engine/files/data/dataset.c engine/files/data/dataset.h \
	engine/files/data/feed.c engine/files/data/feed.h engine/files/data/feed_inner.h \
	engine/files/data/feed_arrays.c engine/files/data/feed_tokens.c \
	engine/files/data/file.c engine/files/data/file.h \
	engine/files/data/gunzip.c engine/files/data/gunzip.h \
	engine/files/data/inputs.c engine/files/data/inputs.h \
	engine/files/data/npy.c engine/files/data/npy.h \
	engine/files/data/forms/joined.c engine/files/data/forms/joined.h \
	engine/files/data/npz.c engine/files/data/npz.h \
	engine/files/data/proto.c engine/files/data/proto.h \
	engine/files/data/random.c engine/files/data/random.h \
	engine/files/data/reader.c engine/files/data/reader.h \
	engine/files/data/scaling.c engine/files/data/scaling.h \
	engine/files/data/sets.c engine/files/data/sets.h \
	engine/files/data/visit.c \
	engine/files/data/stream.c engine/files/data/stream.h \
	engine/files/data/tar.c engine/files/data/tar.h \
	engine/files/data/tokens.c engine/files/data/tokens.h \
	engine/files/text/added.c engine/files/text/added.h \
	engine/files/text/bpe.c engine/files/text/bpe.h \
	engine/files/text/normalize.c engine/files/text/normalize.h \
	engine/files/text/pattern.c engine/files/text/pattern.h \
	engine/files/text/rewrite.c \
	engine/files/text/split.c engine/files/text/split.h \
	engine/files/text/tokenizer.c \
	engine/files/text/unicode.c engine/files/text/unicode.h \
	engine/files/text/vocab.c engine/files/text/vocab.h \
	engine/files/text/word_piece.c engine/files/text/word_piece.h \
	engine/ground/tbl/casts.h
