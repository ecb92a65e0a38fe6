# libremote: sees the public headers of api (and through them the engine's error), libcurl,
# jansson, libcrypto; nothing of the daemon.
noinst_LTLIBRARIES += remote/libremote.la
remote_libremote_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) $(REMOTE_INCLUDE) \
	-I$(top_srcdir)/remote $(LIBCURL_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS) $(ZLIB_CFLAGS)
# libcurl comes from those who link this: qdq loads it late.
remote_libremote_la_LIBADD = api/libapi.la $(JANSSON_LIBS) $(CRYPTO_LIBS) \
	$(ZLIB_LIBS)
remote_libremote_la_SOURCES = \
	remote/address.c remote/address.h \
	remote/hasher.c remote/hasher.h \
	remote/http.c remote/http.h remote/http_fault.c \
	remote/include/remote/remote.h remote/kind.h remote/remote.c \
	remote/metrics.c \
	remote/mlflow.c \
	remote/mlflow_api.c remote/mlflow_api.h \
	remote/mlflow_place.c remote/mlflow_place.h \
	remote/mlflow_publish.c remote/mlflow_publish.h \
	remote/mlflow_ref.c remote/mlflow_ref.h \
	remote/mlflow_versions.c remote/mlflow_versions.h \
	remote/mlmodel.c remote/mlmodel.h \
	remote/rate.c remote/rate.h \
	remote/oci/oci.c \
	remote/oci/oci_api.c remote/oci/oci_api.h \
	remote/oci/oci_archive.c remote/oci/oci_archive.h \
	remote/oci/oci_publish.c remote/oci/oci_publish.h \
	remote/oci/oci_referrers.c remote/oci/oci_referrers.h \
	remote/include/remote/bucket.h remote/s3_bucket.c \
	remote/s3.c \
	remote/s3_api.c remote/s3_api.h \
	remote/s3_presign.c remote/s3_presign.h \
	remote/s3_publish.c remote/s3_publish.h \
	remote/include/remote/service.h remote/service.c \
	remote/signature.c remote/signature.h \
	remote/oci/untar.c remote/oci/untar.h \
	remote/webhook.c
