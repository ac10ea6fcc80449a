"""One running Paceline for each person and data folder; a second start raises the first."""

import contextlib
import getpass
import hashlib
import os
import sys
import time

from PySide6.QtCore import QDir, QLockFile, QObject, QStandardPaths, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_RAISE = b"raise\n"
_RAISED = b"raised\n"
_ANSWER_MS = 2000
_RETRY_MS = 50
_MAX_SOCKET_PATH_BYTES = 100


class SingleInstance(QObject):
    """Tells whether this is the first start, and hears of later ones.

    ``key`` is what may be open once, the path of the data folder. A lock file decides who is
    first, so that two simultaneous starts cannot both win; what a killed program left behind is
    taken over. Needs a Qt application; used on the window's thread.
    """

    raised = Signal()
    """Another start asked for the window of this one."""

    def __init__(self, key: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        name, folder = _name(key), _runtime_folder()
        self._socket = _socket_path(folder, name)
        self._lock = QLockFile(os.path.join(folder, f"{name}.lock"))
        # Only the death of its owner makes a lock stale, never its age.
        self._lock.setStaleLockTime(0)
        self._server: QLocalServer | None = None
        self.answered = False
        """After a refused :meth:`acquire`: whether the first program raised its window."""

    def acquire(self) -> bool:
        """Return True when this is the only start; otherwise ask the first one to raise itself.

        Waits up to two seconds for its answer. Where no lock can be made at all (no writable
        place), every start is treated as the first.
        """
        if self._lock.tryLock(0) or self._lock.error() != QLockFile.LockError.LockFailedError:
            self._listen()
            return True
        self.answered = self._ask_to_raise()
        return False

    def release(self) -> None:
        """Let the next start be the first."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    def _listen(self) -> None:
        QLocalServer.removeServer(self._socket)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._welcome)
        self._server.listen(self._socket)

    def _welcome(self) -> None:
        while self._server is not None and self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(lambda socket=socket: self._answer(socket))
            if socket.canReadLine():
                self._answer(socket)

    def _answer(self, socket: QLocalSocket) -> None:
        if socket.canReadLine() and socket.readLine().data() == _RAISE:
            socket.write(_RAISED)
            socket.flush()
            self.raised.emit()

    def _ask_to_raise(self) -> bool:
        deadline = time.monotonic() + _ANSWER_MS / 1000
        # The first one may hold the lock and not listen yet.
        while (left_ms := int((deadline - time.monotonic()) * 1000)) > 0:
            socket = QLocalSocket()
            socket.connectToServer(self._socket)
            if socket.waitForConnected(left_ms):
                socket.write(_RAISE)
                socket.flush()
                answered = socket.waitForReadyRead(left_ms)
                return answered and socket.readLine().data() == _RAISED
            time.sleep(_RETRY_MS / 1000)
        return False


def _name(key: str) -> str:
    """Return a short name that differs for every person and key."""
    person = getpass.getuser()
    with contextlib.suppress(AttributeError):  # there are no user ids on Windows
        person = str(os.getuid())
    digest = hashlib.sha256(f"{person}\0{os.path.abspath(key)}".encode(errors="surrogateescape"))
    return f"paceline-{digest.hexdigest()[:16]}"


def _runtime_folder() -> str:
    if sys.platform == "linux" and not os.environ.get("XDG_RUNTIME_DIR"):
        # Qt would make up a folder and warn about it.
        return QDir.tempPath()
    place = QStandardPaths.StandardLocation.RuntimeLocation
    return QStandardPaths.writableLocation(place) or QDir.tempPath()


def _socket_path(folder: str, name: str) -> str:
    """Return the socket's place beside the lock; a bare name where Qt must choose the place."""
    path = os.path.join(folder, name)
    fits = len(os.fsencode(path)) <= _MAX_SOCKET_PATH_BYTES
    return path if os.name == "posix" and fits else name
