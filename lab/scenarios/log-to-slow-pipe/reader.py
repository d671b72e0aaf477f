# SPDX-License-Identifier: Apache-2.0
"""Reads a log from a pipe, so many bytes at a time, and rests so many seconds after each."""

import os
import sys
import time

NAME, SIZE, REST_SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
# For writing too: so that the pipe has an end before the service opens its own.
LOG = os.open(NAME, os.O_RDWR)
while os.read(LOG, SIZE):
    if REST_SECONDS:
        time.sleep(REST_SECONDS)
