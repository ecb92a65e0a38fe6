# Files for systemd: the unit (with the paths of this installation), an optional socket,
# the user, and the state folder.
systemdunitdir = $(prefix)/lib/systemd/system
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d

systemdunit_DATA = systemd/qdqd.service
dist_systemdunit_DATA = systemd/qdqd.socket
dropindir = $(datadir)/qdqd
dist_dropin_DATA = systemd/gpu.conf $(CODE_MAKERS:%=systemd/%.conf)
EXTRA_DIST += systemd/qdqd.service.in systemd/qdqd.sysusers systemd/qdqd.tmpfiles
CLEANFILES += systemd/qdqd.service

systemd/qdqd.service: systemd/qdqd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|' $(top_srcdir)/systemd/qdqd.service.in >$@.tmp && \
	mv $@.tmp $@

# Both are installed under the name qdqd.conf, so they need a rule.
install-data-local:
	$(MKDIR_P) $(DESTDIR)$(sysusersdir) $(DESTDIR)$(tmpfilesdir)
	$(INSTALL_DATA) $(top_srcdir)/systemd/qdqd.sysusers \
		$(DESTDIR)$(sysusersdir)/qdqd.conf
	$(INSTALL_DATA) $(top_srcdir)/systemd/qdqd.tmpfiles \
		$(DESTDIR)$(tmpfilesdir)/qdqd.conf

uninstall-local:
	rm -f $(DESTDIR)$(sysusersdir)/qdqd.conf $(DESTDIR)$(tmpfilesdir)/qdqd.conf
