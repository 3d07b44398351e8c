{# Run by hand, or from a cron job:  corpus-git task PROJECT backup
   Packs data/ (without the backups, and with a copy of the database that is whole) and keeps the newest {{ opts.ms_project.data.keep_backups }}. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-backup:
  cmd.run:
    - cwd: {{cfg.data_root}}
    - name: |
        set -e
        umask 077
        mkdir -p backups
        copy=$(mktemp -d)
        trap 'rm -rf "$copy"' EXIT
        python3 -c 'import sqlite3, sys; sqlite3.connect("db.sqlite3").backup(sqlite3.connect(sys.argv[1]))' "$copy/db.sqlite3"
        file=backups/{{cfg.name}}-$(date +%Y%m%dT%H%M%S).tar.gz
        tar --create --gzip --exclude=./backups --exclude='./db.sqlite3*' --file="$file.part" . --directory="$copy" ./db.sqlite3
        mv "$file.part" "$file"
        ls -1 backups/*.tar.gz | head -n -{{cfg.data.keep_backups}} | xargs -r rm --
        echo "wrote {{cfg.data_root}}/$file"
