# Sourced by the other scripts: a virtual environment with maxlm installed. Nothing to run by itself.
#
# make_environment [test]   makes $VENV (default .venv) with maxlm, what it needs and the quickstart's
#                           texts (and the tests' tools), and sets $PYTHON to its interpreter.
#                           Returns at once when nothing has changed.
#
# PYTHON chooses the interpreter the environment is made with (3.11 or later).

is_usable_python() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        if ! is_usable_python "$PYTHON"; then
            echo "error: PYTHON=$PYTHON is not a Python of 3.11 or later with venv and pip" >&2
            return 2
        fi
        return 0
    fi
    # 3.11 first: the comparison with PyTorch in the tests is installed there.
    for PYTHON in python3.11 python3.12 python3.13 python3 python; do
        if is_usable_python "$PYTHON"; then return 0; fi
    done
    echo "error: no Python of 3.11 or later with venv and pip found (on Debian and Ubuntu:" \
        "apt install python3 python3-venv); or name one: PYTHON=/path/to/python3.12 bash $0" >&2
    return 2
}

# Keeps pip's output in a log and shows how far it is.
pip_progress() {
    awk -v log_file="$1" -v live="$2" '
        { print > log_file; fflush(log_file) }
        /^(Collecting|Obtaining|Processing) / {
            count++
            if (live) printf "\r  looking at package %d: %-40.40s", count, $2
            else if (count % 20 == 0) printf "  %d packages looked at\n", count
            fflush() }
        /^ *Downloading .*\([0-9.]+ [MG]B\)/ {
            if (live) printf "\r  downloading %-60.60s", $2 " " $3 " " $4; fflush() }
        /^Installing collected packages/ {
            if (live) printf "\r%-70s\r", ""
            print "  unpacking"; fflush() }
        END { if (live) printf "\r%-70s\r", "" }'
}

# install LABEL PIP-ARGUMENT...: once, until setup.py, the requirements or the arguments change.
install() {
    label=$1
    shift
    stamp=$VENV/.maxlm-installed-$label
    wanted="$(cksum setup.py pyproject.toml configs/corpus/*.txt) $PWD $*"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    echo "installing $label into $VENV"
    live=""
    if [ -t 1 ]; then live=1; fi
    log=$VENV/install-$label.log
    # The pipe's status is pip's: pipefail is on in every script that sources this.
    if ! "$PYTHON" -m pip install --disable-pip-version-check --no-input --progress-bar off "$@" \
        2>&1 | pip_progress "$log" "$live"; then
        tail -n 15 "$log" >&2
        echo "error: the installation failed; the whole log is in $log" >&2
        return 1
    fi
    printf '%s' "$wanted" >"$stamp"
}

make_environment() {
    VENV=${VENV:-.venv}
    if ! "$VENV/bin/python" -c "" >/dev/null 2>&1; then
        find_python || return 2
        echo "making $VENV with $("$PYTHON" --version 2>&1)"
        "$PYTHON" -m venv --clear "$VENV" || return 1
    fi
    PYTHON=$VENV/bin/python
    if [ "${1:-}" = test ] || [ -e "$VENV/.maxlm-installed-test" ]; then
        install test -e ".[test]" || return 1
    else
        install maxlm -e . || return 1
    fi
    install texts --no-deps -r configs/corpus/quickstart_requirements.txt
}
