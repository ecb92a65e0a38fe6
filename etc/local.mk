# Configuration that is installed, and the folder of an operator's insertion cases.
casesdir = $(sysconfdir)/qdqd/cases.d
sysconf_DATA = etc/qdqd.conf
CLEANFILES += etc/qdqd.conf
alertsdir = $(datadir)/qdqd
dist_alerts_DATA = etc/qdqd.alerts.yml
dist_cases_DATA = etc/cases.d/first_and_last.lua.example

# Generated from the table of settings.
etc/qdqd.conf: daemon/settings-doc
	$(AM_V_GEN)$(MKDIR_P) etc && daemon/settings-doc conf >$@.tmp && mv $@.tmp $@

include man/local.mk
include systemd/local.mk
