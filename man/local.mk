# Manual pages: two by hand, that of the settings from their table.
dist_man_MANS = man/qdq.1 man/qdqd.8
nodist_man_MANS = man/qdqd.conf.5
CLEANFILES += man/qdqd.conf.5

man/qdqd.conf.5: daemon/settings-doc
	$(AM_V_GEN)$(MKDIR_P) man && daemon/settings-doc manual >$@.tmp && mv $@.tmp $@
