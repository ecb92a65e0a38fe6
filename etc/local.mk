# Configuration that is installed, and the folder of an operator's insertion cases.
casesdir = $(sysconfdir)/qdqd/cases.d
dist_sysconf_DATA = etc/qdqd.conf
dist_cases_DATA = etc/cases.d/first_and_last.lua.example
include systemd/local.mk
