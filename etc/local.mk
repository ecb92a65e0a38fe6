# Configuration that is installed.
casesdir = $(sysconfdir)/qdqd/cases.d
dist_sysconf_DATA = etc/qdqd.conf
include systemd/local.mk
