"""The port: who may open it, what is said where it cannot be opened, and how it closes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kace.errors import UsageError
from kace.report.server import listening
from tests.report.sample_site import Site

SCRIPT = Path(__file__).with_name("sample_site_script.py")


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1"])
def test_a_door_to_other_machines_does_not_open_without_a_key(host: str, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> None:
        raise AssertionError("the port was opened")

    monkeypatch.setattr(socket, "socket", never)
    with pytest.raises(UsageError, match="lets other machines in") as refused, listening(host):
        pass
    assert "a key" in refused.value.fix


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_this_machine_needs_none(host: str):
    with listening(host) as port:
        assert port.url.startswith(f"http://{host}:")


def test_a_port_in_use_is_said_with_the_fix():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{number} ") as refused:
            with listening(port=number):
                pass
    assert "--port 0" in refused.value.fix


@pytest.mark.parametrize("host", ["no-such-name.invalid", "203.0.113.7"])
def test_an_address_of_another_machine_is_said_with_the_fix(host: str):
    with pytest.raises(UsageError, match=re.escape(host)), listening(host, key="token-0123456789"):
        pass


def test_a_request_under_way_is_finished_and_new_ones_are_not_taken():
    said: list[bytes] = []
    with Site(grace=5.0) as site:
        asking = threading.Thread(target=lambda: said.append(site.ask("/slow?seconds=0.8").body))
        asking.start()
        time.sleep(0.3)
        site.stop()
        time.sleep(0.3)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", site.port), timeout=5).recv(1)
    asking.join(600)
    assert said == [b"slept"]


def test_when_the_grace_is_over_the_rest_is_ended():
    with Site(grace=0.3) as site:
        asking = threading.Thread(target=lambda: site.ask("/slow?seconds=3000"))
        asking.start()
        time.sleep(0.3)
    asking.join(600)
    assert not asking.is_alive()


def test_a_second_signal_does_not_wait():
    with subprocess.Popen([sys.executable, str(SCRIPT)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as slow:
            slow.sendall(f"GET /slow?seconds=60 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None, "the grace is ten seconds"
            os.kill(process.pid, signal.SIGINT)
            assert process.stdout.readline() == "ended\n"
    assert process.returncode == 0


def test_nothing_is_left_when_a_server_has_ended():
    before = descriptors()
    for _ in range(3):
        with Site() as site:
            assert site.ask("/").status == 200
    assert descriptors() <= before
