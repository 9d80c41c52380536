#!/usr/bin/env bash
# Runs the linter, the type checker and the tests, in an environment it makes itself.
#
#   bash scripts/test.sh                          everything but the slow tests
#   bash scripts/test.sh --slow                   the slow tests too
#   bash scripts/test.sh -x tests/maxlm/config    other arguments go to pytest
#
# Needs Python 3.11 or later with pip and nothing else. Environment variables:
#   PYTHON   interpreter to make the environment with (default: python3.11, 3.12, 3.13, python3)
#   VENV     the environment (default: .venv)
# The comparison with PyTorch runs on Python 3.11 only and is skipped, with its reason, elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' scripts/test.sh
        exit 0 ;;
esac

selection="not slow"
count=$#
while [ "$count" -gt 0 ]; do # takes --slow out of the arguments, leaves the others as they are
    argument=$1
    shift
    if [ "$argument" = "--slow" ]; then
        selection="slow or not slow"
    else
        set -- "$@" "$argument"
    fi
    count=$((count - 1))
done

. scripts/environment.sh
make_environment test

failed=""
echo "ruff check"
"$PYTHON" -m ruff check . || failed="$failed ruff"
echo "pyright"
"$PYTHON" -m pyright --pythonpath "$PYTHON" --level error || failed="$failed pyright"
echo "pytest"
"$PYTHON" -m pytest -m "$selection" "$@" || failed="$failed pytest"

if [ -n "$failed" ]; then
    echo "FAILED:$failed" >&2
    exit 1
fi
echo "all checks passed"
