"""Mounts a file system over a directory that answers nothing (FUSE without anybody behind it) until the standard input ends. Linux, root."""
import ctypes
import os
import sys

LAZY = 2
libc = ctypes.CDLL(None, use_errno=True)
directory = os.fsencode(sys.argv[1])
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"hang", directory, b"fuse", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("hangs", flush=True)
sys.stdin.read()
libc.umount2(directory, LAZY)
# What waits for it fails now.
os.close(device)
