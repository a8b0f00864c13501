"""Kernels of notebooks, and how they end when the program is asked to end."""

import contextlib
import logging
import os
import signal
import threading

# that long a cell has for its own end, as to leave no half of a file
SECONDS_TO_END = 5


class Kernels:
    """The kernels that papermill starts, each with its processes in a group of its own.

    Attributes
    ----------
    asked : list of tuple
        Signals that asked for the end: number and frame.
    """

    def __init__(self):
        self.asked = []
        self._processes = []
        self._managers = []
        self._executing = False
        self._timer = None

    def settings(self):
        """What papermill needs to know: who starts kernels, and whom to tell of cells."""
        from jupyter_client import AsyncKernelManager

        kernels = self

        class Manager(AsyncKernelManager):
            async def start_kernel(self, **options):
                if kernels.asked:
                    raise RuntimeError("interrupted before the kernel was started")
                kernels._managers.append(self)
                try:
                    await super().start_kernel(**options)
                finally:
                    if self.has_kernel:
                        kernels._processes.append(self.provisioner.process)
                if kernels.asked:
                    kernels.kill()

            async def shutdown_kernel(self, now=False, restart=False):
                if kernels.asked:
                    # one that has time to end may tell of what it finds closed
                    kernels.kill()
                await super().shutdown_kernel(now=now or bool(kernels.asked), restart=restart)

        def begin(**cell):
            self._executing = True

        def end(**cell):
            self._executing = False

        return {
            "kernel_manager_class": Manager,
            "on_cell_execute": begin,
            "on_cell_executed": end,
        }

    def end(self, number, frame):
        """Handle a signal: end the cell, or else the kernel, of which papermill takes notice."""
        self.asked.append((number, frame))
        if self._executing and len(self.asked) == 1 and os.name == "posix":
            for process in self._processes:
                # the kernel alone: it decides what becomes of the processes that it started
                process.send_signal(signal.SIGINT)
            self._timer = threading.Timer(SECONDS_TO_END, self.kill)
            self._timer.daemon = True
            self._timer.start()
        else:
            self.kill()

    def kill(self):
        """End what is left, at once."""
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    if hasattr(os, "killpg"):
                        os.killpg(process.pid, signal.SIGKILL)
                    else:
                        process.kill()

    def close(self):
        """Leave no kernel behind, and no open connection to one."""
        if self._timer:
            self._timer.cancel()
        self.kill()
        for process in self._processes:
            process.wait()
        for manager in self._managers:
            # closed already, unless papermill was cut short
            manager.context.destroy(linger=0)


@contextlib.contextmanager
def ending_kernels():
    """Let Ctrl-C, and SIGTERM where somebody handles it, end the kernels before anything else.

    papermill waits for its kernel in an event loop. An error raised in the midst of it would
    leave tasks behind that nobody waits for, and a kernel that is just starting. So a signal ends
    the kernel, papermill comes to its own end, and only then the signal does what it did before.
    What a parent process had this one ignore stays ignored. papermill's own log of how a kernel
    ended is silenced, as whoever called it tells.

    Yields
    ------
    Kernels
        Its settings are for papermill.
    """
    kernels, before = Kernels(), {}
    log = logging.getLogger("papermill")
    level = log.level
    try:
        log.setLevel(logging.CRITICAL)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    before[number] = handler
                    signal.signal(number, kernels.end)
        yield kernels
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        kernels.close()
        log.setLevel(level)
        if kernels.asked:
            number, frame = kernels.asked[0]
            before[number](number, frame)
