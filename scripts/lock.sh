#!/bin/sh
# Writes requirements.lock from the ranges in pyproject.toml: exact versions of everything, once for
# all systems and Pythons, with the hashes of all their files and without the address of a package
# index. Versions stay as they are where the ranges still allow them; remove the lock file first to
# move to the newest ones.
set -eu
cd "$(dirname "$0")/.."
python=$1/bin/python
tools=_build/lock-tools
[ -x "$tools/bin/uv" ] || {
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv
}
mkdir -p _build
# uv keeps to the versions of the file that it writes
rm -f _build/requirements.lock
[ ! -f requirements.lock ] || cp requirements.lock _build/requirements.lock
"$tools/bin/uv" pip compile pyproject.toml --all-extras --universal --python-version 3.12 \
    --fork-strategy fewest --generate-hashes --no-emit-index-url --no-annotate --no-header --no-strip-extras \
    --python "$python" --quiet --output-file _build/requirements.lock
{
    echo '# Exact versions of everything, for Python 3.12, 3.13 and 3.14 on Linux, macOS (Apple) and Windows.'
    echo '# Written by `make lock` from the ranges in pyproject.toml; do not edit.'
    echo '# pip refuses a file of none of these hashes: pip install --require-hashes -r requirements.lock'
    cat _build/requirements.lock
} >requirements.lock.part
# a package that some reader's pip would have to build needs tools that no hash covers
for minor in 3.12 3.13 3.14; do
    for system in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin \
        x86_64-pc-windows-msvc; do
        "$tools/bin/uv" pip install --dry-run --quiet --only-binary :all: --require-hashes \
            --target _build/nothing --python "$python" --python-version "$minor" \
            --python-platform "$system" -r requirements.lock.part || {
            echo "No wheel for Python $minor on $system (see above); requirements.lock stays as" \
                "it was, the new one is requirements.lock.part." >&2
            exit 1
        }
    done
done
mv requirements.lock.part requirements.lock
