# libremote: sees the public headers of api (and through them the engine's error), libcurl,
# jansson, libcrypto; nothing of the daemon.
noinst_LTLIBRARIES += remote/libremote.la
remote_libremote_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) $(REMOTE_INCLUDE) \
	-I$(top_srcdir)/remote $(LIBCURL_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS) $(ZLIB_CFLAGS)
# libcurl comes from those who link this: qdq loads it at the first call.
remote_libremote_la_LIBADD = api/libapi.la $(JANSSON_LIBS) $(CRYPTO_LIBS) \
	$(ZLIB_LIBS)
remote_libremote_la_SOURCES = \
	remote/include/remote/bucket.h remote/include/remote/remote.h remote/include/remote/service.h \
	remote/metrics.c \
	remote/remote.c \
	remote/service.c \
	remote/base/address.c remote/base/address.h \
	remote/base/hasher.c remote/base/hasher.h \
	remote/base/http.c remote/base/http.h \
	remote/base/http_fault.c \
	remote/base/kind.h \
	remote/base/rate.c remote/base/rate.h \
	remote/base/source.c \
	remote/s3/s3.c \
	remote/s3/s3_api.c remote/s3/s3_api.h \
	remote/s3/s3_list.c \
	remote/s3/s3_bucket.c \
	remote/s3/s3_presign.c remote/s3/s3_presign.h \
	remote/s3/s3_publish.c remote/s3/s3_publish.h \
	remote/oci/oci.c \
	remote/oci/oci_api.c remote/oci/oci_api.h \
	remote/oci/oci_archive.c remote/oci/oci_archive.h \
	remote/oci/oci_publish.c remote/oci/oci_publish.h \
	remote/oci/oci_referrers.c remote/oci/oci_referrers.h \
	remote/oci/untar.c remote/oci/untar.h \
	remote/mlflow/mlflow.c \
	remote/mlflow/mlflow_api.c remote/mlflow/mlflow_api.h \
	remote/mlflow/mlflow_place.c remote/mlflow/mlflow_place.h \
	remote/mlflow/mlflow_publish.c remote/mlflow/mlflow_publish.h \
	remote/mlflow/mlflow_ref.c remote/mlflow/mlflow_ref.h \
	remote/mlflow/mlflow_versions.c remote/mlflow/mlflow_versions.h \
	remote/mlflow/mlmodel.c remote/mlflow/mlmodel.h \
	remote/webhook/signature.c remote/webhook/signature.h \
	remote/webhook/webhook.c
