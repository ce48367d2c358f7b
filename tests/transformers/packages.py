"""Whether this Python has the packages of requirements.txt; exits with 1 and says what differs if not."""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

for line in Path(__file__).with_name("requirements.txt").read_text().split():
    name, wanted = line.split("==")
    try:
        found = version(name).split("+")[0]  # less the build, such as +cpu
    except PackageNotFoundError:
        found = "missing"
    if found != wanted:
        sys.exit(f"{name} is {found}, not {wanted}")
