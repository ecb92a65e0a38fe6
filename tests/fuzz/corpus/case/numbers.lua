return { info = 0x.8p1, case = 1e400 }
