# SPDX-License-Identifier: Apache-2.0
"""A file system in user space with one file, whose reads take so many milliseconds. Arguments: folder, milliseconds."""

import errno
import stat
import sys
import time

from fusepy import FUSE, FuseOSError, Operations

MOUNTPOINT, MS = sys.argv[1], float(sys.argv[2])
SIZE = 1 << 16


class OneFile(Operations):
    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path == "/terms":
            return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": SIZE}
        raise FuseOSError(errno.ENOENT)

    def readdir(self, path, fh):
        return [".", "..", "terms"]

    def read(self, path, size, offset, fh):
        if MS > 0:
            time.sleep(MS / 1000)
        return b"x" * min(size, SIZE - offset)


# direct_io: no page cache between the readers and this.
FUSE(OneFile(), MOUNTPOINT, foreground=True, direct_io=True, attr_timeout=60, entry_timeout=60)
