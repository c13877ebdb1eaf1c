"""How tests start a kernel: at sockets in a private folder, so that kernels which start side by side do not meet.

jupyter_client binds TCP ports to choose them, and closes them before the kernel has started. Meanwhile another kernel, or any
connection of another process, can be given the same port; then the kernel ends with "Address already in use", and its client says
"Kernel died before replying to kernel_info".
"""

import contextlib
import shutil
from collections.abc import Iterator

from kcontrol.install.jupyter_server import private_folder


@contextlib.contextmanager
def sockets() -> Iterator[dict[str, str]]:
    """The settings of a KernelManager whose kernel listens in a new folder, which is deleted at the end."""
    folder = private_folder()
    try:
        yield {"transport": "ipc", "connection_file": str(folder / "kernel.json")}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
