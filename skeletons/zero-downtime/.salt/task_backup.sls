{# Run by hand, or from a cron job:  corpus-git task PROJECT backup
   Packs data/ (without the backups) and keeps the newest {{ opts.ms_project.data.keep_backups }}. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-backup:
  cmd.run:
    - cwd: {{cfg.data_root}}
    - name: |
        set -e
        umask 077
        mkdir -p backups
        file=backups/{{cfg.name}}-$(date +%Y%m%dT%H%M%S).tar.gz
        tar --create --gzip --exclude=./backups --file="$file.part" .
        mv "$file.part" "$file"
        ls -1 backups/*.tar.gz | head -n -{{cfg.data.keep_backups}} | xargs -r rm --
        echo "wrote {{cfg.data_root}}/$file"
