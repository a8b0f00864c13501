#!/bin/sh
# Writes requirements.lock from the ranges in pyproject.toml: exact versions of everything, once for
# all systems and Pythons, without the address of a package index. Versions stay as they are where
# the ranges still allow them; remove the lock file first to move to the newest ones.
set -eu
cd "$(dirname "$0")/.."
python=$1/bin/python
tools=_build/lock-tools
[ -x "$tools/bin/uv" ] || {
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv
}
mkdir -p _build
[ ! -f requirements.lock ] || cp requirements.lock _build/requirements.lock
"$tools/bin/uv" pip compile pyproject.toml --all-extras --universal --python-version 3.12 \
    --fork-strategy fewest --no-emit-index-url --no-annotate --no-header --no-strip-extras \
    --python "$python" --quiet --output-file _build/requirements.lock
{
    echo '# Exact versions of everything, for Python 3.12 and 3.13 on Linux, macOS and Windows.'
    echo '# Written by `make lock` from the ranges in pyproject.toml; do not edit.'
    cat _build/requirements.lock
} >requirements.lock.part
mv requirements.lock.part requirements.lock
