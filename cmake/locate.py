"""Print the path of the first file of an installed distribution that ends with a suffix: locate.py intel-sycl-rt lib/libsycl.so"""

import importlib.metadata
import sys
from pathlib import Path


def locate(distribution: str, suffix: str) -> str:
    wanted = Path(suffix).parts
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    for file in files:
        if file.name == wanted[-1]:
            recorded = Path(str(file.locate()))
            path = recorded.parent.resolve() / recorded.name
            if path.parts[-len(wanted) :] == wanted and path.exists():
                return path.as_posix()
    return ""


if __name__ == "__main__":
    print(locate(sys.argv[1], sys.argv[2]))
