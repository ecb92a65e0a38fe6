# The wire: sees the engine's public headers, jansson, libcrypto, nothing of the daemon.
noinst_LTLIBRARIES += api/libapi.la
api_libapi_la_CPPFLAGS = $(QDQ_INCLUDE) $(API_INCLUDE) -I$(top_srcdir)/api -I$(top_builddir)/api \
	$(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
api_libapi_la_LIBADD = $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm
api_libapi_la_SOURCES = \
	api/include/api/client.h api/documents/client.c api/documents/client.h \
	api/documents/client_results.c \
	api/include/api/compare.h api/documents/compare.c api/documents/compare.h \
	api/documents/compare_html.c \
	api/documents/output_rows.c api/documents/output_rows.h \
	api/include/api/digest.h api/base/digest.c \
	api/include/api/eta.h api/documents/eta.c \
	api/include/api/files.h api/documents/files.c \
	api/include/api/genai.h api/base/genai.c \
	api/include/api/header.h api/http/header.c \
	api/include/api/lineage.h api/lineage/names.h \
	api/lineage/statement.c api/lineage/decode.c api/lineage/bom.c \
	api/include/api/signing_key.h api/base/signing_key.c \
	api/include/api/job.h api/documents/job.c \
	api/include/api/problem.h api/include/api/problems.h api/base/problem.c \
	api/base/problem_json.c \
	api/include/api/grow.h api/base/grow.c \
	api/include/api/remote.h api/documents/remote.c api/documents/publication.c api/documents/hook.c \
	api/include/api/report.h api/documents/report.c api/documents/report_parts.c \
	api/documents/report_bound.c api/documents/report_bound.h \
	api/documents/report_graph.c api/documents/report_graph.h \
	api/documents/report_recipe.c api/documents/report_recipe.h \
	api/documents/markdown.c \
	api/documents/html.c api/documents/html.h api/documents/tables.h api/documents/advice.h \
	api/documents/html_page.c api/documents/html_drawings.c api/documents/html_graph.c \
	api/documents/html_layers.c \
	api/documents/html_ranges.c \
	api/documents/deploy.c api/documents/deploy.h \
	api/documents/info.c \
	api/include/api/overview.h api/documents/overview.c \
	api/include/api/route.h api/include/api/routes.h api/http/route.c \
	api/include/api/signature.h api/http/signature.c \
	api/include/api/targets.h \
	api/include/api/tokenizer.h api/tokenizer/tokenizer.c api/tokenizer/members.c api/tokenizer/steps.c \
	api/tokenizer/reading.h \
	api/include/api/given_members.h api/include/api/spec.h api/include/api/utf8.h \
	api/include/api/ui.h api/documents/ui.c \
	api/include/api/version.h api/documents/version.c \
	api/base/json.c api/base/json.h \
	api/base/markup.c api/base/markup.h \
	api/spec/accept.c \
	api/spec/cases.c \
	api/spec/choices.c \
	api/spec/data.c \
	api/spec/formats.c \
	api/spec/given_members.c \
	api/spec/host.c \
	api/spec/layers.c \
	api/spec/members.c api/spec/members.h \
	api/spec/preprocess.c \
	api/spec/ranges.c \
	api/spec/rules.c \
	api/spec/spec.c \
	api/spec/support.c \
	api/spec/table.c api/spec/table.h \
	api/spec/targets.c \
	api/spec/task.c \
	api/spec/values.c api/spec/values.h \
	api/spec/whatif.c

# Texts that are built in as string literals: line by line, with what C would read escaped.
TO_LITERAL = sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/'
API_LITERALS = api/openapi.inc api/report_css.inc api/report_js.inc \
	api/ui_css.inc api/ui_html.inc api/ui_js.inc
EXTRA_DIST += api/openapi.yaml api/documents/report.css api/documents/report.js \
	api/ui/page.css api/ui/page.html $(PAGE_JS)
BUILT_SOURCES += $(API_LITERALS)
CLEANFILES += $(API_LITERALS)
api/openapi.inc: $(top_srcdir)/api/openapi.yaml
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(top_srcdir)/api/openapi.yaml >$@.tmp && mv $@.tmp $@
api/report_css.inc: $(top_srcdir)/api/documents/report.css
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(top_srcdir)/api/documents/report.css >$@.tmp && mv $@.tmp $@
api/report_js.inc: $(top_srcdir)/api/documents/report.js
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(top_srcdir)/api/documents/report.js >$@.tmp && mv $@.tmp $@

# The page at /ui: its script is that of these files, in this order.
PAGE_JS = api/ui/client.js api/ui/spec.js api/ui/page.js
page_js = $(addprefix $(top_srcdir)/,$(PAGE_JS))
api/ui_css.inc: $(top_srcdir)/api/ui/page.css
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(top_srcdir)/api/ui/page.css >$@.tmp && mv $@.tmp $@
api/ui_html.inc: $(top_srcdir)/api/ui/page.html
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(top_srcdir)/api/ui/page.html >$@.tmp && mv $@.tmp $@
api/ui_js.inc: $(page_js)
	$(AM_V_GEN)$(MKDIR_P) api && $(TO_LITERAL) $(page_js) >$@.tmp && mv $@.tmp $@
