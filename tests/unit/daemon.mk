# Unit programs of daemon.
