#!/bin/sh
# Make aea86a6.tar.gz: a vault and a data folder as revision aea86a6 wrote them.
# Usage: sh make.sh CHECKOUT, where CHECKOUT is a git worktree of that revision; `python` needs its dependencies.
# The activity.db in the archive was then converted to version 7, the first one that is released, and in sources.toml
# `kind` was renamed to `source`.
# Paths are below /tmp/co-old-data; the test replaces that with a folder of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=/tmp/co-old-data
rm -rf "$root"
mkdir -p "$root/home" "$root/vault" "$root/handbook" "$root/team/memories"
export HOME="$root/home" CO_VAULT="$root/vault" CO_DATA_DIR="$root/data" PYTHONPATH="$1"
unset XDG_CONFIG_HOME XDG_DATA_HOME
cd "$root"
co() { python -m co_cli "$@"; }

printf '# Onboarding\n\nNew colleagues get a laptop on their first day.\n' > handbook/onboarding.md
printf 'The team meets on Mondays.\n' > team/memories/meetings.md
printf -- '---\r\ntitle: Oaks   # as the farmer says\r\nhue: green\r\n---\r\nOaks live long.\r\n' > oak.md
mkdir -p vault/memories vault/articles
cp oak.md vault/memories/oak.md
printf '# Deploys\n\nThe blue pool takes traffic first.\n\n## Rollback\n\nSwitch back to green.\n' > vault/articles/deploys.md

co index sync
co remember "The kettle stands in the kitchen." --title Kettle --tag home
co remember "Elms fall ill when beetles come." --title Elm
co edit kettle --body "The kettle stands in the hall."
co edit kettle --add-tag tea
co forget elm
co add "$root/handbook" --name handbook
co config trust "$root/team"
co search "where is the kettle"
co show kettle
co feedback give kettle good --query "where is the kettle"
co feedback give oak bad --query "where is the kettle"
co search "first day laptop"   # stays in activity.spool

rm -rf home oak.md
tar --sort=name --owner=0 --group=0 --numeric-owner -czf "$here/aea86a6.tar.gz" data handbook team vault
