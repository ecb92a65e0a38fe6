# make check: unit programs (libcheck, TAP) and the scripts that guard the house.
