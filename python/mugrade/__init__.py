"""The course's submission client, offline: it compares what your code computes with answers that lie beside the tests.

    python3 -m mugrade submit KEY hw1 -k forward

Nothing is sent anywhere, so this is a self-check: it tells you whether you are right, and nobody else. The names and
the command are those of the public course, so that its material works unchanged.
"""

from .session import init, local_tests, publish_tests, submit, submit_tests, test
from .values import encode_json

__all__ = ["encode_json", "init", "local_tests", "publish_tests", "submit", "submit_tests", "test"]
