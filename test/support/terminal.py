"""Types in a terminal, as a user does: `terminal.py COLUMNS ROWS COMMAND…` runs the command in a new one. Lines on standard input, as JSON:
["type", text], ["size", rows, columns], ["kill"] (the command, at once). Prints what is shown, and at the end, on a line of its own, the exit
code of the command and whether the terminal is as it was."""
import fcntl, json, os, select, struct, subprocess, sys, termios

columns, rows, *command = sys.argv[1:]
# Its other end stays open, so that its settings can be looked at when the command has gone.
terminal, other = os.openpty()


def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


resize(int(rows), int(columns))
child = subprocess.Popen(
    command,
    stdin=other,
    stdout=other,
    stderr=other,
    start_new_session=True,
    preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
)
told = b""
reading = [terminal, 0]
while True:
    ready = select.select(reading, [], [], 0.05)[0]
    if terminal in ready:
        sys.stdout.buffer.write(os.read(terminal, 65536))
        sys.stdout.buffer.flush()
    elif child.poll() is not None:
        break
    if 0 in ready:
        more = os.read(0, 65536)
        if not more:
            reading = [terminal]
        told += more
        *lines, told = told.split(b"\n")
        for what, *values in map(json.loads, lines):
            if what == "type":
                os.write(terminal, values[0].encode())
            elif what == "size":
                resize(*values)
            else:
                child.kill()
modes = termios.tcgetattr(other)[3]
print("\nended", child.returncode, "restored" if modes & termios.ICANON and modes & termios.ECHO else "raw")
