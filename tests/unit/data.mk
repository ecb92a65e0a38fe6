# Unit programs of data.
