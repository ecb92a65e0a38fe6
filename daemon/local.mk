# qdqd: sees the public headers of engine and api.
