# Configuration that is installed.
