#!/bin/sh
# Makes the environment in a folder (default .venv) from requirements.lock, with this repository's
# package in it, unless a stamp says that it is already there.
#
#   sh scripts/environment.sh [FOLDER [PYTHON]]
#
# PYTHON is the interpreter to build on; without it, one that fits is looked for.
#
# Every file must have a hash that the lock names. pip takes a wheel where there is one, as there is
# for every package on the systems and Pythons of the lock; elsewhere it would build the package
# with tools that no hash covers. The build backend of this repository's own package is setuptools
# from the lock.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-.venv}
wanted=${2:-}
stamp=$folder/.ready

say() { printf '%s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }

# "3.13", or nothing where the candidate does not run (a pyenv shim may exist and still fail)
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || :
}

# Python 3.14 comes last: every package of the lock has a file for it, but nobody has run the book
# on it.
find_python() {
    versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
    for minor in 3.13 3.12 3.14; do
        for candidate in "python$minor" python3 python "$versions/$minor"/bin/python \
            "$versions/$minor".*/bin/python; do
            if [ "$(version_of "$candidate")" = "$minor" ]; then
                say "$candidate"
                return
            fi
        done
    done
}

# What the environment was made from: the lock, the package's description and the folder, because
# neither an environment nor an editable install survives being moved.
fingerprint=$(pwd; cat requirements.lock pyproject.toml scripts/environment.sh | cksum)

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$fingerprint" ] &&
    [ -n "$(version_of "$folder/bin/python")" ]; then
    if [ -z "$wanted" ] || [ "$(version_of "$wanted")" = "$(version_of "$folder/bin/python")" ]; then
        exit 0
    fi
fi

if [ -n "$wanted" ]; then
    python=$wanted
    case $(version_of "$python") in
        3.12 | 3.13 | 3.14) ;;
        '') fail "PYTHON=$python does not run; give the path of a Python 3.12, 3.13 or 3.14." ;;
        *) fail "PYTHON=$python is Python $(version_of "$python"); this book needs 3.12, 3.13 or" \
            "3.14." ;;
    esac
else
    python=$(find_python)
    [ -n "$python" ] || fail "No Python 3.12, 3.13 or 3.14 found on PATH or in pyenv. Install one" \
        "(python.org, your system's packages, or 'pyenv install 3.13'), or name it:" \
        "make PYTHON=/path/to/python3.13 ..."
fi

"$python" -c 'import venv, ensurepip' 2>/dev/null || fail "$python cannot make environments: its" \
    "modules venv and ensurepip are missing. On Debian and Ubuntu:" \
    "apt install python$(version_of "$python")-venv"

# An environment that somebody else made, or that another Python made, is not patched up: starting
# afresh costs a minute and cannot leave a mixture. An interrupted one has no stamp.
if [ -e "$folder" ]; then
    [ -f "$folder/pyvenv.cfg" ] || [ -z "$(ls -A "$folder")" ] ||
        fail "$folder exists and is no Python environment; move it away first."
    rm -rf "$folder"
fi
say "Making the environment in $folder with Python $(version_of "$python") (once, a few minutes)"
[ "$(version_of "$python")" != 3.14 ] ||
    say "Nobody has run this book on Python 3.14 yet; it is made and checked on 3.12 and 3.13."
"$python" -m venv "$folder"
# Without byte code of all modules, which takes a minute: Python writes it for those that it imports.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    --no-compile -r requirements.lock 2>"$folder/pip.log" || {
    cat "$folder/pip.log" >&2
    ! grep -q 'DO NOT MATCH THE HASHES' "$folder/pip.log" ||
        fail "A package's file is not one that requirements.lock names (see above), and nothing was" \
            "installed. The package index hands out another file than the one that was locked:" \
            "find out why before you change the lock."
    fail "Installing the packages failed (see above); the next make starts afresh."
}
cat "$folder/pip.log" >&2
rm "$folder/pip.log"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --editable . ||
    fail "Installing this repository's package failed (see above)."
say "$fingerprint" >"$stamp"
