"""For tests that send signals to processes."""

import signal


def heed_all_signals() -> None:
    """Undo what nohup, or a shell that runs tests in the background, hands down: ignored signals.

    For ``subprocess.Popen(preexec_fn=...)``.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
