# Configuration that is installed.
dist_sysconf_DATA = etc/qdqd.conf
include systemd/local.mk
