# Unit programs of api.
